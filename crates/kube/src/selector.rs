//! Label selectors, as everywhere in Kubernetes.

use std::collections::BTreeMap;

use config::spec::{LabelSelector, SelectorOperator, SelectorRequirement};

/// Whether all of the selector holds for these labels. An empty one holds for all.
pub(crate) fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    selector.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
        && selector.match_expressions.iter().all(|requirement| holds(requirement, labels))
}

/// A label that is not there differs from every value.
fn holds(requirement: &SelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let value = labels.get(&requirement.key);
    match requirement.operator {
        SelectorOperator::In => value.is_some_and(|value| requirement.values.contains(value)),
        SelectorOperator::NotIn => value.is_none_or(|value| !requirement.values.contains(value)),
        SelectorOperator::Exists => value.is_some(),
        SelectorOperator::DoesNotExist => value.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn expression(key: &str, operator: SelectorOperator, values: &[&str]) -> LabelSelector {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        let requirement = SelectorRequirement { key: key.to_owned(), operator, values };
        LabelSelector { match_labels: BTreeMap::new(), match_expressions: vec![requirement] }
    }

    #[test]
    fn all_labels_must_match_and_others_do_not_disturb() {
        let selector = LabelSelector {
            match_labels: labels(&[("app", "llama"), ("tier", "prod")]),
            match_expressions: Vec::new(),
        };
        assert!(matches(&selector, &labels(&[("app", "llama"), ("tier", "prod"), ("x", "y")])));
        assert!(!matches(&selector, &labels(&[("app", "llama")])));
        assert!(!matches(&selector, &labels(&[("app", "llama"), ("tier", "test")])));
    }

    #[test]
    fn expressions_mean_what_they_mean_in_kubernetes() {
        let llama = labels(&[("app", "llama")]);
        let none = labels(&[]);
        let holds = |operator, values: &[&str], labels| {
            matches(&expression("app", operator, values), labels)
        };
        assert!(holds(SelectorOperator::In, &["qwen", "llama"], &llama));
        assert!(!holds(SelectorOperator::In, &["qwen"], &llama));
        assert!(!holds(SelectorOperator::In, &["llama"], &none));
        assert!(!holds(SelectorOperator::NotIn, &["llama"], &llama));
        assert!(holds(SelectorOperator::NotIn, &["llama"], &none), "no label is not that label");
        assert!(holds(SelectorOperator::Exists, &[], &llama));
        assert!(!holds(SelectorOperator::Exists, &[], &none));
        assert!(holds(SelectorOperator::DoesNotExist, &[], &none));
        assert!(!holds(SelectorOperator::DoesNotExist, &[], &llama));
    }
}
