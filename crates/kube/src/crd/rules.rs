//! Rules that span fields, in the API server's own language (CEL), so that a dry run tells of them.
//!
//! The messages are those of `wicketgate check`, and AWS's where AWS has one. What AWS accepts and
//! reports in the status (adapters that collide, names that are too long, selectors that make no sense) is not
//! here.

use config::ApiGroup;
use serde_json::{Value, json};

pub(super) struct Rule {
    /// Keys below `spec`; `[]` is a list's item.
    pub at: &'static [&'static str],
    /// For which groups.
    pub groups: &'static [ApiGroup],
    /// Holds for what is allowed.
    pub holds: &'static str,
    pub message: &'static str,
}

const OURS: &[ApiGroup] = &[ApiGroup::Wicketgate];
const AWS: &[ApiGroup] = &[ApiGroup::Aws];
const BOTH: &[ApiGroup] = &[ApiGroup::Wicketgate, ApiGroup::Aws];

const SCHEDULER: &[&str] = &["schedulers", "[]"];

const BBR: &str = "bbr must be enabled when more than one scheduler is defined";
const CLAIMS: &str = "at least one of audiences or requiredClaims must be specified";

pub(super) const RULES: &[Rule] = &[
    Rule {
        at: &[],
        groups: AWS,
        holds: "size(self.schedulers) <= 1 || self.bbr.enabled",
        message: BBR,
    },
    Rule {
        at: &[],
        groups: OURS,
        holds: "(has(self.schedulers) ? size(self.schedulers) : 0) \
                + (has(self.discover) && size(self.discover) > 0 ? 1 : 0) <= 1 \
                || !has(self.bbr) || !has(self.bbr.enabled) || self.bbr.enabled",
        message: BBR,
    },
    Rule {
        at: &[],
        groups: BOTH,
        // The list of names stands for itself once, and is searched by the server's own code: each write of a status
        // judges the rules again, and one comprehension in another took seconds for 250 schedulers.
        holds: "!has(self.schedulers) || [self.schedulers.map(one, one.modelName)].all(names, \
                names.all(name, names.indexOf(name) == names.lastIndexOf(name)))",
        message: "modelName must be unique across schedulers",
    },
    Rule {
        at: &[],
        groups: OURS,
        holds: "has(self.schedulers) || (has(self.discover) && size(self.discover) > 0)",
        message: "there is nothing to serve: neither `schedulers` nor `discover` is there",
    },
    Rule {
        at: SCHEDULER,
        groups: BOTH,
        holds: "!(has(self.weights) && has(self.configMapRef))",
        message: "weights and configMapRef are mutually exclusive",
    },
    Rule {
        at: SCHEDULER,
        groups: BOTH,
        holds: "!has(self.weights) || !has(self.weights.lru) || !has(self.scheduler) \
                || self.scheduler == 'llm-d'",
        message: "weights.lru is only valid when scheduler is llm-d",
    },
    Rule {
        at: SCHEDULER,
        groups: OURS,
        holds: "!(has(self.pickerConfig) && has(self.policy))",
        message: "policy and pickerConfig are mutually exclusive",
    },
    Rule {
        at: SCHEDULER,
        groups: OURS,
        holds: "!(has(self.pickerConfig) && has(self.weights))",
        message: "weights and pickerConfig are mutually exclusive",
    },
    Rule {
        at: SCHEDULER,
        groups: OURS,
        holds: "!(has(self.pickerConfig) && has(self.configMapRef))",
        message: "configMapRef and pickerConfig are mutually exclusive",
    },
    Rule {
        at: SCHEDULER,
        groups: OURS,
        holds: "has(self.endpoints) || has(self.modelSelector)",
        message: "a scheduler has no endpoints: add `endpoints`, or a `modelSelector`",
    },
    Rule {
        at: &["auth", "jwt", "provider"],
        groups: BOTH,
        holds: "(has(self.audiences) && size(self.audiences) > 0) \
                || (has(self.requiredClaims) && size(self.requiredClaims) > 0)",
        message: CLAIMS,
    },
    Rule {
        at: &["auth", "jwt", "providers", "[]"],
        groups: OURS,
        holds: "(has(self.audiences) && size(self.audiences) > 0) \
                || (has(self.requiredClaims) && size(self.requiredClaims) > 0)",
        message: CLAIMS,
    },
];

/// Puts the group's rules where they belong in the schema of `spec`.
pub(super) fn attach(spec: &mut Value, group: ApiGroup) {
    for rule in RULES.iter().filter(|rule| rule.groups.contains(&group)) {
        let place = rule.at.iter().fold(&mut *spec, |schema, key| match *key {
            "[]" => &mut schema["items"],
            key => &mut schema["properties"][key],
        });
        let validation = json!({ "rule": rule.holds, "message": rule.message });
        match place["x-kubernetes-validations"].as_array_mut() {
            Some(rules) => rules.push(validation),
            None => place["x-kubernetes-validations"] = json!([validation]),
        }
    }
}
