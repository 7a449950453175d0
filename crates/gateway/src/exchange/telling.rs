//! What the header of an answer tells its client of the gateway's own doing.

use types::Timestamp;

use super::Exchange;
use crate::admission::is_unknown_objective;

/// What a client should mend, though its request is served: `unknown-objective`.
const WARNING: &str = "x-wicketgate-warning";
const UNKNOWN_OBJECTIVE: &str = "unknown-objective";

impl Exchange {
    /// Looks whether the objective that the request names is there.
    pub(super) fn note_objective(&mut self) {
        let pool = self.target.as_ref().map(|target| &target.pool.name);
        self.has_unknown_objective =
            is_unknown_objective(&self.gateway.spec(), pool, &self.meta.wishes);
    }

    /// Fields that every answer to the request carries, ours or an endpoint's: how near it is to its limits,
    /// and what to mend.
    pub fn told_fields(&self, now: Timestamp) -> Vec<(&'static str, String)> {
        let mut fields = self.rate_limit_fields(now);
        if self.has_unknown_objective {
            fields.push((WARNING, UNKNOWN_OBJECTIVE.to_owned()));
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{at, body, exchange_of, gateway};
    use crate::{Caller, Wishes};

    const DOCUMENT: &str =
        "  schedulers: [{ name: chat, modelName: llama, endpoints: [{ url: 'http://10.0.0.1' }] }]
  objectives: [{ name: nightly, priority: Sheddable, scheduler: chat }]
";

    fn told(objective: Option<&str>) -> Vec<(&'static str, String)> {
        let gateway = gateway(DOCUMENT);
        let wishes = Wishes { objective: objective.map(Into::into), ..Wishes::default() };
        let mut exchange = exchange_of(&gateway, Caller::anonymous(), wishes);
        exchange.place(&body("llama"), None, at(0)).unwrap();
        exchange.told_fields(at(0))
    }

    #[test]
    fn an_objective_that_is_not_there_is_told_with_the_answer_and_without_its_name() {
        let warning = vec![("x-wicketgate-warning", "unknown-objective".to_owned())];
        assert_eq!(told(Some("nihgtly")), warning, "also without flow control");
    }

    #[test]
    fn an_objective_that_is_there_or_not_asked_for_is_no_warning() {
        assert_eq!(told(Some("nightly")), []);
        assert_eq!(told(None), []);
    }
}
