//! Every scorer of the field beside the field's own formula.
//!
//! The formulas are written here a second time, in `f64` and with the field's own order of operations, after
//! the plugins of llm-d's router (`pkg/epp/framework/plugins/scheduling/scorer`, August 2026). A score of
//! ours must be that `f64`, rounded once to `f32`: equal bits, no tolerance. Inputs are what an `f32` holds;
//! what the rounding of a KV use to `f32` costs is a test of its own.

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use types::{AdapterId, EndpointId, Slot};

use super::{
    ActiveRequestsScorer, ContextLengthScorer, ContextRange, ContextRanges, KvCacheScorer,
    LoadAwareScorer, LoraAffinityScorer, NoHitLruScorer, PrefixLengthScorer, PrefixScorer,
    QueueScorer, RunningRequestsScorer, Scorer, Signals, TokenLoadScorer,
};
use crate::{Candidate, LoraFit, Profile, Receipt, RequestView, Scratch, Weights};

const SIGNALS: Signals = Signals::Scraped;
const FLEETS: u32 = 2_000;

/// Counts from the small ones that occur to the largest that an `f32` tells apart.
fn count(rng: &mut impl Rng) -> u32 {
    let most = [1, 3, 8, 40, 300, 5_000, 1 << 24][rng.random_range(0..7)];
    rng.random_range(0..=most)
}

/// One to twelve endpoints with random signals, some of them stale, some that report nothing.
fn fleet(rng: &mut Pcg64Mcg, request: &RequestView<'_>) -> Vec<Candidate> {
    let fits = [LoraFit::Resident, LoraFit::Room, LoraFit::Waiting, LoraFit::Full];
    (0..rng.random_range(1..=12_u32))
        .map(|n| {
            let mut candidate = Candidate::idle(EndpointId(n), Slot(n as u16));
            if rng.random_range(0..8) > 0 {
                candidate.scraped.waiting = Some(count(rng));
                candidate.scraped.running = Some(count(rng));
                candidate.scraped.kv_usage = Some(rng.random_range(0..=1_000) as f32 / 1_000.0);
            } else {
                candidate.scraped.waiting = None;
                candidate.scraped.running = None;
                candidate.scraped.kv_usage = None;
            }
            candidate.scraped.lora = fits[rng.random_range(0..4)];
            candidate.in_flight = count(rng);
            candidate.prefill_tokens = u64::from(count(rng));
            candidate.matched_blocks = rng.random_range(0..=request.prompt_blocks);
            candidate.stale = rng.random();
            candidate.freshness = rng.random();
            // What the ledger thinks must not matter.
            candidate.waiting = rng.random_range(0.0..1e6);
            candidate.running = rng.random_range(0.0..1e6);
            candidate
        })
        .collect()
}

fn request(rng: &mut Pcg64Mcg) -> RequestView<'static> {
    let prompt_blocks = [1, 3, 7, 100, 2_048][rng.random_range(0..5)];
    let block_tokens = [16, 64, 100][rng.random_range(0..3)];
    RequestView {
        prompt_blocks,
        block_tokens,
        prompt_tokens: prompt_blocks * block_tokens + rng.random_range(1..block_tokens),
        adapter: Some(AdapterId(1)),
        ..RequestView::default()
    }
}

/// What the field computes for a whole fleet.
type Formula<'a> = &'a dyn Fn(&RequestView<'_>, &[Candidate]) -> Vec<f64>;

#[track_caller]
fn agree(scorer: &dyn Scorer, formula: Formula<'_>) {
    let mut rng = Pcg64Mcg::seed_from_u64(7);
    for _ in 0..FLEETS {
        let request = request(&mut rng);
        let fleet = fleet(&mut rng, &request);
        let mut scores = vec![f32::NAN; fleet.len()];
        scorer.score(&request, &fleet, &mut scores);
        let expected = formula(&request, &fleet);
        for ((score, exact), candidate) in scores.iter().zip(&expected).zip(&fleet) {
            let rounded = *exact as f32;
            assert_eq!(score.to_bits(), rounded.to_bits(), "{score} {exact} {candidate:?}");
        }
    }
}

/// `queuedepth` and `runningrequests`.
fn min_max(loads: &[u32]) -> Vec<f64> {
    let (min, max) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
    let score = |load: &u32| {
        if max == min { 1.0 } else { f64::from(max - load) / f64::from(max - min) }
    };
    loads.iter().map(score).collect()
}

/// A value of each endpoint by itself.
fn each(
    score: impl Fn(&RequestView<'_>, &Candidate) -> f64,
) -> impl Fn(&RequestView<'_>, &[Candidate]) -> Vec<f64> {
    move |request, fleet| fleet.iter().map(|candidate| score(request, candidate)).collect()
}

fn waiting(candidate: &Candidate) -> u32 {
    candidate.scraped.waiting.unwrap_or(0)
}

fn kv_usage(candidate: &Candidate) -> f64 {
    candidate.scraped.kv_usage.unwrap_or(0.0).into()
}

#[test]
fn the_queue_scores_as_in_the_field() {
    agree(&QueueScorer { signals: SIGNALS }, &|_, fleet| {
        min_max(&fleet.iter().map(waiting).collect::<Vec<_>>())
    });
}

#[test]
fn running_requests_score_as_in_the_field() {
    agree(&RunningRequestsScorer { signals: SIGNALS }, &|_, fleet| {
        min_max(&fleet.iter().map(|c| c.scraped.running.unwrap_or(0)).collect::<Vec<_>>())
    });
}

#[test]
fn kv_use_scores_as_in_the_field() {
    agree(&KvCacheScorer { signals: SIGNALS }, &each(|_, candidate| 1.0 - kv_usage(candidate)));
}

/// The field holds a KV use in 64 bits, we in 32: that moves a score by half a unit in the last place of
/// numbers just below 1, whatever the use.
#[test]
fn a_kv_use_in_32_bits_moves_no_score_by_more_than_6e_8() {
    for n in 0..=100_000 {
        let exact = f64::from(n) / 100_000.0;
        let mut candidate = Candidate::idle(EndpointId(0), Slot(0));
        candidate.scraped.kv_usage = Some(types::Ratio::new(exact).unwrap().get());
        let mut score = [f32::NAN];
        KvCacheScorer { signals: SIGNALS }.score(&RequestView::default(), &[candidate], &mut score);
        assert!((f64::from(score[0]) - (1.0 - exact)).abs() <= 6e-8, "{exact}: {}", score[0]);
    }
}

#[test]
fn a_prefix_scores_as_in_the_field() {
    agree(
        &PrefixScorer { signals: SIGNALS },
        &each(|request, c| f64::from(c.matched_blocks) / f64::from(request.prompt_blocks)),
    );
}

#[test]
fn a_prefixs_length_scores_as_in_the_field() {
    for (weight, scale) in [(0.0, 8_192), (0.25, 8_192), (0.4, 1_000), (0.7, 100_000), (1.0, 3)] {
        let scorer = PrefixLengthScorer { length_weight: weight, scale_tokens: scale };
        let formula = move |request: &RequestView<'_>, c: &Candidate| {
            let ratio = f64::from(c.matched_blocks) / f64::from(request.prompt_blocks);
            let tokens = f64::from(c.matched_blocks) * f64::from(request.block_tokens);
            let normalized = f64::min(1.0, tokens / f64::from(scale));
            weight * (normalized * normalized) + (1.0 - weight) * ratio
        };
        agree(&scorer, &each(formula));
    }
}

#[test]
fn an_adapter_scores_as_in_the_field() {
    let formula = |_: &RequestView<'_>, c: &Candidate| match c.scraped.lora {
        LoraFit::Resident => 1.0,
        LoraFit::Room => 0.8,
        LoraFit::Waiting => 0.6,
        _ => 0.0,
    };
    agree(&LoraAffinityScorer { signals: SIGNALS }, &each(formula));
}

#[test]
fn awareness_of_load_scores_as_in_the_field() {
    for threshold in [1, 5, 128, 1_000] {
        let formula = move |_: &RequestView<'_>, c: &Candidate| {
            let (waiting, threshold) = (f64::from(waiting(c)), f64::from(threshold));
            if waiting == 0.0 { 0.5 } else { 0.5 * (1.0 - (waiting.min(threshold) / threshold)) }
        };
        agree(&LoadAwareScorer { threshold }, &each(formula));
    }
}

/// Save for a prompt that is cached to its last token: engines compute that one all the same, so we
/// count one token where the field counts none.
#[test]
fn a_load_of_tokens_scores_as_in_the_field() {
    for threshold in [1, 1_000, 100_000, 4_194_304] {
        let formula = move |request: &RequestView<'_>, c: &Candidate| {
            let uncached = request.prompt_tokens - c.matched_blocks * request.block_tokens;
            let tokens = (c.prefill_tokens + u64::from(uncached)) as f64;
            if tokens <= 0.0 { 1.0 } else { 1.0 - tokens.min(threshold as f64) / threshold as f64 }
        };
        agree(&TokenLoadScorer { threshold_tokens: threshold }, &each(formula));
    }
}

#[test]
fn active_requests_score_as_in_the_field() {
    for (idle_threshold, busy_score_max) in [(0, 1.0), (2, 1.0), (10, 0.3), (0, 0.0)] {
        let scorer = ActiveRequestsScorer { idle_threshold, busy_score_max };
        agree(&scorer, &|_, fleet| {
            let most = fleet.iter().map(|c| c.in_flight).max().unwrap();
            let score = |c: &Candidate| {
                if c.in_flight <= idle_threshold {
                    1.0
                } else {
                    f64::from(most - c.in_flight) / f64::from(most) * busy_score_max
                }
            };
            fleet.iter().map(score).collect()
        });
    }
}

#[test]
fn a_context_length_scores_as_in_the_field() {
    let labels = ["0-2048", "0-100", "2048-8192", "8192-131072", "1000-1000", "5-1", "long"];
    let ranges = labels.map(ContextRange::of_label);
    let ids = (0..7).map(EndpointId);
    let scorer = ContextLengthScorer { ranges: ContextRanges::new(ids.zip(ranges)) };
    agree(
        &scorer,
        &each(|request, c| {
            let tokens = f64::from(request.prompt_tokens);
            let Some(range) = ranges.get(c.endpoint.0 as usize) else { return 0.5 };
            let ContextRange::Tokens { min, max } = *range else { return 0.0 };
            let (min, max) = (f64::from(min), f64::from(max));
            if tokens >= min && tokens <= max {
                if max == min {
                    return 1.0;
                }
                let width_score = 1.0 / (1.0 + (max - min) / 10_000.0);
                let position_score = (max - tokens) / (max - min);
                let raw = 0.7 * width_score + 0.3 * position_score;
                return 0.3 + raw * (1.0 - 0.3);
            }
            let distance = if tokens > max { tokens - max } else { min - tokens };
            0.3 / (1.0 + distance / 1_000.0)
        }),
    );
}

/// Endpoints that had a cold prompt: the field ranks those that never had one by their place in its
/// list, which has no order; here they are equals.
#[test]
fn a_cold_prompt_scores_as_in_the_field() {
    for n in 2..=40_u32 {
        let fleet: Vec<_> =
            (0..n).map(|n| Candidate::idle(EndpointId(n), Slot(n as u16))).collect();
        let (scorer, request) = (NoHitLruScorer::default(), RequestView::default());
        for candidate in &fleet {
            scorer.picked(&request, &fleet, candidate);
        }
        let mut scores = vec![f32::NAN; fleet.len()];
        scorer.score(&request, &fleet, &mut scores);
        for (rank, score) in scores.iter().enumerate() {
            let exact = 1.0 - rank as f64 / f64::from(n - 1);
            assert_eq!(score.to_bits(), (exact as f32).to_bits(), "{rank} of {n}");
        }
    }
}

/// Totals are sums in 32 bits. Over 2,000 fleets, whoever is ahead by more than a millionth of the largest
/// total in the field is ahead here.
#[test]
fn two_two_three_picks_whom_the_field_picks() {
    let profile = Profile { saturation: None, ..Profile::from_weights(&Weights::REFERENCE) };
    let mut rng = Pcg64Mcg::seed_from_u64(11);
    let (mut decided, mut scratch) = (0, Scratch::default());
    for _ in 0..FLEETS {
        let request = request(&mut rng);
        let mut fleet = fleet(&mut rng, &request);
        for candidate in &mut fleet {
            candidate.stale = false;
        }
        let queue = min_max(&fleet.iter().map(waiting).collect::<Vec<_>>());
        let exact: Vec<f64> = fleet
            .iter()
            .zip(queue)
            .map(|(c, queue)| {
                let prefix = f64::from(c.matched_blocks) / f64::from(request.prompt_blocks);
                2.0 * queue + 2.0 * (1.0 - kv_usage(c)) + 3.0 * prefix
            })
            .collect();
        let best = exact.iter().copied().fold(0.0, f64::max);
        let mut receipt = Receipt::default();
        let order =
            profile.pick(&request, &mut fleet, &mut scratch, &mut rng, Some(&mut receipt)).unwrap();
        let chosen = exact[fleet[order[0] as usize].endpoint.0 as usize];
        assert!(best - chosen <= 7e-6, "{chosen} was picked, {best} was there");
        decided += u32::from(exact.iter().filter(|total| best - **total <= 7e-6).count() == 1);
        for entry in &receipt.candidates {
            let exact = exact[entry.candidate.endpoint.0 as usize];
            assert!((f64::from(entry.total) - exact).abs() <= 1e-6, "{} {exact}", entry.total);
        }
    }
    assert!(decided > FLEETS * 9 / 10, "{decided} fleets had one best endpoint");
}
