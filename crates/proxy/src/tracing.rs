//! Traces and times as header fields: what is read of a client's, and what an endpoint gets.

use config::ServerTiming;
use gateway::Attempt;
use telemetry::trace::{Baggage, TraceContext};

use crate::fields::{Class, Fields};

/// A client writes this field to be told where the time went.
pub(crate) const WANTS_TIMING: &str = "x-wicketgate-timing";

/// What a client's `traceparent` says. `None`: it has none, or one that cannot be followed; of two,
/// nobody knows which is meant.
pub(crate) fn parent_of(fields: &Fields) -> Option<TraceContext> {
    let value = fields.get(Class::TraceParent)?;
    if fields.count(Class::TraceParent) > 1 {
        return None;
    }
    TraceContext::parse(value)
}

pub(crate) fn wants_timing(timing: ServerTiming, fields: &Fields) -> bool {
    match timing {
        ServerTiming::Off => false,
        ServerTiming::OnRequest => fields.control(WANTS_TIMING).is_some(),
        ServerTiming::Always => true,
    }
}

/// The fields of its trace that an endpoint gets: ours in place of the client's where we take part, else
/// the client's if it can be followed; what travels along only within its bounds.
pub(crate) fn passing_trace<'a>(
    fields: &'a Fields,
    attempt: &'a Attempt,
) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    let parent = parent_of(fields);
    let theirs = fields.get(Class::TraceParent).filter(|_| parent.is_some());
    let traceparent = attempt.traceparent.as_ref().map(|own| &own[..]).or(theirs);
    let along = fields.iter().filter(move |field| match field.class {
        Class::TraceState => parent.is_some() && fits(fields, field.class, Baggage::State),
        Class::Baggage => fits(fields, field.class, Baggage::Baggage),
        _ => false,
    });
    let along = along.map(|field| (fields.name(field), fields.value(field)));
    traceparent.map(|value| (&b"traceparent"[..], value)).into_iter().chain(along)
}

fn fits(fields: &Fields, class: Class, baggage: Baggage) -> bool {
    let all = fields.iter().filter(|field| field.class == class);
    // Fields of one name are one list, joined by commas.
    all.map(|field| fields.value(field).len() + 1).sum::<usize>() <= baggage.bytes_max() + 1
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use types::EndpointId;

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const OWN: &[u8; 55] = b"00-4bf92f3577b34da6a3ce929d0e0e4736-1111111111111111-01";

    fn fields(of: &[(&str, &str)]) -> Fields {
        let text: String = of.iter().map(|(name, value)| format!("{name}{value}")).collect();
        let mut fields = Fields::with_bytes(Bytes::from(text));
        let mut at = 0;
        for (name, value) in of {
            let middle = at + name.len();
            fields.push(at..middle, middle..middle + value.len());
            at = middle + value.len();
        }
        fields
    }

    fn passed(of: &[(&str, &str)], own: Option<[u8; 55]>) -> Vec<(String, String)> {
        let attempt = Attempt {
            endpoint: EndpointId(0),
            address: "http://a:1".parse().unwrap(),
            authority: "a:1".to_owned(),
            h2c: false,
            authorization: None,
            traceparent: own,
            lost: None,
        };
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let fields = fields(of);
        passing_trace(&fields, &attempt).map(|(name, value)| (text(name), text(value))).collect()
    }

    #[test]
    fn our_span_takes_the_place_of_the_client_s() {
        let got = passed(&[("traceparent", PARENT), ("tracestate", "a=1")], Some(*OWN));
        let own = String::from_utf8(OWN.to_vec()).unwrap();
        assert_eq!(got, [("traceparent".into(), own), ("tracestate".into(), "a=1".into())]);
    }

    #[test]
    fn without_tracing_a_client_s_trace_passes_as_it_came() {
        let got = passed(&[("Traceparent", PARENT), ("baggage", "user=7")], None);
        assert_eq!(got[0], ("traceparent".into(), PARENT.into()));
        assert_eq!(got[1], ("baggage".into(), "user=7".into()));
    }

    #[test]
    fn a_trace_that_cannot_be_followed_is_not_passed_on_and_neither_is_its_state() {
        let twice = [("traceparent", PARENT), ("traceparent", PARENT), ("tracestate", "a=1")];
        assert!(passed(&twice, None).is_empty());
        assert!(passed(&[("traceparent", "00-x"), ("tracestate", "a=1")], None).is_empty());
    }

    #[test]
    fn what_is_too_long_stays_behind_as_a_whole() {
        let (fits, long) = ("s".repeat(512), "s".repeat(513));
        assert_eq!(passed(&[("traceparent", PARENT), ("tracestate", &fits)], None).len(), 2);
        assert_eq!(passed(&[("traceparent", PARENT), ("tracestate", &long)], None).len(), 1);
        let half = "b".repeat(4096);
        assert_eq!(passed(&[("baggage", &half), ("baggage", &half)], None).len(), 0);
        assert_eq!(passed(&[("baggage", &half)], None).len(), 1);
    }
}
