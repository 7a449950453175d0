//! Where requests go: by model, by prefix, by load.

use std::collections::HashMap;

use serde_json::{Value, json};
use sim::ServerSpec;

use crate::gateway::{Gateway, document};
use crate::http::{CHAT, Client, chat, post, request};
use crate::sims::{asked, asked_of_all, fast, fleet, prompt, slow, streamed};

fn two_pools(urls: &[String]) -> Value {
    let mut two = document(&urls[..1], json!({}));
    let other =
        json!({ "name": "other", "modelName": "org/Other-70B", "endpoints": [{ "url": urls[1] }] });
    two["spec"]["schedulers"].as_array_mut().unwrap().push(other);
    two
}

/// peers.md §3.3 (others send it to any worker, with 200) and §4 G 105.
#[tokio::test]
async fn a_model_goes_to_its_own_pool_and_an_unknown_one_to_none() {
    let specs = vec![fast(), ServerSpec { model: "org/Other-70B".to_owned(), ..fast() }];
    let fleet = sim::Fleet::start(specs).await.unwrap();
    let gateway = Gateway::with_document(&two_pools(&fleet.urls()), &[]).await;
    let mut body = prompt("Hi", 2);
    for (model, index) in [("llama-3.1-8b", 0), ("org/Other-70B", 1)] {
        body["model"] = json!(model);
        assert_eq!(chat(gateway.traffic, &body).await.status, 200);
        assert_eq!(asked(fleet.server(index)).await.len(), 1);
    }
    for (model, near) in
        [("llama-3.1-8B", "llama-3.1-8b"), ("org/other-70b", "org/Other-70B"), ("gpt-4", "")]
    {
        body["model"] = json!(model);
        let answer = chat(gateway.traffic, &body).await;
        assert_eq!((answer.status, answer.code()), (404, "model_not_found".to_owned()), "{model}");
        assert_eq!(answer.json()["error"]["param"], "model");
        let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(near) && message.contains(model), "{message}");
    }
    let messages = json!({ "model": "gpt-4", "max_tokens": 2, "messages": [{ "role": "user", "content": "Hi" }] });
    let answer = post(gateway.traffic, "/v1/messages", &messages).await;
    assert_eq!((answer.status, &answer.json()["error"]["type"]), (404, &json!("not_found_error")));
    assert_eq!(asked_of_all(&fleet).await.len(), 2);
}

/// With one pool there is no doubt; with two there is.
#[tokio::test]
async fn a_body_without_a_model_is_served_by_the_only_pool_and_refused_by_two() {
    let fleet = fleet(2, fast()).await;
    let mut body = prompt("Hi", 2);
    body.as_object_mut().unwrap().remove("model");
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    assert_eq!(chat(gateway.traffic, &body).await.status, 200);
    drop(gateway);
    let gateway = Gateway::with_document(&two_pools(&fleet.urls()), &[]).await;
    let answer = chat(gateway.traffic, &body).await;
    assert_eq!((answer.status, answer.code()), (400, "missing_model".to_owned()));
}

/// AWS's `bbr.enabled: false`: the one pool gets everything.
#[tokio::test]
async fn without_body_based_routing_any_model_goes_to_the_one_pool() {
    let fleet = fleet(1, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({ "bbr": { "enabled": false } })).await;
    let mut body = prompt("Hi", 2);
    body["model"] = json!("whatever");
    chat(gateway.traffic, &body).await;
    assert_eq!(asked(fleet.server(0)).await.len(), 1);
}

/// A conversation that grows turn by turn.
fn turn(conversation: usize, number: usize) -> Value {
    let mut messages = vec![
        json!({ "role": "system", "content": format!("You are assistant {conversation}. {}", "Be brief. ".repeat(60)) }),
    ];
    for past in 0..=number {
        let filler = format!("word{conversation}x{past} ").repeat(60);
        messages.push(json!({ "role": "user", "content": filler.clone() }));
        if past < number {
            messages.push(json!({ "role": "assistant", "content": format!("answer {filler}") }));
        }
    }
    json!({ "model": "llama-3.1-8b", "messages": messages, "max_tokens": 4, "ignore_eos": true })
}

/// The reason for a prefix index: the next turn finds its cache.
#[tokio::test]
async fn the_turns_of_a_conversation_stay_on_one_endpoint() {
    let fleet = fleet(4, fast()).await;
    let gateway = Gateway::over(&fleet.urls(), json!({})).await;
    let (conversations, turns) = (12, 6);
    for number in 0..turns {
        for conversation in 0..conversations {
            let id = format!("c{conversation}-");
            let body = turn(conversation, number).to_string();
            let answer = crate::http::ask(
                gateway.traffic,
                "POST",
                CHAT,
                &[("X-Request-Id", &id)],
                body.as_bytes(),
            )
            .await;
            assert_eq!(answer.status, 200);
        }
    }
    let mut homes: HashMap<String, HashMap<usize, usize>> = HashMap::new();
    for (index, server) in fleet.servers().iter().enumerate() {
        for request in asked(server).await {
            let id =
                request.headers.iter().find(|(name, _)| name == "x-request-id").unwrap().1.clone();
            *homes.entry(id).or_default().entry(index).or_default() += 1;
        }
    }
    let stayed: usize = homes.values().map(|by_server| by_server.values().max().unwrap()).sum();
    let share = stayed as f64 / (conversations * turns) as f64;
    assert!(share >= 0.95, "{share}: {homes:?}");
    let used: std::collections::HashSet<usize> =
        homes.values().flat_map(HashMap::keys).copied().collect();
    assert!(used.len() >= 3, "conversations are spread: {used:?}");
    assert!(gateway.metric("wicketgate_prefix_blocks_matched_total", &[]).await > 0.0);
}

/// The point 4: 429 with `Retry-After` when every endpoint is saturated, and 503 is not it
/// (peers.md §4 D 64).
#[tokio::test]
async fn a_pool_whose_queues_are_full_answers_429_until_one_has_room() {
    let fleet = fleet(2, ServerSpec { max_num_seqs: Some(1), ..slow() }).await;
    let mut tight = document(&fleet.urls(), json!({}));
    tight["spec"]["schedulers"][0]["saturation"] = json!({ "queueDepth": 1 });
    let gateway = Gateway::with_document(&tight, &[]).await;
    gateway.scraped(2).await;
    let is_full = async || {
        gateway.endpoints().await.iter().all(|endpoint| endpoint["waiting"].as_u64() >= Some(1))
    };
    let mut open = Vec::new();
    while !is_full().await {
        let number = open.len();
        assert!(number < 20, "more were taken than fit: {:?}", gateway.endpoints().await);
        let mut client = Client::connect(gateway.traffic).await;
        let body = streamed(&format!("Question {number}"), 3000).to_string();
        client.send(&request("POST", CHAT, &[], body.as_bytes())).await;
        open.push(client);
        gateway
            .until("it was placed", async || asked_of_all(&fleet).await.len() == number + 1)
            .await;
        let at_work = async || {
            let count = |name| gateway.metric(name, &[]);
            count("wicketgate_endpoint_waiting_requests").await
                + count("wicketgate_endpoint_running_requests").await
        };
        gateway
            .until("it is in the metrics", async || at_work().await == (number + 1) as f64)
            .await;
    }
    let answer = chat(gateway.traffic, &prompt("Hi", 2)).await;
    assert_eq!((answer.status, answer.code()), (429, "saturated".to_owned()), "{}", answer.text());
    assert!(answer.header("retry-after").unwrap().parse::<u32>().unwrap() >= 1);
    assert_eq!(answer.header("x-wicketgate-component"), Some("flow"));
    assert_eq!(answer.json()["error"]["type"], "rate_limit_error");
    assert_eq!(gateway.metric("wicketgate_requests_rejected_total", &["saturated"]).await, 1.0);
    assert_eq!(asked_of_all(&fleet).await.len(), open.len(), "nothing more was sent");
    assert_eq!(gateway.admin("/readyz").await.status, 200, "full is not broken");
    drop(open);
    gateway
        .until("there is room again", async || {
            chat(gateway.traffic, &prompt("Hi", 2)).await.status == 200
        })
        .await;
}

/// `--policy`, for comparison.
#[tokio::test]
async fn round_robin_gives_each_endpoint_its_turn() {
    let fleet = fleet(3, fast()).await;
    let gateway = Gateway::with_flags(&fleet.urls(), &["--policy", "round-robin"]).await;
    gateway.until("all take part", async || gateway.endpoints().await.len() == 3).await;
    for _ in 0..9 {
        assert_eq!(chat(gateway.traffic, &prompt("the same prompt", 2)).await.status, 200);
    }
    for server in fleet.servers() {
        assert_eq!(asked(server).await.len(), 3);
    }
}

/// Design, section 5: a hot prefix spreads as its load grows (peers.md §3.2: one peer sends every
/// equal prompt to one worker, however many there are).
#[tokio::test]
async fn a_hot_prompt_spreads_to_a_second_endpoint_as_its_load_grows() {
    let fleet = fleet(2, slow()).await;
    let never = json!({ "busyInterval": "30s", "idleInterval": "60s", "staleAfter": "300s" });
    let gateway = Gateway::over(&fleet.urls(), json!({ "scrape": never })).await;
    let mut open = Vec::new();
    for _ in 0..80 {
        let mut client = Client::connect(gateway.traffic).await;
        let body = streamed(&"the very same prompt ".repeat(100), 4000).to_string();
        client.send(&request("POST", CHAT, &[], body.as_bytes())).await;
        open.push(client);
    }
    gateway.until("all are placed", async || asked_of_all(&fleet).await.len() == 80).await;
    let share = asked(fleet.server(0)).await.len();
    assert!((10..=70).contains(&share), "{share} of 80");
}
