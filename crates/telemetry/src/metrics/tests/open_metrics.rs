//! The page in OpenMetrics text, held against the specification's grammar as far as it can go wrong here.
//!
//! Source: <https://github.com/prometheus/OpenMetrics>, 1.0, "Text format".

use std::time::UNIX_EPOCH;

use super::*;
use crate::trace::TraceId;

fn page() -> String {
    let metrics = full();
    let pool = metrics.pool(&PoolName::new("llama"));
    pool.request_ttft.observe(Duration::from_millis(30));
    let at = UNIX_EPOCH + Duration::from_millis(1_500);
    pool.request_ttft.exemplify(Duration::from_millis(30), TraceId(0xabc), at);
    // Of another owner, which must not get the exemplar of the first.
    metrics.pool(&PoolName::new("other")).request_ttft.observe(Duration::from_millis(30));
    metrics.encode_open(super::BOTH)
}

/// The suffixes that samples of a family may have.
fn suffixes(kind: &str) -> &'static [&'static str] {
    match kind {
        "counter" => &["_total"],
        "gauge" => &[""],
        "histogram" => &["_bucket", "_count", "_sum"],
        other => panic!("{other} is no kind that we use"),
    }
}

#[test]
fn every_sample_stands_under_its_family_with_the_suffix_of_its_kind() {
    let page = page();
    let mut families = BTreeSet::new();
    let mut of = (String::new(), String::new());
    for line in page.lines().filter(|line| *line != "# EOF") {
        assert!(!line.is_empty(), "no line is empty");
        let words: Vec<_> = line.splitn(4, ' ').collect();
        match words[..] {
            ["#", "TYPE", name, kind] => {
                of = (name.to_owned(), kind.to_owned());
                assert!(families.insert(name.to_owned()), "{name} is described twice");
            }
            ["#", "HELP", name, _] => {
                assert!(families.contains(name) || of.0 != name, "{line}");
            }
            ["#", ..] => panic!("{line}"),
            _ => {
                let name = line.split(['{', ' ']).next().unwrap();
                let suffix =
                    name.strip_prefix(&of.0).unwrap_or_else(|| panic!("{line} under {of:?}"));
                assert!(suffixes(&of.1).contains(&suffix), "{line} under {of:?}");
            }
        }
    }
    for family in &families {
        for suffix in ["_total", "_bucket", "_count", "_sum", "_created"] {
            assert!(!families.contains(&format!("{family}{suffix}")), "{family}{suffix} clashes");
        }
    }
}

#[test]
fn a_histogram_with_buckets_below_zero_has_neither_sum_nor_count() {
    let name = "wicketgate_shadow_regret_seconds";
    let (open, plain) = (page(), full().encode());
    for suffix in ["_sum{", "_count{"] {
        assert!(
            !open.contains(&format!("{name}{suffix}"))
                && plain.contains(&format!("{name}{suffix}"))
        );
    }
    assert!(open.contains(&format!("{name}_bucket{{le=\"+Inf\"")));
    assert!(open.contains("wicketgate_request_ttft_seconds_sum{"));
}

#[test]
fn the_page_ends_once_and_nothing_comes_after() {
    let page = page();
    assert!(page.ends_with("\n# EOF\n"));
    assert_eq!(page.matches("# EOF").count(), 1);
    assert!(
        metrics().encode_open(Names::default()).ends_with("\n# EOF\n"),
        "without exemplars too"
    );
}

#[test]
fn a_trace_stands_at_its_bucket_of_its_pool_and_nowhere_else() {
    let page = page();
    let marked: Vec<_> = page.lines().filter(|line| line.contains(" # {")).collect();
    let start = r#"wicketgate_request_ttft_seconds_bucket{le="0.04",pool="llama"} 1 # "#;
    let trace = r#"{trace_id="00000000000000000000000000000abc"} 0.03 1.500"#;
    assert_eq!(marked, [format!("{start}{trace}")]);
}

#[test]
fn a_pool_with_a_hostile_name_keeps_its_traces() {
    let metrics = metrics();
    let pool = metrics.pool(&PoolName::new("a\"b\\c\nd"));
    pool.request_ttft.exemplify(Duration::from_millis(30), TraceId(1), UNIX_EPOCH);
    let page = metrics.encode_open(Names::default());
    assert_eq!(page.lines().filter(|line| line.contains(" # {")).count(), 1, "{page}");
}

#[test]
fn plain_text_never_names_a_trace() {
    let metrics = full();
    let pool = metrics.pool(&PoolName::new("llama"));
    pool.request_ttft.exemplify(Duration::from_millis(30), TraceId(1), UNIX_EPOCH);
    let page = metrics.encode_with(super::BOTH);
    assert!(!page.contains("trace_id") && !page.contains("# EOF"));
}
