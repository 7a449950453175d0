//! What each engine's page says, on captured pages where there are any.

use types::LoraMetrics;

use super::*;
use crate::dialect::detect;

fn vllm_cpu() -> EndpointMetrics {
    EndpointMetrics {
        engine: EngineKind::Vllm,
        waiting: Some(0),
        waiting_deferred: Some(0),
        running: Some(0),
        kv_usage: ratio(0.0),
        block_size_tokens: Some(128),
        block_count: Some(4096),
        prefix_query_tokens: Some(0),
        prefix_hit_tokens: Some(0),
        ..EndpointMetrics::default()
    }
}

fn lora(names: &[&str]) -> Option<LoraMetrics> {
    Some(LoraMetrics { max: 2, running: adapters(names), waiting: adapters(names) })
}

#[test]
fn vllm_under_load_with_two_adapters() {
    let page = read(VLLM_LOADED);
    let expected = EndpointMetrics {
        waiting: Some(32),
        running: Some(16),
        kv_usage: ratio(0.017094017094017144),
        prefix_query_tokens: Some(25_298),
        prefix_hit_tokens: Some(15_360),
        lora: lora(&["lora-a", "lora-b"]),
        ..vllm_cpu()
    };
    assert_eq!(page, Page { metrics: expected, anomalies: Anomalies::default() });
}

#[test]
fn vllm_idle_has_no_report_on_adapters_yet() {
    let page = read(testdata!("vllm-0.32.0-cpu-idle.trimmed.txt"));
    assert_eq!(page, Page { metrics: vllm_cpu(), anomalies: Anomalies::default() });
}

#[test]
fn vllm_after_load_reports_no_adapters_though_older_reports_name_some() {
    let page = read(testdata!("vllm-0.32.0-cpu-after-load-aborts.trimmed.txt"));
    let expected = EndpointMetrics {
        prefix_query_tokens: Some(61_153),
        prefix_hit_tokens: Some(46_080),
        lora: lora(&[]),
        ..vllm_cpu()
    };
    assert_eq!(page.metrics, expected);
}

#[test]
fn vllm_under_kv_pressure_and_after_it() {
    let pressed = EndpointMetrics {
        waiting: Some(27),
        running: Some(13),
        kv_usage: ratio(0.9921259842519685),
        block_size_tokens: Some(32),
        block_count: Some(128),
        prefix_query_tokens: Some(142_189),
        prefix_hit_tokens: Some(122_240),
        ..vllm_cpu()
    };
    let page = read(testdata!("vllm-0.32.0-cpu-loaded-kv-pressure-preemptions.trimmed.txt"));
    assert_eq!(page.metrics, pressed);
    let after = EndpointMetrics {
        waiting: Some(0),
        running: Some(0),
        kv_usage: ratio(0.0),
        prefix_query_tokens: Some(261_939),
        prefix_hit_tokens: Some(227_840),
        ..pressed
    };
    let page = read(testdata!("vllm-0.32.0-cpu-after-load-preemptions.trimmed.txt"));
    assert_eq!(page.metrics, after);
}

#[test]
fn llama_cpp_counts_computed_and_cached_tokens_apart() {
    for (page, running, waiting, asked, cached) in [
        (testdata!("llama-server-b11434-idle.txt"), 0, 0, 37, 0),
        (testdata!("llama-server-b11434-loaded.txt"), 3, 4, 2833, 5),
        (testdata!("llama-server-b11434-after-load.txt"), 0, 0, 7861, 2697),
    ] {
        let page = read(page);
        assert_eq!(page.metrics.engine, EngineKind::LlamaCpp);
        assert_eq!((page.metrics.running, page.metrics.waiting), (Some(running), Some(waiting)));
        assert_eq!(page.metrics.prefix_query_tokens, Some(asked));
        assert_eq!(page.metrics.prefix_hit_tokens, Some(cached));
        assert_eq!(page.metrics.kv_usage, None);
        assert_eq!(page.anomalies.missing, ["kv_usage"]);
    }
}

#[test]
fn sglang_ranks_are_added_up_but_not_their_tensor_parallel_copies_or_priorities() {
    let page = read(testdata!("sglang-0.5.23-dp2.txt"));
    let expected = EndpointMetrics {
        engine: EngineKind::Sglang,
        waiting: Some(4),
        running: Some(100),
        kv_usage: ratio(0.5),
        block_size_tokens: Some(64),
        block_count: Some(16_384),
        prefix_query_tokens: Some(1_000_000),
        prefix_hit_tokens: Some(350_000),
        ..EndpointMetrics::default()
    };
    assert_eq!(page, Page { metrics: expected, anomalies: Anomalies::default() });
}

#[test]
fn sglang_without_gauges_for_its_pages_tells_them_as_labels() {
    let page = read_text(
        "sglang:num_queue_reqs 1\nsglang:cache_config_info{num_pages=\"512\",page_size=\"16\"} 1.0\n",
    );
    assert_eq!((page.metrics.block_size_tokens, page.metrics.block_count), (Some(16), Some(512)));
}

#[test]
fn tgi_says_nothing_about_kv_and_that_is_not_missing() {
    let page = read(testdata!("tgi-3.txt"));
    let expected = EndpointMetrics {
        engine: EngineKind::Tgi,
        waiting: Some(2),
        running: Some(24),
        prefix_query_tokens: Some(1_900_000),
        prefix_hit_tokens: Some(700_000),
        ..EndpointMetrics::default()
    };
    assert_eq!(page, Page { metrics: expected, anomalies: Anomalies::default() });
}

#[test]
fn tensorrt_llm_speaks_two_dialects() {
    let serve = EndpointMetrics {
        engine: EngineKind::TensorRtLlm,
        waiting: Some(1),
        running: Some(37),
        running_max: Some(256),
        kv_usage: ratio(0.4471),
        block_size_tokens: Some(32),
        block_count: Some(26_112),
        prefix_query_tokens: Some(1_800_000),
        prefix_hit_tokens: Some(900_000),
        ..EndpointMetrics::default()
    };
    assert_eq!(read(testdata!("trtllm-serve.txt")).metrics, serve);
    let triton = EndpointMetrics {
        waiting: Some(3),
        running_max: Some(64),
        kv_usage: ratio(0.52),
        block_size_tokens: Some(64),
        prefix_query_tokens: None,
        prefix_hit_tokens: None,
        ..serve
    };
    assert_eq!(read(testdata!("triton-trtllm.txt")).metrics, triton);
}

#[test]
fn plain_triton_tells_at_least_what_is_pending() {
    let page = read_text("nv_inference_pending_request_count{model=\"a\",version=\"1\"} 7\n");
    assert_eq!(page.metrics.waiting, Some(7));
    assert_eq!(page.anomalies.missing, ["running", "kv_usage", "cache_config"]);
}

#[test]
fn a_gateway_is_not_taken_for_an_engine() {
    for page in [
        testdata!("dynamo-frontend-1.6.1-kv-router.trimmed.txt"),
        testdata!("smg-1.13.0.trimmed.txt"),
        testdata!("sglang-router-0.3.2.trimmed.txt"),
        testdata!("vllm-router-0.1.17.txt"),
    ] {
        assert_eq!(detect(page), EngineKind::Unknown);
        assert_eq!(parse(page, None), Err(PageError::UnknownEngine));
        assert_eq!(parse(page, Some(EngineKind::Vllm)), Err(PageError::UnknownEngine));
    }
}

#[test]
fn a_page_of_another_engine_than_configured_says_so() {
    let found = EngineKind::Sglang;
    assert_eq!(
        parse(b"sglang:num_queue_reqs 1\n", Some(EngineKind::Vllm)),
        Err(PageError::OtherEngine { expected: EngineKind::Vllm, found })
    );
    let both = b"nv_gpu_utilization 1\nvllm:num_requests_waiting 2\n";
    assert_eq!(parse(both, Some(EngineKind::Vllm)).unwrap().metrics.waiting, Some(2));
}

#[test]
fn an_engine_is_known_by_its_help_before_it_has_a_series() {
    assert_eq!(detect(b"# HELP vllm:num_requests_running x\n"), EngineKind::Vllm);
}

#[test]
fn both_names_of_vllm_kv_use_are_read_and_the_present_one_wins() {
    let former = "vllm:gpu_cache_usage_perc{engine=\"0\"} 0.5\n";
    assert_eq!(read_text(former).metrics.kv_usage, ratio(0.5));
    let both = format!("{former}vllm:kv_cache_usage_perc{{engine=\"0\"}} 0.25\n");
    assert_eq!(read_text(&both).metrics.kv_usage, ratio(0.25));
}

#[test]
fn data_parallel_ranks_behind_one_port_are_one_endpoint() {
    let page = read_text(
        "vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 3\n\
         vllm:num_requests_waiting{engine=\"1\",model_name=\"m\"} 4\n\
         vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 10\n\
         vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 20\n\
         vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 1.0\n\
         vllm:kv_cache_usage_perc{engine=\"1\",model_name=\"m\"} 0.5\n\
         vllm:prefix_cache_queries_total{engine=\"0\",model_name=\"m\"} 5\n\
         vllm:prefix_cache_queries_total{engine=\"1\",model_name=\"m\"} 6\n\
         vllm:cache_config_info{block_size=\"16\",engine=\"0\",num_gpu_blocks=\"100\"} 1\n\
         vllm:cache_config_info{block_size=\"16\",engine=\"1\",num_gpu_blocks=\"100\"} 1\n",
    );
    let expected = EndpointMetrics {
        engine: EngineKind::Vllm,
        waiting: Some(7),
        running: Some(30),
        kv_usage: ratio(0.75),
        block_size_tokens: Some(16),
        block_count: Some(200),
        prefix_query_tokens: Some(11),
        ..EndpointMetrics::default()
    };
    assert_eq!(page, Page { metrics: expected, anomalies: Anomalies::default() });
}

#[test]
fn a_sleeping_engine_is_asleep_by_either_sign() {
    for (line, asleep) in [
        ("vllm:engine_sleep_state{engine=\"0\",sleep_state=\"awake\"} 1.0", false),
        ("vllm:engine_sleep_state{engine=\"0\",sleep_state=\"awake\"} 0.0", true),
        ("vllm:engine_sleep_state{engine=\"0\",sleep_state=\"weights_offloaded\"} 1.0", true),
        ("vllm:engine_sleep_state{engine=\"0\",sleep_state=\"discard_all\"} 0.0", false),
        ("vllm:engine_sleep_state{engine=\"0\",sleep_state=\"awake\"} NaN", false),
    ] {
        let page = read_text(&format!("vllm:num_requests_waiting 0\n{line}\n"));
        assert_eq!(page.metrics.asleep, asleep, "{line}");
        assert_eq!(page.anomalies.rejected_values, u32::from(line.ends_with("NaN")));
    }
}

#[test]
fn the_newest_report_on_adapters_wins_wherever_it_stands() {
    let report = |running: &str, waiting: &str, time: &str| {
        format!(
            "vllm:lora_requests_info{{max_lora=\"4\",running_lora_adapters=\"{running}\",\
             waiting_lora_adapters=\"{waiting}\"}} {time}\n"
        )
    };
    let page = read_text(&format!(
        "vllm:num_requests_waiting 0\n{}{}{}{}",
        report("old", "", "1.7959571e+09"),
        report(" sql-r16 ,,fr-r16,sql-r16", "legal-r64", "1.7959574024e+09"),
        report("", "older", "1.0"),
        report("never", "", "NaN"),
    ));
    let expected = LoraMetrics {
        max: 4,
        running: adapters(&["sql-r16", "fr-r16"]),
        waiting: adapters(&["legal-r64"]),
    };
    assert_eq!(page.metrics.lora, Some(expected));
    assert_eq!(page.anomalies.rejected_values, 1);
}

#[test]
fn a_cache_configuration_that_is_not_known_yet_is_unknown_and_no_error() {
    let page = read_text(
        "vllm:num_requests_waiting 0\nvllm:num_requests_running 0\nvllm:kv_cache_usage_perc 0\n\
         vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"None\"} 1.0\n",
    );
    assert_eq!((page.metrics.block_size_tokens, page.metrics.block_count), (Some(16), None));
    assert_eq!(page.anomalies, Anomalies::default());
}
