//! Whether anybody else asked lately.

use std::sync::Arc;
use std::time::Duration;

use types::Timestamp;

/// So long room is kept for flows that asked.
const LATELY: Duration = Duration::from_secs(60);

/// The flow of a band that asked last, and the last other one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lately {
    last: Option<(Arc<str>, Timestamp)>,
    other: Option<(Arc<str>, Timestamp)>,
}

impl Lately {
    pub(crate) fn note(&mut self, id: &Arc<str>, now: Timestamp) {
        match &mut self.last {
            Some((last, at)) if last == id => *at = now,
            last => self.other = last.replace((id.clone(), now)),
        }
    }

    pub(crate) fn anybody(&self, now: Timestamp) -> bool {
        is_recent(&self.last, now)
    }

    /// Anybody but this flow.
    pub(crate) fn anybody_but(&self, id: &str, now: Timestamp) -> bool {
        match &self.last {
            Some((last, _)) if **last == *id => is_recent(&self.other, now),
            _ => is_recent(&self.last, now),
        }
    }
}

fn is_recent(asked: &Option<(Arc<str>, Timestamp)>, now: Timestamp) -> bool {
    asked.as_ref().is_some_and(|(_, at)| now.since(*at) < LATELY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_alone_is_nobody_else_and_one_that_left_is_forgotten_in_a_minute() {
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let at = Timestamp::from_millis;
        let mut lately = Lately::default();
        lately.note(&a, at(0));
        assert!(lately.anybody_but("b", at(0)) && !lately.anybody_but("a", at(0)));
        lately.note(&b, at(1000));
        lately.note(&a, at(2000));
        lately.note(&a, at(3000));
        assert!(lately.anybody_but("a", at(60_999)));
        assert!(!lately.anybody_but("a", at(61_000)));
        assert!(lately.anybody_but("b", at(62_999)) && !lately.anybody(at(63_000)));
    }
}
