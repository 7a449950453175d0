//! Losses are computed from the cells, whoever they speak for.

use lab::Policy;

use super::super::measured::fixtures::{cell, with};
use super::{Tally, losses};

const POLICIES: [Policy; 4] =
    [Policy::Wicketgate, Policy::LeastRequest, Policy::RoundRobin, Policy::OracleTtft];

#[test]
fn a_rival_that_is_better_by_more_than_a_twentieth_is_a_loss_and_an_oracle_is_none() {
    let cell = cell(0.5, &POLICIES, 3, |policy, seed, result| {
        let (p95, goodput) = match policy {
            Policy::Wicketgate => (100.0, 0.90),
            Policy::LeastRequest => (94.0, 0.91),
            Policy::OracleTtft => (50.0, 1.00),
            _ => (96.0, 0.99),
        };
        with(result, p95 + seed as f64, goodput)
    });
    let all = losses(&cell);
    let found: Vec<_> = all.iter().map(|loss| (loss.measure.title, loss.rival)).collect();
    assert_eq!(found, [("goodput", Policy::RoundRobin), ("TTFT P95", Policy::LeastRequest)]);
    assert!((all[0].change.mean - (0.90 / 0.99 - 1.0)).abs() < 1e-9);
}

#[test]
fn a_goodput_of_nothing_is_a_loss_to_one_of_something_and_silence_is_not_fast() {
    let cell = cell(1.3, &POLICIES[..3], 3, |policy, _, result| match policy {
        Policy::Wicketgate => with(result, 100.0, 0.0),
        Policy::LeastRequest => with(result, 100.0, 0.01),
        // Answered nothing, so it has no time to the first token.
        _ => with(result, 0.0, 0.0),
    });
    let all = losses(&cell);
    let found: Vec<_> = all.iter().map(|loss| (loss.measure.title, loss.rival)).collect();
    assert_eq!(found, [("goodput", Policy::LeastRequest)]);
}

#[test]
fn never_worse_is_said_only_where_every_comparison_shows_it() {
    let even = |spread: f64| {
        cell(0.5, &POLICIES, 5, move |policy, seed, result| {
            let ours = policy == Policy::Wicketgate;
            let wave = if ours { 1.0 + spread * (seed as f64 - 3.0) } else { 1.0 };
            with(result, 100.0 * wave, 0.9)
        })
    };
    let tally = Tally::of([even(0.001)].iter());
    assert_eq!((tally.comparisons, tally.not_worse, tally.worse), (4, 4, 0));
    assert!(tally.is_never_worse());
    // As good on average, but nobody can tell from these seeds.
    let tally = Tally::of([even(0.001), even(0.10)].iter());
    assert_eq!((tally.comparisons, tally.worse), (8, 0));
    assert!(!tally.is_never_worse());
    assert!(!Tally::of(std::iter::empty()).is_never_worse());
}
