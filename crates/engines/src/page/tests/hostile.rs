//! Bytes that no engine writes.

use proptest::prelude::*;

use super::*;
use crate::dialect::detect;

#[test]
fn what_is_no_page_is_an_error() {
    for page in
        [&b""[..], b"\n\n", b"# EOF\n", b"<html>502</html>", b"{\"error\":\"x\"}", b"\xff\xfe"]
    {
        assert_eq!(parse(page, None), Err(PageError::UnknownEngine));
    }
    assert_eq!(parse(b"\x1f\x8b\x08vllm:", None), Err(PageError::Compressed));
    let huge = vec![b'\n'; PAGE_BYTES_MAX + 1];
    assert_eq!(parse(&huge, None), Err(PageError::TooLarge(PAGE_BYTES_MAX + 1)));
}

#[test]
fn a_page_without_any_usable_load_is_an_error_that_says_what_was_wrong() {
    let page = b"vllm:num_requests_waiting NaN\nvllm:num_requests_running -1\n";
    let Err(PageError::NoLoad(anomalies)) = parse(page, None) else { panic!("it was used") };
    assert_eq!(anomalies.rejected_values, 2);
}

#[test]
fn a_page_of_endless_series_is_read_in_bounded_memory_and_sums_no_nonsense() {
    let mut page = String::new();
    for rank in 0..40_000 {
        page.push_str(&format!("vllm:num_requests_waiting{{engine=\"{rank}\"}} 1\n"));
    }
    let page = read_text(&page);
    assert_eq!(page.metrics.waiting, Some(256));
    assert_eq!(page.anomalies.rejected_values, 40_000 - 256);
}

#[test]
fn an_adapter_name_that_is_no_text_is_left_out() {
    let page = read(
        b"vllm:num_requests_waiting 0\nvllm:lora_requests_info{max_lora=\"2\",\
          running_lora_adapters=\"a,\xff\",waiting_lora_adapters=\"\"} 1\n",
    );
    assert_eq!(page.metrics.lora.unwrap().running, adapters(&["a"]));
    assert_eq!(page.anomalies.rejected_values, 1);
}

#[test]
fn a_report_on_adapters_without_its_maximum_is_left_out() {
    for max in ["", "max_lora=\"many\",", "max_lora=\"-1\","] {
        let page = read_text(&format!(
            "vllm:num_requests_waiting 0\nvllm:lora_requests_info{{{max}running_lora_adapters=\"a\"}} 1\n"
        ));
        assert_eq!(page.metrics.lora, None, "{max}");
        assert_eq!(page.anomalies.rejected_values, 1, "{max}");
    }
}

/// A line of a metric that is read, with anything behind it.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let name = prop::sample::select(vec![
        "vllm:num_requests_waiting",
        "vllm:kv_cache_usage_perc",
        "vllm:cache_config_info",
        "vllm:lora_requests_info",
        "vllm:engine_sleep_state",
        "vllm:prefix_cache_hits_total",
    ]);
    let junk = prop::collection::vec(
        prop_oneof![any::<u8>(), prop::sample::select(b"{}\"\\=, \n0123456789.eE+-NaInf".to_vec())],
        0..60,
    );
    (name, junk).prop_map(|(name, junk)| [name.as_bytes(), &junk, b"\n"].concat())
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(page in prop::collection::vec(any::<u8>(), 0..400)) {
        detect(&page);
        let _ = parse(&page, None);
    }

    #[test]
    fn no_line_makes_it_panic(lines in prop::collection::vec(line(), 1..20)) {
        let _ = parse(&lines.concat(), None);
    }

    #[test]
    fn a_real_page_with_bytes_changed_stays_in_bounds(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..200),
        keep in any::<prop::sample::Index>(),
    ) {
        let mut page = VLLM_LOADED.to_vec();
        for (at, byte) in changes {
            let at = at.index(page.len());
            page[at] = byte;
        }
        page.truncate(keep.index(page.len()) + 1);
        if let Ok(page) = parse(&page, None) {
            prop_assert!(page.metrics.waiting.is_none_or(|waiting| waiting <= 256_000_000));
            prop_assert!(page.metrics.block_count != Some(0));
        }
    }

    #[test]
    fn lines_that_are_not_read_change_nothing(junk in "[a-z#{}\"= ]{0,80}", at in 0_usize..600) {
        let text = std::str::from_utf8(VLLM_LOADED).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.insert(at.min(lines.len()), &junk);
        prop_assert_eq!(read_text(&lines.join("\n")), read(VLLM_LOADED));
    }
}
