use std::collections::BTreeSet;

use super::*;

#[test]
fn names_follow_the_style() {
    for metric in all() {
        let name = metric.name;
        let rest = name.strip_prefix("wicketgate_").expect(name);
        assert!(
            rest.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'),
            "{name}"
        );
        assert!(!rest.contains("__"), "{name}");
        assert_eq!(metric.kind == Kind::Counter, name.ends_with("_total"), "{name}");
        let stem = name.strip_suffix("_total").unwrap_or(name);
        let suffix = match metric.unit {
            Unit::Count => "",
            Unit::Seconds => "_seconds",
            Unit::Bytes => "_bytes",
            Unit::Ratio | Unit::Quotient => "_ratio",
            Unit::UnixSeconds => "_timestamp_seconds",
        };
        assert!(stem.ends_with(suffix), "{name} does not end with its unit `{suffix}`");
        for reserved in ["_bucket", "_count", "_sum", "_created"] {
            assert!(!name.ends_with(reserved), "{name}");
        }
        for foreign in ["_ms", "_millis", "_percent", "_milliseconds"] {
            assert!(!stem.ends_with(foreign), "{name} is not in a base unit");
        }
    }
}

#[test]
fn help_is_one_sentence() {
    for metric in all() {
        assert!(metric.help.ends_with('.'), "{}", metric.name);
        assert!(!metric.help.contains(['\n', '|']), "{}", metric.name);
    }
}

#[test]
fn no_name_stands_twice() {
    let names: BTreeSet<_> = all().map(|metric| metric.name).collect();
    assert_eq!(names.len(), all().count());
}

#[test]
fn labels_are_few_and_say_whose_first() {
    const ALLOWED: &[&str] = &[
        "code",
        "direction",
        "band",
        "end",
        "endpoint",
        "hash",
        "kind",
        "member",
        "model",
        "outcome",
        "pool",
        "reason",
        "revision",
        "rewrite",
        "route",
        "rule",
        "signal",
        "state",
        "target",
        "tenant",
        "version",
    ];
    for metric in all() {
        assert!(metric.labels.iter().all(|label| ALLOWED.contains(label)), "{}", metric.name);
    }
    assert!(POOL.iter().chain(FLOW).all(|metric| metric.labels[0] == "pool"));
    assert!(RATE_LIMIT.iter().all(|metric| metric.labels[0] == "rule"));
    assert!(ENDPOINT.iter().all(|metric| metric.labels[..2] == ["pool", "endpoint"]));
    assert!(FLEET_MEMBER.iter().all(|metric| metric.labels[0] == "member"));
    assert!(REWRITE.iter().all(|metric| metric.labels[0] == "rewrite"));
}

#[test]
fn buckets_ascend_and_are_few() {
    for metric in all() {
        if let Kind::Histogram(bounds) = metric.kind {
            assert!(bounds.windows(2).all(|pair| pair[0] < pair[1]), "{}", metric.name);
            assert!((5..=24).contains(&bounds.len()), "{}", metric.name);
        }
    }
}

#[test]
fn the_reference_page_has_every_metric_and_every_label_value() {
    let page = markdown();
    for metric in all() {
        assert!(page.contains(&format!("| `{}` |", metric.name)), "{}", metric.name);
    }
    assert!(page.contains("endpoint_cut, endpoint_error, stalled"));
    for row in page.lines().filter(|line| line.starts_with('|')) {
        assert!(matches!(row.matches('|').count(), 3..=6), "{row}");
    }
}

#[test]
fn every_alias_and_every_absence_is_on_the_reference_page() {
    let page = markdown();
    for name in field::ALIASES.iter().map(|alias| alias.name).chain(means()) {
        assert!(page.contains(&format!("| `{name}` |")), "{name}");
    }
    for (names, why) in field::ABSENT {
        assert!(page.contains(names) && page.contains(why), "{names}");
    }
}

#[test]
fn aliases_are_the_fields_and_rename_labels_that_exist() {
    let mut seen = BTreeSet::new();
    for alias in field::ALIASES {
        let (name, of) = (alias.name, alias.of);
        assert!(seen.insert(name), "{name} stands twice");
        assert!(name.starts_with("llm_d_") || name.starts_with("inference_"), "{name}");
        assert_eq!(of.kind == Kind::Counter, name.ends_with("_total"), "{name}");
        let renamed = alias.labels.iter().map(|(own, _)| own);
        let only = alias.only.as_ref().map(|(own, _)| own);
        for label in renamed.chain(only) {
            assert!(of.labels.contains(label), "{name}: {} has no `{label}`", of.name);
        }
    }
    assert!(means().all(|name| seen.insert(name)));
    let absent = field::ABSENT.iter().flat_map(|(names, _)| names.split("`, `"));
    for name in absent {
        assert!(!seen.contains(format!("llm_d_epp_{name}").as_str()), "{name} is there");
    }
}

fn means() -> impl Iterator<Item = &'static str> {
    field::MEANS.iter().map(|mean| mean.name)
}
