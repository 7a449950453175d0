use types::{AdapterId, EndpointId, Slot};

use super::{Forecast, Prices};
use crate::{Candidate, LoraFit, RequestView, Speed};

fn candidate(ms_per_token: f32) -> Candidate {
    let speed = Speed {
        base_ms: 20.0,
        prefill_ms_per_token: ms_per_token,
        prefill_samples: 1000.0,
        step_ms: 10.0,
        step_samples: 1000.0,
        output_tokens: 200.0,
        ..Speed::default()
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
    Forecast::new(Prices::default(), request).ttft_ms(candidate)
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
    // A step of 10 ms takes 0.78 % more for each of them.
    assert_close(ttft(&busy), 150.0 + 1.5 * 0.3 * 13.9);
    let crowded = Candidate { decoding: 200.0, ..candidate(0.1) };
    assert_close(ttft(&crowded), 150.0 + 1.5 * 15.6);
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
    assert_close(cost(LoraFit::Full), 450.0);
    let to_minimise = |lora| {
        let candidate = Candidate { lora, ..candidate(0.1) };
        Forecast::new(Prices::default(), &request).cost_ms(&candidate)
    };
    assert_close(to_minimise(LoraFit::Full) - to_minimise(LoraFit::Room), 300.0);
    // Loads of others hold up everyone, the base model's requests too.
    assert_close(ttft(&Candidate { loading: 2, ..candidate(0.1) }), 750.0);
    assert_close(ttft(&Candidate { lora: LoraFit::Full, ..candidate(0.1) }), 150.0);
}

#[test]
fn the_cost_charges_the_delay_of_those_present() {
    let busy = Candidate { in_flight: 10, decoding: 10.0, ..candidate(0.1) };
    let request = request();
    let forecast = Forecast::new(Prices::default(), &request);
    let others = forecast.cost_ms(&busy) - forecast.ttft_ms(&busy);
    let filled = 1300.0 / (1300.0 + 8192.0);
    assert_close(others, 0.7 * 5.0 * filled * 130.0 + 0.015 * 0.086 * 200.0 * 11.0);
    let queue = Candidate { tokens_ahead: 1000.0, ..busy.clone() };
    let more = forecast.cost_ms(&queue) - forecast.cost_ms(&busy);
    assert_close(more, 2.0 * 100.0);
}

#[test]
fn an_endpoint_that_does_not_get_on_costs_the_more_the_longer_it_does_not() {
    let held_up = |stuck_ms| Candidate { prefilling: 3, stuck_ms, ..candidate(0.1) };
    assert_close(ttft(&held_up(0.0)), 150.0);
    assert_close(ttft(&held_up(500.0)), 150.0 + 1500.0);
}

#[test]
fn a_load_is_charged_for_all_whom_it_holds_up() {
    let request = RequestView { adapter: Some(AdapterId(1)), ..request() };
    let forecast = Forecast::new(Prices::default(), &request);
    let cost = |lora, decoding| forecast.cost_ms(&Candidate { lora, decoding, ..candidate(0.1) });
    let alone = cost(LoraFit::Room, 0.0) - cost(LoraFit::Resident, 0.0);
    assert_close(alone, 300.0);
    let among_ten = cost(LoraFit::Room, 10.0) - cost(LoraFit::Resident, 10.0);
    assert_close(among_ten, 300.0 + 8.0 * 5.0 * 300.0);
}

#[test]
fn a_long_prompt_avoids_company_and_a_short_one_a_long_prompt() {
    let crowded = Candidate { in_flight: 30, decoding: 30.0, ..candidate(0.1) };
    let queue = Candidate {
        in_flight: 1,
        prefilling: 1,
        prefill_tokens: 9000,
        tokens_ahead: 9000.0,
        ..candidate(0.1)
    };
    let prefers_crowd = |prompt_tokens| {
        let request = RequestView { prompt_tokens, ..request() };
        let forecast = Forecast::new(Prices::default(), &request);
        forecast.cost_ms(&crowded) < forecast.cost_ms(&queue)
    };
    assert!(prefers_crowd(500));
    assert!(!prefers_crowd(40_000));
}

#[test]
fn work_ahead_of_a_stranger_counts_more_until_it_has_answered() {
    let stranger = |tokens_ahead| {
        let speed = Speed { prefill_samples: 0.0, ..candidate(0.1).speed };
        Candidate { speed, tokens_ahead, ..candidate(0.1) }
    };
    assert_close(ttft(&stranger(0.0)), 150.0);
    assert_close(ttft(&stranger(1000.0)), 150.0 + 4.0 * 100.0);
}
