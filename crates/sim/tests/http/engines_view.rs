//! The metrics pages, read by the code that reads real ones.

use engines::parse;
use types::{AdapterId, EngineKind};
use wicketgate_sim::ServerSpec;

use crate::client::{CHAT, Live, chat, fast, get, last_ended, post, start};

#[tokio::test]
async fn every_dialects_page_says_what_the_engine_does() {
    for engine in [EngineKind::Vllm, EngineKind::Sglang, EngineKind::Tgi, EngineKind::TensorRtLlm] {
        let fleet = start(ServerSpec { engine, ..fast() }).await;
        let address = fleet.server(0).address();
        let mut live = Live::post(address, CHAT, &chat(&"word ".repeat(400), 3000, true)).await;
        live.until("data:", 5).await;
        let page = get(address, "/metrics").await;
        assert!(page.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
        let page = parse(&page.body, None).unwrap();
        let metrics = page.metrics;
        assert_eq!(metrics.engine, engine);
        assert_eq!((metrics.running, metrics.waiting), (Some(1), Some(0)), "{engine:?}");
        if engine == EngineKind::Tgi {
            continue;
        }
        let usage = metrics.kv_usage.unwrap().get();
        assert!((0.001..0.02).contains(&usage), "{engine:?}: {usage}");
        let block_size = metrics.block_size_tokens.unwrap();
        let tokens = metrics.block_count.unwrap() * u64::from(block_size);
        assert!((447_000..=448_000).contains(&tokens), "{engine:?}: {tokens}");
    }
}

#[tokio::test]
async fn a_page_lags_by_a_step_and_an_accepted_request_is_in_no_gauge() {
    let fleet = start(ServerSpec { time_scale: 200.0, ..ServerSpec::default() }).await;
    let address = fleet.server(0).address();
    let _live = Live::post(address, CHAT, &chat("hello", 5, true)).await;
    // It arrives at once and enters after 15 modelled milliseconds, three real seconds.
    fleet.server(0).requests(0, crate::client::PATIENCE).await;
    let metrics = parse(&get(address, "/metrics").await.body, None).unwrap().metrics;
    assert_eq!((metrics.running, metrics.waiting), (Some(0), Some(0)));
}

#[tokio::test]
async fn counters_of_the_prefix_cache_count_tokens() {
    let fleet = start(fast()).await;
    let address = fleet.server(0).address();
    for _ in 0..2 {
        post(address, CHAT, &chat(&"same".repeat(100), 1, false)).await;
    }
    let metrics = parse(&get(address, "/metrics").await.body, None).unwrap().metrics;
    assert_eq!(metrics.prefix_query_tokens, Some(206));
    assert_eq!(metrics.prefix_hit_tokens, Some(96));
}

#[tokio::test]
async fn adapters_in_use_are_on_the_page_and_idle_ones_are_not() {
    let adapters = vec!["sql".to_owned(), "legal".to_owned()];
    let fleet = start(ServerSpec { adapters, time_scale: 0.1, ..ServerSpec::default() }).await;
    let address = fleet.server(0).address();
    let lora = async || parse(&get(address, "/metrics").await.body, None).unwrap().metrics.lora;
    let mut body = chat("hello", 400, true);
    body["model"] = "sql".into();
    let mut live = Live::post(address, CHAT, &body).await;
    live.until("data:", 3).await;
    let during = lora().await.unwrap();
    assert_eq!((during.max, during.running), (4, vec![AdapterId::of("sql")]));
    drop(live);
    last_ended(fleet.server(0)).await;
    post(address, CHAT, &chat("hello", 1, false)).await;
    assert_eq!(lora().await.unwrap().running, []);
    let page = get(address, "/metrics").await.text();
    assert_eq!(page.matches("\nvllm:lora_requests_info{").count(), 2, "old label sets stay");
}

#[tokio::test]
async fn models_are_read_back_with_their_parents() {
    let fleet = start(ServerSpec { adapters: vec!["sql".to_owned()], ..fast() }).await;
    let body = get(fleet.server(0).address(), "/v1/models").await.body;
    let models = engines::models::parse(&body).unwrap();
    assert_eq!(models.len(), 2);
    assert_eq!(models[1].parent.as_deref(), Some("llama-3.1-8b"));
    assert_eq!(models[0].max_model_len, Some(131_072));
}
