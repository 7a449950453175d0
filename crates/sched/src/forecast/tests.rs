use types::{AdapterId, EndpointId, Slot};

use super::{Forecast, Prices};
use crate::{Candidate, LoraFit, RequestView, Speed};

fn candidate(ms_per_token: f32) -> Candidate {
    let speed = Speed {
        base_ms: 20.0,
        prefill_ms_per_token: ms_per_token,
        prefill_samples: 1000.0,
        step_ms: 10.0,
        step_ms_per_request: 0.1,
        step_samples: 1000.0,
        output_tokens: 200.0,
    };
    Candidate { speed, ..Candidate::idle(EndpointId(0), Slot(0)) }
}

fn request() -> RequestView<'static> {
    RequestView {
        prompt_blocks: 20,
        prompt_tokens: 1300,
        block_tokens: 64,
        ..RequestView::default()
    }
}

fn ttft(candidate: &Candidate) -> f32 {
    ttft_of(&request(), candidate)
}

fn ttft_of(request: &RequestView<'_>, candidate: &Candidate) -> f32 {
    let company = [candidate.clone()];
    Forecast::new(Prices::default(), request, &company).ttft_ms(candidate)
}

fn assert_close(value: f32, expected: f32) {
    assert!((value - expected).abs() < 0.01 * expected.max(1.0), "{value}, not {expected}");
}

#[test]
fn an_idle_endpoint_costs_its_constant_and_the_prompt() {
    assert_close(ttft(&candidate(0.1)), 20.0 + 130.0);
}

#[test]
fn cached_blocks_cost_nothing_and_the_last_token_is_always_computed() {
    let half = Candidate { matched_blocks: 10, ..candidate(0.1) };
    assert_close(ttft(&half), 20.0 + 66.0);
    let even = RequestView { block_tokens: 0, ..request() };
    assert_close(ttft_of(&even, &half), 20.0 + 65.0);
    let all = Candidate { matched_blocks: 20, ..candidate(0.1) };
    assert_close(ttft(&all), 20.0 + 2.0);
    assert_close(ttft_of(&even, &all), 20.0 + 0.1);
}

#[test]
fn work_ahead_costs_its_own_time_there() {
    let busy = Candidate { tokens_ahead: 2000.0, ..candidate(0.1) };
    assert_close(ttft(&busy), 20.0 + 330.0);
    let foreign = Candidate { foreign_waiting: 2.0, ..candidate(0.1) };
    assert_close(ttft(&foreign), 20.0 + 390.0);
}

#[test]
fn running_answers_stretch_the_steps() {
    let busy = Candidate { decoding: 50.0, ..candidate(0.1) };
    assert_close(ttft(&busy), 150.0 + 1.5 * 5.0);
}

#[test]
fn memory_costs_from_nine_tenths_on_and_what_is_coming_counts() {
    let mut full = candidate(0.1);
    full.scraped.kv_usage = Some(0.89);
    assert_close(ttft(&full), 150.0);
    full.kv_tokens_max = Some(14_000.0);
    assert_close(ttft(&full), 150.0 + 1.5 * 0.09 * 2000.0);
    full.freshness = 0.0;
    assert_close(ttft(&full), 150.0);
}

#[test]
fn an_adapter_costs_its_load_where_it_is_not() {
    let request = RequestView { adapter: Some(AdapterId(1)), ..request() };
    let cost = |lora| ttft_of(&request, &Candidate { lora, ..candidate(0.1) });
    assert_close(cost(LoraFit::Resident), 150.0);
    assert_close(cost(LoraFit::Room), 450.0);
    assert!(cost(LoraFit::Full) > cost(LoraFit::Room));
    assert_close(ttft(&Candidate { lora: LoraFit::Full, ..candidate(0.1) }), 150.0);
}

#[test]
fn the_cost_charges_the_delay_of_those_present() {
    let busy = Candidate { in_flight: 10, decoding: 10.0, ..candidate(0.1) };
    let request = request();
    let forecast = Forecast::new(Prices::default(), &request, std::slice::from_ref(&busy));
    let others = forecast.cost_ms(&busy) - forecast.ttft_ms(&busy);
    assert_close(others, 0.04 * 10.0 * 130.0 + 0.04 * 0.1 * 200.0 * 11.0);
    let queue = Candidate { tokens_ahead: 1000.0, ..busy.clone() };
    let more = forecast.cost_ms(&queue) - forecast.cost_ms(&busy);
    assert_close(more, 1.5 * 100.0);
}

#[test]
fn a_stranger_costs_what_its_pool_costs_and_more_once_it_has_a_request() {
    let stranger = Candidate { speed: Speed::default(), ..Candidate::idle(EndpointId(9), Slot(9)) };
    let busy = Candidate { tokens_ahead: 1000.0, ..stranger.clone() };
    let pool = [candidate(0.1), candidate(0.4), stranger.clone()];
    let request = request();
    let forecast = Forecast::new(Prices::default(), &request, &pool);
    assert_close(forecast.ttft_ms(&stranger), 20.0 + 260.0);
    assert_close(forecast.ttft_ms(&busy), 20.0 + 260.0 + 4.0 * 200.0);
}
