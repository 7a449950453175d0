use types::{EndpointId, Slot};

use super::{
    AsleepFilter, Ceiling, CeilingFilter, ConcurrencyFilter, EjectedFilter, ExpectedWait, Filter,
    LabelFilter, NotServingFilter, PrefixAffinityFilter, StaleFilter, UtilizationFilter,
};
use crate::{
    Candidate, ContextLengthFilter, ContextRange, ContextRanges, Health, LoraFit, RequestView,
};

fn kept(filter: &dyn Filter, candidates: &[Candidate]) -> Vec<bool> {
    let mut keep = vec![true; candidates.len()];
    filter.filter(&RequestView::default(), candidates, &mut keep);
    keep
}

fn candidates<T: Copy>(values: &[T], set: impl Fn(&mut Candidate, T)) -> Vec<Candidate> {
    let numbered = values.iter().enumerate();
    numbered
        .map(|(n, value)| {
            let mut candidate = Candidate::idle(EndpointId(n as u32), Slot(n as u16));
            set(&mut candidate, *value);
            candidate
        })
        .collect()
}

fn with_health(health: &[Health]) -> Vec<Candidate> {
    candidates(health, |candidate, health| {
        candidate.health = health;
        candidate.ejected = !health.usable();
    })
}

/// LORA-5.
#[test]
fn an_endpoint_that_cannot_serve_the_adapter_is_dropped_even_if_none_is_left() {
    let fits = [LoraFit::Full, LoraFit::NotServed, LoraFit::Unknown];
    let lora = candidates(&fits, |candidate, fit| candidate.lora = fit);
    assert_eq!(kept(&NotServingFilter, &lora), [true, false, true]);
    assert_eq!(kept(&NotServingFilter, &lora[1..2]), [false]);
}

#[test]
fn an_excluded_endpoint_is_dropped() {
    let all = with_health(&[Health::Healthy; 3]);
    let mut keep = [true; 3];
    let excluded = [EndpointId(1)];
    let request = RequestView { excluded: &excluded, ..RequestView::default() };
    NotServingFilter.filter(&request, &all, &mut keep);
    assert_eq!(keep, [true, false, true]);
}

#[test]
fn a_sleeping_endpoint_is_dropped_even_if_none_is_left() {
    let asleep = candidates(&[true, false], |candidate, asleep| candidate.asleep = asleep);
    assert_eq!(kept(&AsleepFilter, &asleep), [false, true]);
    assert_eq!(kept(&AsleepFilter, &asleep[..1]), [false]);
}

/// STALE-1, STALE-2 and STALE-4.
#[test]
fn stale_endpoints_are_dropped_unless_most_are() {
    let set = |candidate: &mut Candidate, stale| candidate.stale = stale;
    let stale = candidates(&[true, false, true, false], set);
    assert_eq!(kept(&StaleFilter, &stale), [false, true, false, true]);
    // All were, and one has come back: it must not get everything.
    let stale = candidates(&[true, false, true], set);
    assert_eq!(kept(&StaleFilter, &stale), [true; 3]);
    assert_eq!(kept(&StaleFilter, &stale[..1]), [true], "a pool of one is used");
}

#[test]
fn ejected_endpoints_are_dropped() {
    use Health::{Failing, Healthy, Held, Ramping, Trial, Unreachable};
    let all = with_health(&[Healthy, Failing, Held, Unreachable, Trial, Ramping]);
    let expected = [true, false, false, false, true, true];
    assert_eq!(kept(&EjectedFilter::default(), &all), expected);
}

#[test]
fn at_most_half_of_a_pool_is_dropped_for_failures() {
    use Health::{Failing, Healthy};
    let half = with_health(&[Healthy, Failing, Failing, Healthy]);
    assert_eq!(kept(&EjectedFilter::default(), &half), [true, false, false, true]);
    let most = with_health(&[Healthy, Failing, Failing, Failing]);
    assert_eq!(kept(&EjectedFilter::default(), &most), [true; 4]);
}

#[test]
fn unreachable_endpoints_stay_out_while_any_other_is_left() {
    use Health::{Healthy, Held, Unreachable};
    let most = with_health(&[Healthy, Unreachable, Unreachable, Unreachable]);
    assert_eq!(kept(&EjectedFilter::default(), &most), [true, false, false, false]);
    let held = with_health(&[Held, Unreachable]);
    assert_eq!(kept(&EjectedFilter::default(), &held), [true, false]);
    let all = with_health(&[Unreachable, Unreachable]);
    assert_eq!(kept(&EjectedFilter::default(), &all), [true, true], "fail open");
}

fn kept_for(filter: &dyn Filter, request: &RequestView<'_>, candidates: &[Candidate]) -> Vec<bool> {
    let mut keep = vec![true; candidates.len()];
    filter.filter(request, candidates, &mut keep);
    keep
}

#[test]
fn a_label_filter_keeps_its_endpoints_and_nobody_if_none_is_there() {
    let all = with_health(&[Health::Healthy; 4]);
    let filter = LabelFilter::new([EndpointId(3), EndpointId(1), EndpointId(9)]);
    assert_eq!(kept(&filter, &all), [false, true, false, true]);
    assert_eq!(kept(&filter, &all[..1]), [false]);
}

#[test]
fn an_endpoint_above_any_ceiling_is_dropped_and_at_it_stays() {
    let mut all = with_health(&[Health::Healthy; 6]);
    all[1].scraped.waiting = Some(21);
    all[2].scraped.kv_usage = Some(0.91);
    all[3].in_flight = 8;
    all[4].scraped.running = Some(301);
    all[5].scraped.waiting = Some(20);
    all[5].scraped.kv_usage = Some(0.9);
    let mut filter = CeilingFilter {
        ceilings: vec![
            Ceiling::WaitingRequests(20.0),
            Ceiling::KvUsage(0.9),
            Ceiling::ActiveRequests(7.0),
            Ceiling::RunningRequests(300.0),
        ],
        fails_open: false,
    };
    assert_eq!(kept(&filter, &all), [true, false, false, false, false, true]);
    assert_eq!(kept(&filter, &all[1..3]), [false, false]);
    filter.fails_open = true;
    assert_eq!(kept(&filter, &all[1..3]), [true, true]);
    all[1].scraped.waiting = None;
    assert!(kept(&filter, &all)[1], "what is not reported counts as 0");
}

#[test]
fn an_endpoint_at_the_utilization_detectors_limit_is_dropped_unless_all_are() {
    let mut all = with_health(&[Health::Healthy; 5]);
    all[1].scraped.waiting = Some(5);
    all[2].scraped.kv_usage = Some(0.8);
    all[3].stale = true;
    all[4].age = None;
    let mut filter = UtilizationFilter { queue_depth: 5, kv_usage: 0.8, headroom: 0.0 };
    assert_eq!(kept(&filter, &all), [true, false, false, false, false]);
    assert_eq!(kept(&filter, &all[1..]), [true; 4]);
    filter.headroom = 0.25;
    assert_eq!(kept(&filter, &all), [true, true, true, false, false]);
}

#[test]
fn an_endpoint_with_too_much_in_flight_is_dropped_even_if_none_is_left() {
    let mut all = with_health(&[Health::Healthy; 3]);
    all[1].in_flight = 100;
    all[2].prefill_tokens = 5_000;
    let filter = |requests, tokens| ConcurrencyFilter { requests, tokens };
    assert_eq!(kept(&filter(Some(100), None), &all), [true, false, true]);
    assert_eq!(kept(&filter(None, Some(5_000)), &all), [true, true, false]);
    assert_eq!(kept(&filter(Some(100), Some(5_000)), &all), [true, false, false]);
    assert_eq!(kept(&filter(Some(0), None), &all), [false; 3]);
}

#[test]
fn holders_of_the_prompt_are_kept_while_they_are_not_much_slower() {
    let request = RequestView { prompt_blocks: 10, block_tokens: 64, ..RequestView::default() };
    let filter = PrefixAffinityFilter {
        share_min: 0.8,
        penalty_ms_max: 1_000.0,
        expected: ExpectedWait::PrefillTokensPerSecond(10_000.0),
    };
    let mut all = with_health(&[Health::Healthy; 3]);
    assert_eq!(kept_for(&filter, &request, &all), [true; 3], "nobody holds it");
    all[1].matched_blocks = 8;
    all[2].matched_blocks = 7;
    assert_eq!(kept_for(&filter, &request, &all), [false, true, false]);
    all[1].prefill_tokens = 10_000;
    assert_eq!(kept_for(&filter, &request, &all), [false, true, false], "a second longer");
    all[1].prefill_tokens = 10_001;
    assert_eq!(kept_for(&filter, &request, &all), [true; 3], "more than a second longer");
    let at_any_cost = PrefixAffinityFilter { penalty_ms_max: 0.0, ..filter };
    assert_eq!(kept_for(&at_any_cost, &request, &all), [false, true, false]);
    assert_eq!(kept_for(&filter, &request, &all[1..2]), [true], "there is no other");
}

#[test]
fn the_wait_for_a_holder_can_be_what_it_has_shown() {
    let request = RequestView {
        prompt_blocks: 10,
        block_tokens: 64,
        prompt_tokens: 640,
        ..RequestView::default()
    };
    let filter = PrefixAffinityFilter {
        share_min: 0.8,
        penalty_ms_max: 1_000.0,
        expected: ExpectedWait::Learned,
    };
    let mut all = with_health(&[Health::Healthy; 2]);
    all[0].matched_blocks = 10;
    assert_eq!(kept_for(&filter, &request, &all), [true, false]);
    all[0].speed.base_ms = 60_000.0;
    assert_eq!(kept_for(&filter, &request, &all), [true, true]);
}

#[test]
fn a_prompt_outside_an_endpoints_range_is_kept_from_it() {
    let labels = ["0-1000", "1001-8000", "none"].map(ContextRange::of_label);
    let ids = [0, 1, 2].map(EndpointId);
    let filter = ContextLengthFilter { ranges: ContextRanges::new(ids.into_iter().zip(labels)) };
    let all = with_health(&[Health::Healthy; 4]);
    let kept = |tokens| {
        let request = RequestView { prompt_tokens: tokens, ..RequestView::default() };
        kept_for(&filter, &request, &all)
    };
    assert_eq!(kept(1_000), [true, false, false, true]);
    assert_eq!(kept(1_001), [false, true, false, true]);
}

/// A profile skips filters while every candidate is in order, unless they know more.
#[test]
fn the_fields_filters_are_asked_about_endpoints_that_are_in_order() {
    let ranges = ContextRanges::default();
    let expected = ExpectedWait::Learned;
    let filters: [Box<dyn Filter>; 6] = [
        Box::new(LabelFilter::new([])),
        Box::new(CeilingFilter { ceilings: Vec::new(), fails_open: false }),
        Box::new(UtilizationFilter { queue_depth: 5, kv_usage: 0.8, headroom: 0.0 }),
        Box::new(ConcurrencyFilter { requests: None, tokens: None }),
        Box::new(PrefixAffinityFilter { share_min: 0.8, penalty_ms_max: 0.0, expected }),
        Box::new(ContextLengthFilter { ranges }),
    ];
    for filter in filters {
        assert!(filter.knows_more(), "{}", filter.name());
    }
}
