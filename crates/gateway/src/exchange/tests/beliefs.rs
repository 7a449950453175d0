//! What answers teach about caches and about predictions.

use crate::Exchange;
use crate::testing::{at, exchange, pool_of};

use super::*;

fn ask(gateway: &Arc<Gateway>, text: &str, stream: bool) -> Exchange {
    let mut exchange = exchange(gateway);
    let body = format!(
        r#"{{"model":"llama","stream":{stream},"messages":[{{"role":"user","content":"{text}"}}]}}"#
    );
    exchange.place(body.as_bytes(), None, at(0)).unwrap();
    exchange.attempt(at(0)).unwrap();
    exchange.answered(200, None, at(0));
    exchange
}

/// One exchange whose whole answer says how many tokens were cached.
fn answer(gateway: &Arc<Gateway>, text: &str, usage: &str) {
    let mut exchange = ask(gateway, text, false);
    exchange.watch(Some("application/json"));
    exchange.payload(format!(r#"{{"choices":[],"usage":{usage}}}"#).as_bytes(), at(1));
    exchange.finish(Ending::Complete, at(1));
}

fn believed_and_found(gateway: &Gateway) -> (u64, u64) {
    let metrics = &gateway.catalog().pools[0].metrics;
    (metrics.prefix_tokens_believed.get(), metrics.prefix_tokens_found.get())
}

fn long(number: usize) -> String {
    format!("{number:06} {}", "word ".repeat(800))
}

#[test]
fn what_was_believed_is_held_against_what_was_found() {
    let gateway = pool_of(1);
    let text = long(1);
    let cold = r#"{"prompt_tokens":1000,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":0}}"#;
    answer(&gateway, &text, cold);
    assert_eq!(believed_and_found(&gateway), (0, 0));
    let half = r#"{"prompt_tokens":1000,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":500}}"#;
    answer(&gateway, &text, half);
    let (believed, found) = believed_and_found(&gateway);
    assert_eq!(believed, 15 * 64, "all full blocks of the prompt");
    assert!((7 * 64..=8 * 64).contains(&found), "{found}");
}

#[test]
fn an_answer_that_does_not_say_what_was_cached_counts_nowhere() {
    let gateway = pool_of(1);
    answer(&gateway, &long(1), r#"{"prompt_tokens":1000,"completion_tokens":1}"#);
    answer(&gateway, &long(1), r#"{"prompt_tokens":1000,"completion_tokens":1}"#);
    assert_eq!(believed_and_found(&gateway), (0, 0));
}

#[test]
fn the_usage_of_a_stream_counts_like_that_of_a_whole_answer() {
    let gateway = pool_of(1);
    for _ in 0..2 {
        let mut exchange = ask(&gateway, &long(1), true);
        exchange.watch(Some("text/event-stream"));
        exchange.payload(b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", at(1));
        exchange.payload(
            b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":1,\"prompt_tokens_details\":{\"cached_tokens\":900}}}\n\ndata: [DONE]\n\n",
            at(2),
        );
        exchange.finish(Ending::Complete, at(2));
    }
    assert_eq!(believed_and_found(&gateway).0, 15 * 64);
}

#[test]
fn an_endpoint_that_forgets_sooner_than_it_says_is_believed_to_hold_less() {
    // It reports room for a hundred such prompts and holds ten.
    const HELD: usize = 10;
    let gateway = pool_of(1);
    let slot = gateway.members()[0].endpoint.slot;
    gateway.index.set_capacity(slot, 100 * 15);
    let mut cache: Vec<usize> = Vec::new();
    let mut seed = 1_u64;
    for _ in 0..2000 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let number = (seed >> 33) as usize % 60;
        let hit = cache.iter().position(|held| *held == number);
        if let Some(at) = hit {
            cache.remove(at);
        }
        cache.push(number);
        if cache.len() > HELD {
            cache.remove(0);
        }
        let cached = if hit.is_some() { 992 } else { 0 };
        let usage = format!(
            r#"{{"prompt_tokens":1000,"completion_tokens":1,"prompt_tokens_details":{{"cached_tokens":{cached}}}}}"#
        );
        answer(&gateway, &long(number), &usage);
    }
    let capacity = gateway.index.effective_capacity(slot);
    assert!((5 * 15..=20 * 15).contains(&capacity), "{capacity} blocks for {} held", HELD * 15);
}

#[test]
fn a_prediction_is_held_against_the_first_token_of_a_stream() {
    let gateway = pool_of(1);
    let mut exchange = ask(&gateway, &long(1), true);
    let predicted = exchange.predicted().unwrap();
    exchange.watch(Some("text/event-stream"));
    exchange.payload(b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", at(2));
    exchange.payload(b"data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n", at(9));
    exchange.finish(Ending::Complete, at(9));
    let metrics = &gateway.catalog().pools[0].metrics;
    assert_eq!(metrics.prediction_error.count(), 1);
    let quotient = predicted.as_secs_f64() / 2.0;
    assert!((metrics.prediction_error.sum() - quotient).abs() < 1e-9);
    let view = &gateway.endpoints(at(9))[0];
    assert_eq!(view.predictions, 1);
    assert!((view.prediction_bias.unwrap() - quotient).abs() < 1e-9);
}

#[test]
fn events_that_come_before_the_prompt_is_computed_are_no_first_token() {
    let gateway = pool_of(1);
    let mut exchange = exchange(&gateway);
    exchange.meta.route = Route::Responses;
    let body = r#"{"model":"llama","stream":true,"input":"hi"}"#;
    exchange.place(body.as_bytes(), None, at(0)).unwrap();
    exchange.attempt(at(0)).unwrap();
    exchange.answered(200, None, at(0));
    exchange.watch(Some("text/event-stream"));
    let created =
        b"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{}}\n\n";
    exchange.payload(created, at(1));
    let metrics = gateway.catalog().pools[0].metrics.clone();
    assert_eq!((metrics.prediction_error.count(), metrics.request_ttft.count()), (0, 0));
    let delta = b"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n";
    exchange.payload(delta, at(4));
    assert_eq!(metrics.prediction_error.count(), 1);
    assert_eq!(metrics.request_ttft.sum().as_secs(), 4);
}

#[test]
fn whole_answers_errors_and_substitutes_are_not_compared() {
    let gateway = pool_of(2);
    answer(&gateway, "hi", r#"{"prompt_tokens":1,"completion_tokens":1}"#);

    let mut failed = ask(&gateway, "hi", true);
    failed.watch(Some("text/event-stream"));
    failed.payload(b"data: {\"error\":{\"message\":\"x\",\"code\":400}}\n\n", at(1));
    failed.finish(Ending::Complete, at(1));

    let mut moved = exchange(&gateway);
    moved.place(&body("llama"), None, at(0)).unwrap();
    moved.attempt(at(0)).unwrap();
    assert_eq!(moved.failed(Failure::Connect, at(0)), Verdict::Retry);
    moved.attempt(at(0)).unwrap();
    moved.answered(200, None, at(0));
    moved.watch(Some("text/event-stream"));
    moved.payload(b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", at(1));
    moved.finish(Ending::Complete, at(1));

    assert_eq!(gateway.catalog().pools[0].metrics.prediction_error.count(), 0);
}
