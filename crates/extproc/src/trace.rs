//! A request's trace as header fields, as a proxy passes them on.

use config::ServerTiming;
use telemetry::trace::{Baggage, TraceContext};

use crate::names;
use crate::wire::{HeaderMap, HeaderMutation, HeaderValue};

/// What a head says of its trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trace {
    pub(crate) parent: Option<TraceContext>,
    asks_for_timing: bool,
    /// There is a `traceparent` that cannot be followed.
    is_broken: bool,
    has_state: bool,
    state_is_long: bool,
    baggage_is_long: bool,
}

impl Trace {
    pub(crate) fn read(fields: &HeaderMap) -> Self {
        let of = |name: &'static str| {
            let all = fields.headers.iter();
            all.filter(move |field| field.key.eq_ignore_ascii_case(name)).map(HeaderValue::bytes)
        };
        let mut parents = of(names::TRACE_PARENT);
        let parent = match (parents.next(), parents.next()) {
            (Some(value), None) => TraceContext::parse(value),
            // Of two nobody knows which is meant.
            _ => None,
        };
        let length = |name| of(name).map(|value| value.len() + 1).sum::<usize>();
        let state = length(names::TRACE_STATE);
        Self {
            parent,
            asks_for_timing: fields.get(names::WANTS_TIMING).is_some(),
            is_broken: parent.is_none() && of(names::TRACE_PARENT).next().is_some(),
            has_state: state > 0,
            state_is_long: state > Baggage::State.bytes_max() + 1,
            baggage_is_long: length(names::BAGGAGE) > Baggage::Baggage.bytes_max() + 1,
        }
    }

    pub(crate) fn wants_timing(&self, timing: ServerTiming) -> bool {
        match timing {
            ServerTiming::Off => false,
            ServerTiming::OnRequest => self.asks_for_timing,
            ServerTiming::Always => true,
        }
    }

    /// What the endpoint gets: ours in place of the client's where we take part, else the client's if
    /// it can be followed; what travels along only within its bounds.
    pub(crate) fn pass_on(&self, own: Option<[u8; 55]>, mutation: &mut HeaderMutation) {
        match own {
            Some(own) => mutation.set(names::TRACE_PARENT, own.to_vec()),
            None if self.is_broken => mutation.remove(names::TRACE_PARENT),
            None => {}
        }
        if self.has_state && (self.parent.is_none() || self.state_is_long) {
            mutation.remove(names::TRACE_STATE);
        }
        if self.baggage_is_long {
            mutation.remove(names::BAGGAGE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn removed(fields: &[(&str, &str)], own: Option<[u8; 55]>) -> Vec<String> {
        let headers = fields.iter().map(|(name, value)| HeaderValue::new(*name, value.to_string()));
        let mut mutation = HeaderMutation::default();
        Trace::read(&HeaderMap { headers: headers.collect() }).pass_on(own, &mut mutation);
        assert_eq!(mutation.set_headers.len(), usize::from(own.is_some()));
        mutation.remove_headers
    }

    #[test]
    fn a_trace_that_can_be_followed_passes() {
        let fields = [("traceparent", PARENT), ("tracestate", "a=1"), ("baggage", "b=2")];
        assert!(removed(&fields, None).is_empty());
        assert!(removed(&fields, Some([b'0'; 55])).is_empty());
    }

    #[test]
    fn what_cannot_be_followed_or_is_too_long_is_removed() {
        let long = "x".repeat(513);
        assert_eq!(
            removed(&[("traceparent", PARENT), ("tracestate", &long)], None),
            ["tracestate"]
        );
        let broken = [("traceparent", "00-1"), ("tracestate", "a=1")];
        assert_eq!(removed(&broken, None), ["traceparent", "tracestate"]);
        let twice = [("traceparent", PARENT), ("traceparent", PARENT)];
        assert_eq!(removed(&twice, None), ["traceparent"]);
        let long = "x".repeat(8193);
        assert_eq!(removed(&[("baggage", &long)], None), ["baggage"]);
    }
}
