use std::sync::atomic::AtomicU32;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use types::{EndpointId, Slot};

use super::Picker;
use crate::Candidate;

fn rng() -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(42)
}

fn candidates(n: usize) -> Vec<Candidate> {
    (0..n).map(|n| Candidate::idle(EndpointId(n as u32), Slot(n as u16))).collect()
}

fn picks(picker: &Picker, totals: &[f32], rounds: usize) -> Vec<Vec<u32>> {
    let mut rng = rng();
    let candidates = candidates(totals.len());
    let mut order = Vec::new();
    let mut pick = || {
        picker.pick(&candidates, totals, 4, &mut order, &mut rng);
        order.clone()
    };
    (0..rounds).map(|_| pick()).collect()
}

fn chi_square(counts: &[usize], shares: &[f64]) -> f64 {
    let sum: usize = counts.iter().sum();
    let expected = shares.iter().map(|share| share * sum as f64);
    counts.iter().zip(expected).map(|(n, e)| (*n as f64 - e).powi(2) / e).sum()
}

#[test]
fn max_score_orders_by_total_and_gives_no_more_than_asked_for() {
    let totals = [0.1, 5.0, 3.0, 4.0, 0.0, 4.5];
    assert_eq!(picks(&Picker::MaxScore, &totals, 1), [[1, 5, 3, 2]]);
    assert_eq!(picks(&Picker::MaxScore, &[1.0, 2.0], 1), [[1, 0]]);
}

#[test]
fn equals_are_picked_equally_often_in_every_place() {
    let totals = [2.0, 7.0, 7.0, 1.0, 7.0, 7.0, 7.0];
    let picks = picks(&Picker::MaxScore, &totals, 10_000);
    for place in 0..4 {
        let count = |index: u32| picks.iter().filter(|order| order[place] == index).count();
        let counts = [1, 2, 4, 5, 6].map(count);
        assert_eq!(counts.iter().sum::<usize>(), 10_000);
        // 99.9th percentile with four degrees of freedom.
        assert!(chi_square(&counts, &[0.2; 5]) < 18.47, "{counts:?} in place {place}");
    }
}

#[test]
fn weighted_random_picks_in_proportion_to_totals_and_zero_last() {
    let totals = [1.0, 0.0, 3.0, 6.0];
    let picks = picks(&Picker::WeightedRandom, &totals, 10_000);
    let count = |index: u32| picks.iter().filter(|order| order[0] == index).count();
    let counts = [0, 2, 3].map(count);
    assert!(chi_square(&counts, &[0.1, 0.3, 0.6]) < 13.82, "{counts:?}");
    assert!(picks.iter().all(|order| order[3] == 1));
}

#[test]
fn random_and_all_zero_weights_are_uniform() {
    for (picker, totals) in [(Picker::Random, [9.0, 1.0, 0.0]), (Picker::WeightedRandom, [0.0; 3])]
    {
        let picks = picks(&picker, &totals, 9_000);
        let count = |index: u32| picks.iter().filter(|order| order[0] == index).count();
        let counts = [0, 1, 2].map(count);
        assert!(chi_square(&counts, &[1.0 / 3.0; 3]) < 13.82, "{counts:?}");
    }
}

#[test]
fn round_robin_takes_turns_by_id_whatever_the_order_of_candidates() {
    let picker = Picker::RoundRobin(AtomicU32::new(0));
    let mut candidates = candidates(3);
    candidates.reverse();
    let mut order = Vec::new();
    let mut turns = Vec::new();
    for _ in 0..6 {
        picker.pick(&candidates, &[0.0; 3], 4, &mut order, &mut rng());
        turns.push(candidates[order[0] as usize].endpoint.0);
    }
    assert_eq!(turns, [0, 1, 2, 0, 1, 2]);
    assert_eq!(order.len(), 3);
}
