//! Ways to write the same thing, and things that are wrong.

use super::*;

#[test]
fn however_a_number_is_written_it_is_the_same() {
    for line in [
        "vllm:num_requests_waiting 3",
        "vllm:num_requests_waiting 3.0",
        "vllm:num_requests_waiting\t3e0",
        "vllm:num_requests_waiting   +3 ",
        "  vllm:num_requests_waiting 3",
        "vllm:num_requests_waiting 3 1700000000000",
        "vllm:num_requests_waiting 3\r",
        "vllm:num_requests_waiting{} 3",
        "vllm:num_requests_waiting{engine=\"0\"}3",
        "vllm:num_requests_waiting {engine=\"0\",} 3 # {trace_id=\"1\"} 1.0 1.7e9",
        "vllm:num_requests_waiting{note=\"} \\\" 9\",engine=\"0\"} 3",
    ] {
        let page = read_text(&format!("{line}\n# EOF\n"));
        assert_eq!(page.metrics.waiting, Some(3), "{line}");
        assert_eq!(page.anomalies.rejected_values + page.anomalies.malformed_lines, 0, "{line}");
    }
}

#[test]
fn neither_type_lines_nor_a_last_line_end_are_needed() {
    let page = read_text("vllm:num_requests_running 5\nvllm:num_requests_waiting 3");
    assert_eq!((page.metrics.running, page.metrics.waiting), (Some(5), Some(3)));
    let untyped = "# TYPE vllm:num_requests_waiting untyped\nvllm:num_requests_waiting 3\n";
    assert_eq!(read_text(untyped).metrics.waiting, Some(3));
}

#[test]
fn the_whole_page_with_crlf_says_the_same() {
    let unix = std::str::from_utf8(VLLM_LOADED).unwrap();
    assert_eq!(read_text(&unix.replace('\n', "\r\n")), read_text(unix));
}

#[test]
fn a_value_that_cannot_be_right_is_unknown_and_counted_and_never_zero() {
    for value in ["NaN", "+Inf", "-Inf", "-1", "-0.5", "1e308", "1000001"] {
        let page =
            read_text(&format!("vllm:num_requests_waiting {value}\nvllm:num_requests_running 5\n"));
        assert_eq!(page.metrics.waiting, None, "{value}");
        assert_eq!(page.anomalies.rejected_values, 1, "{value}");
        assert_eq!(page.anomalies.missing, ["kv_usage", "cache_config"], "{value}");
    }
}

#[test]
fn a_kv_use_beyond_one_is_rounding_or_no_share() {
    let usage = |value: &str| {
        read_text(&format!("vllm:num_requests_running 1\nvllm:kv_cache_usage_perc {value}\n"))
    };
    assert_eq!(usage("1.0000001").metrics.kv_usage, ratio(1.0));
    for value in ["45.0", "1.02", "NaN", "-0.1"] {
        assert_eq!(usage(value).metrics.kv_usage, None, "{value}");
        assert_eq!(usage(value).anomalies.rejected_values, 1, "{value}");
    }
}

#[test]
fn a_wrong_present_name_is_not_replaced_by_a_former_one() {
    let page = read_text(
        "vllm:num_requests_running 1\nvllm:kv_cache_usage_perc NaN\nvllm:gpu_cache_usage_perc 0.1\n",
    );
    assert_eq!(page.metrics.kv_usage, None);
}

#[test]
fn of_a_series_that_stands_twice_the_first_counts() {
    let page = read_text(
        "vllm:num_requests_waiting{engine=\"0\"} 3\nvllm:num_requests_waiting{engine=\"0\"} 9\n",
    );
    assert_eq!(page.metrics.waiting, Some(3));
    assert_eq!(page.anomalies.duplicate_series, 1);
}

#[test]
fn a_line_out_of_format_is_counted_if_it_is_one_that_is_read() {
    let page = read_text(
        "vllm:num_requests_running 1\nvllm:num_requests_waiting{engine=\"0} 3\n\
         vllm:num_requests_waiting three\nvllm:num_requests_waiting\n\
         vllm:something_else{broken 1\n",
    );
    assert_eq!(page.metrics.waiting, None);
    assert_eq!(page.anomalies.malformed_lines, 3);
}

#[test]
fn names_are_compared_whole() {
    let page = read_text(
        "vllm:num_requests_running 1\nvllm:num_requests_waiting_by_reason{reason=\"capacity\"} 9\n\
         vllm:num_requests_runnin 8\nxvllm:num_requests_waiting 7\n",
    );
    assert_eq!((page.metrics.running, page.metrics.waiting), (Some(1), None));
}

#[test]
fn requests_set_aside_for_an_adapter_slot_are_told_apart() {
    let page = read_text(
        "vllm:num_requests_waiting{engine=\"0\"} 9\n\
         vllm:num_requests_waiting_by_reason{engine=\"0\",reason=\"capacity\"} 2\n\
         vllm:num_requests_waiting_by_reason{engine=\"0\",reason=\"deferred\"} 7\n",
    );
    assert_eq!((page.metrics.waiting, page.metrics.waiting_deferred), (Some(9), Some(7)));
}

#[test]
fn what_an_engine_could_say_and_does_not_is_listed() {
    let page = read_text("vllm:num_requests_running 1\n");
    assert_eq!(page.anomalies.missing, ["waiting", "kv_usage", "cache_config"]);
}

#[test]
fn zero_blocks_and_empty_blocks_are_unknown() {
    let page = read_text(
        "vllm:num_requests_running 1\n\
         vllm:cache_config_info{block_size=\"0\",num_gpu_blocks=\"0\"} 1.0\n",
    );
    assert_eq!((page.metrics.block_size_tokens, page.metrics.block_count), (None, None));
}
