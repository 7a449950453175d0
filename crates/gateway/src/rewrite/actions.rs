//! What an operator does to a split.

use std::collections::BTreeMap;

use rollout::Refused;
use serde::{Deserialize, Serialize};
use types::Timestamp;

use super::{RolloutView, Rule};
use crate::Gateway;

/// Longest text that an operator gives as a reason, characters.
const REASON_MAX: usize = 256;

/// One action, as the administration listener takes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RolloutAction {
    /// Targets that are not named keep their weight.
    Set {
        weights: BTreeMap<String, u32>,
    },
    /// To a share of 0 to 1, or the next one up.
    Step {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<String>,
    },
    Pause,
    Rollback {
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<String>,
    },
    Resume {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<String>,
    },
}

/// Why an action was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ActionRefused {
    #[error("there is no rewrite `{name}`; rewrites: {known}")]
    Unknown { name: String, known: String },
    #[error("`{name}` has {rules} rules: say which with --rule (0 is the first)")]
    WhichRule { name: String, rules: usize },
    #[error("`{name}` has no rule {rule}: they are 0 to {last}")]
    NoRule { name: String, rule: usize, last: usize },
    #[error("a share is a number from 0 to 1")]
    Share,
    #[error("`{name}` is left as it is")]
    Refused {
        name: String,
        #[source]
        source: Refused,
    },
}

impl Gateway {
    /// Carries an action out on one rule of a rewrite; answers what it is like then.
    ///
    /// * `rule`: position in the rewrite; may be left out where it has one.
    pub fn act_on_rollout(
        &self,
        name: &str,
        rule: Option<usize>,
        action: &RolloutAction,
        now: Timestamp,
    ) -> Result<RolloutView, ActionRefused> {
        let catalog = self.catalog();
        let rules = &catalog.rewrites.rules;
        let of_name: Vec<_> = rules.iter().filter(|rule| &*rule.rewrite == name).collect();
        let found =
            match (rule, of_name.as_slice()) {
                (_, []) => {
                    let mut known: Vec<_> = rules.iter().map(|rule| &*rule.rewrite).collect();
                    known.dedup();
                    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                    return Err(ActionRefused::Unknown { name: name.to_owned(), known });
                }
                (None, [only]) => only,
                (None, several) => {
                    let (name, rules) = (name.to_owned(), several.len());
                    return Err(ActionRefused::WhichRule { name, rules });
                }
                (Some(rule), several) => several.get(rule).ok_or_else(|| {
                    ActionRefused::NoRule { name: name.to_owned(), rule, last: several.len() - 1 }
                })?,
            };
        found.act(action, now)?;
        tracing::info!(rewrite = %found.rewrite, rule = found.index, ?action, "rollout changed by an operator");
        Ok(found.view(now))
    }
}

impl Rule {
    fn act(&self, action: &RolloutAction, now: Timestamp) -> Result<(), ActionRefused> {
        let check = |to: &Option<f64>| match to {
            Some(share) if !(0.0..=1.0).contains(share) => Err(ActionRefused::Share),
            _ => Ok(*to),
        };
        let done = match action {
            RolloutAction::Set { weights } => {
                let weights: Vec<_> =
                    weights.iter().map(|(name, at)| (name.as_str(), *at)).collect();
                self.rollout.set(&weights)
            }
            RolloutAction::Step { to, target } => {
                self.rollout.step(target.as_deref(), check(to)?).map(|_| ())
            }
            RolloutAction::Pause => self.rollout.pause(),
            RolloutAction::Rollback { reason, target } => {
                let plain = |c: &char| !c.is_control();
                let reason: String = reason.chars().filter(plain).take(REASON_MAX).collect();
                self.rollout.roll_back(target.as_deref(), &reason, now)
            }
            RolloutAction::Resume { to, target } => {
                self.rollout.resume(target.as_deref(), check(to)?)
            }
        };
        done.map_err(|source| ActionRefused::Refused { name: self.rewrite.to_string(), source })?;
        self.publish(now);
        Ok(())
    }
}
