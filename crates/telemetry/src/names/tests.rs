use std::collections::BTreeSet;

use super::*;

#[test]
fn names_follow_the_style() {
    for metric in all() {
        let name = metric.name;
        let rest = name.strip_prefix("wicketgate_").expect(name);
        assert!(rest.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        assert!(!rest.contains("__"), "{name}");
        assert_eq!(metric.kind == Kind::Counter, name.ends_with("_total"), "{name}");
        let stem = name.strip_suffix("_total").unwrap_or(name);
        let suffix = match metric.unit {
            Unit::Count => "",
            Unit::Seconds => "_seconds",
            Unit::Bytes => "_bytes",
            Unit::Ratio => "_ratio",
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
    const ALLOWED: [&str; 10] = [
        "endpoint", "hash", "kind", "outcome", "pool", "reason", "revision", "route", "state",
        "version",
    ];
    for metric in all() {
        assert!(metric.labels.iter().all(|label| ALLOWED.contains(label)), "{}", metric.name);
    }
    assert!(POOL.iter().all(|metric| metric.labels[0] == "pool"));
    assert!(ENDPOINT.iter().all(|metric| metric.labels[..2] == ["pool", "endpoint"]));
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
        assert!(matches!(row.matches('|').count(), 3 | 4 | 6), "{row}");
    }
}
