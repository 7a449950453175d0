use std::time::Duration;

use proptest::prelude::{any, prop_assert, proptest};
use proptest::{collection, option};
use types::{AdapterId, EndpointId, Slot, Timestamp};

use super::{
    ActiveRequestsScorer, ContextLengthScorer, ContextRange, ContextRanges, ExpectedTimeScorer,
    KvCacheScorer, LeastRequestScorer, LoadAwareScorer, LoraAffinityScorer, NoHitLruScorer,
    PrefixLengthScorer, PrefixScorer, QueueScorer, RunningRequestsScorer, Scorer,
    SessionAffinityScorer, Signals, TokenLoadScorer,
};
use crate::{Candidate, LoraFit, RequestView, Speed};

fn scores(scorer: &dyn Scorer, request: &RequestView<'_>, candidates: &[Candidate]) -> Vec<f32> {
    let mut scores = vec![f32::NAN; candidates.len()];
    scorer.score(request, candidates, &mut scores);
    scores
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

fn request() -> RequestView<'static> {
    RequestView { prompt_blocks: 7, adapter: Some(AdapterId(1)), ..RequestView::default() }
}

const SCRAPED: Signals = Signals::Scraped;

/// The formulas as the Gateway API Inference Extension has them, one line each.
#[test]
fn scraped_scores_are_those_of_the_reference_bit_for_bit() {
    let reference_min_max = |loads: &[u32]| -> Vec<f32> {
        let (min, max) = (*loads.iter().min().unwrap(), *loads.iter().max().unwrap());
        let score =
            |load: &u32| if max == min { 1.0 } else { (max - load) as f32 / (max - min) as f32 };
        loads.iter().map(score).collect()
    };
    for loads in [vec![0, 3, 7, 11], vec![5, 5, 5], vec![1], vec![0, 1_000_000, 17]] {
        let queue = candidates(&loads, |c, load| c.scraped.waiting = Some(load));
        let expected = reference_min_max(&loads);
        assert_eq!(scores(&QueueScorer { signals: SCRAPED }, &request(), &queue), expected);
        let running = candidates(&loads, |c, load| c.scraped.running = Some(load));
        let scorer = RunningRequestsScorer { signals: SCRAPED };
        assert_eq!(scores(&scorer, &request(), &running), expected);
    }

    let usages = [0.0_f32, 0.1, 0.37, 0.999, 1.0];
    let kv = candidates(&usages, |c, usage| c.scraped.kv_usage = Some(usage));
    let scorer = KvCacheScorer { signals: SCRAPED };
    assert_eq!(scores(&scorer, &request(), &kv), usages.map(|usage| 1.0 - usage));

    let matched = [0_u32, 1, 5, 7];
    let prefix = candidates(&matched, |c, blocks| c.matched_blocks = blocks);
    let scorer = PrefixScorer { signals: SCRAPED };
    let expected = matched.map(|blocks| blocks as f32 / 7.0);
    assert_eq!(scores(&scorer, &request(), &prefix), expected);

    let fits =
        [LoraFit::Resident, LoraFit::Room, LoraFit::Waiting, LoraFit::Full, LoraFit::Unknown];
    let lora = candidates(&fits, |c, fit| c.scraped.lora = fit);
    let scorer = LoraAffinityScorer { signals: SCRAPED };
    assert_eq!(scores(&scorer, &request(), &lora), [1.0, 0.8, 0.6, 0.0, 0.0]);
}

#[test]
fn scraped_scores_take_a_missing_signal_for_zero_and_ignore_age() {
    let mut two = candidates(&[Some(3), None], |c, waiting| c.scraped.waiting = waiting);
    two[1].freshness = 0.0;
    assert_eq!(scores(&QueueScorer { signals: SCRAPED }, &request(), &two), [0.0, 1.0]);
}

#[test]
fn an_endpoint_that_does_not_report_a_signal_is_never_best_at_it() {
    let mut two = candidates(&[5.0, 0.0], |c, waiting| c.waiting = waiting);
    two[1].scraped.waiting = None;
    two[1].scraped.kv_usage = None;
    two[0].scraped.kv_usage = Some(0.2);
    two.push(Candidate { waiting: 1.0, ..Candidate::idle(EndpointId(2), Slot(2)) });
    let queue = scores(&QueueScorer::default(), &request(), &two);
    assert_eq!(queue[1], 0.5);
    assert!(queue[2] > queue[1]);
    assert_eq!(scores(&KvCacheScorer::default(), &request(), &two), [0.8, 0.5, 1.0]);
}

/// Fault 17: the metrics of one endpoint freeze at zero.
#[test]
fn the_older_a_scrape_the_less_its_endpoint_can_score() {
    let freshness = [1.0, 0.75, 0.5, 0.0];
    let fading = candidates(&freshness, |c, freshness| c.freshness = freshness);
    assert_eq!(scores(&QueueScorer::default(), &request(), &fading), [1.0, 0.875, 0.75, 0.5]);
    assert_eq!(scores(&KvCacheScorer::default(), &request(), &fading), [1.0, 0.875, 0.75, 0.5]);
}

/// STALE-2.
#[test]
fn when_every_scrape_is_lost_the_ledger_decides_alone() {
    let mut all = candidates(&[9.0, 2.0, 4.0], |c, waiting| {
        c.waiting = waiting;
        c.freshness = 0.0;
        c.stale = true;
    });
    all[0].scraped.kv_usage = Some(0.0);
    all[1].scraped.kv_usage = Some(0.9);
    let queue = scores(&QueueScorer::default(), &request(), &all);
    assert_eq!((queue[0], queue[1]), (0.0, 1.0));
    assert_eq!(scores(&KvCacheScorer::default(), &request(), &all), [0.5; 3]);
}

#[test]
fn a_prompt_shorter_than_one_block_scores_zero_everywhere() {
    let two = candidates(&[0, 0], |c, blocks| c.matched_blocks = blocks);
    let short = RequestView { prompt_blocks: 0, ..request() };
    assert_eq!(scores(&PrefixScorer::default(), &short, &two), [0.0, 0.0]);
}

#[test]
fn a_holder_with_a_long_queue_scores_less_for_its_prefix() {
    let score = |waiting: f32| {
        let mut four = candidates(&[0; 4], |c, blocks| c.matched_blocks = blocks);
        four[0].matched_blocks = 7;
        four[0].waiting = waiting;
        scores(&PrefixScorer::default(), &request(), &four)[0]
    };
    assert_eq!([score(0.0), score(5.0)], [1.0, 1.0]);
    assert_eq!(score(16.0), (4.0 + 4.0) / 16.0);
    assert!(score(1000.0) < score(16.0));
}

#[test]
fn a_request_without_adapter_gets_no_lora_score() {
    let two = candidates(&[LoraFit::Resident, LoraFit::Full], |c, fit| c.lora = fit);
    let base = RequestView { adapter: None, ..request() };
    assert_eq!(scores(&LoraAffinityScorer::default(), &base, &two), [0.0, 0.0]);
    assert_eq!(scores(&LoraAffinityScorer::default(), &request(), &two), [1.0, 0.0]);
}

#[test]
fn cold_requests_go_where_the_last_cold_one_is_longest_ago() {
    let scorer = NoHitLruScorer::default();
    let cold = candidates(&[0; 5], |c, blocks| c.matched_blocks = blocks);
    for n in [2, 0, 4, 0] {
        scorer.picked(&request(), &cold, &cold[n]);
    }
    // Never used 1 and 3 tie at the best; then 2, 4, 0 by age.
    assert_eq!(scores(&scorer, &request(), &cold), [0.0, 1.0, 0.5, 1.0, 0.25]);
    assert_eq!(scores(&scorer, &request(), &cold[2..3]), [1.0]);
    let used = [cold[0].clone(), cold[2].clone(), cold[4].clone()];
    assert_eq!(scores(&scorer, &request(), &used), [0.0, 1.0, 0.5], "ranked among those present");
}

#[test]
fn requests_with_a_cache_hit_are_neutral_and_leave_the_cold_order_alone() {
    let scorer = NoHitLruScorer::default();
    let mut three = candidates(&[0; 3], |c, blocks| c.matched_blocks = blocks);
    three[1].matched_blocks = 3;
    assert_eq!(scores(&scorer, &request(), &three), [0.5; 3]);
    scorer.picked(&request(), &three, &three[0]);
    three[1].matched_blocks = 0;
    assert_eq!(scores(&scorer, &request(), &three), [1.0; 3]);
}

#[test]
fn a_session_stays_where_it_was_until_its_ttl() {
    let scorer = SessionAffinityScorer::new(Duration::from_secs(300));
    let three = candidates(&[0; 3], |c, blocks| c.matched_blocks = blocks);
    let at = |session, seconds: u64| RequestView {
        session: Some(session),
        now: Timestamp::from_millis(seconds * 1000),
        ..request()
    };
    assert_eq!(scores(&scorer, &at(7, 0), &three), [0.0; 3]);
    scorer.picked(&at(7, 0), &three, &three[1]);
    assert_eq!(scores(&scorer, &at(7, 300), &three), [0.0, 1.0, 0.0]);
    assert_eq!(scores(&scorer, &at(8, 300), &three), [0.0; 3], "another session");
    assert_eq!(scores(&scorer, &at(7, 301), &three), [0.0; 3], "too long ago");
    let none = RequestView { session: None, ..request() };
    assert_eq!(scores(&scorer, &none, &three), [0.0; 3]);
}

fn context_ranges() -> ContextRanges {
    let ranges = [(0, 0), (0, u32::MAX), (7, 9)];
    let ranges = ranges.map(|(min, max)| ContextRange::Tokens { min, max });
    ContextRanges::new([0, 1, 2].map(EndpointId).into_iter().zip(ranges))
}

fn every_scorer() -> Vec<Box<dyn Scorer>> {
    let mut all: Vec<Box<dyn Scorer>> = vec![
        Box::new(ExpectedTimeScorer::default()),
        Box::new(LeastRequestScorer),
        Box::new(NoHitLruScorer::default()),
        Box::new(SessionAffinityScorer::default()),
        Box::new(LoadAwareScorer::default()),
        Box::new(TokenLoadScorer::default()),
        Box::new(ActiveRequestsScorer { idle_threshold: 3, busy_score_max: 0.7 }),
        Box::new(PrefixLengthScorer { length_weight: 0.4, scale_tokens: 8192 }),
        Box::new(ContextLengthScorer { ranges: context_ranges() }),
    ];
    for signals in [Signals::Accounted, Signals::Scraped] {
        all.push(Box::new(QueueScorer { signals }));
        all.push(Box::new(KvCacheScorer { signals }));
        all.push(Box::new(PrefixScorer { signals }));
        all.push(Box::new(RunningRequestsScorer { signals }));
        all.push(Box::new(LoraAffinityScorer { signals }));
    }
    all
}

proptest! {
    #[test]
    fn scores_stay_within_zero_and_one_whatever_the_signals(
        raw in collection::vec(
            (
                (option::of(any::<u32>()), option::of(any::<u32>()), option::of(any::<f32>())),
                (any::<f32>(), any::<f32>(), any::<f32>()),
                (any::<u32>(), any::<u32>(), 0..6_usize, any::<u16>()),
                any::<[f32; 10]>(),
            ),
            1..40,
        ),
        prompt_blocks in any::<u32>(),
        prompt_tokens in any::<u32>(),
        block_tokens in any::<u32>(),
    ) {
        let fits = [
            LoraFit::Resident, LoraFit::Room, LoraFit::Waiting, LoraFit::Full, LoraFit::Unknown,
            LoraFit::NotServed,
        ];
        let all: Vec<_> = raw.iter().enumerate().map(|(n, (scraped, accounted, rest, times))| {
            let mut candidate = Candidate::idle(EndpointId(n as u32), Slot(rest.3));
            (candidate.scraped.waiting, candidate.scraped.running, candidate.scraped.kv_usage) =
                *scraped;
            (candidate.waiting, candidate.running, candidate.freshness) = *accounted;
            (candidate.in_flight, candidate.matched_blocks) = (rest.0, rest.1);
            candidate.lora = fits[rest.2];
            candidate.tokens_ahead = times[0];
            candidate.decoding = times[1];
            candidate.foreign_waiting = times[2];
            candidate.speed = Speed {
                base_ms: times[3],
                prefill_ms_per_token: times[4],
                prefill_samples: times[5],
                step_ms: times[6],
                step_samples: times[8],
                output_tokens: times[9],
                prompt_tokens: 500.0,
                adapter_load_ms: times[7],
                adapter_samples: times[8],
            };
            candidate.kv_tokens_max = scraped.2;
            candidate.scraped.lora = fits[5 - rest.2];
            candidate
        }).collect();
        let request = RequestView {
            prompt_blocks,
            prompt_tokens,
            block_tokens,
            session: Some(1),
            ..request()
        };
        for scorer in every_scorer() {
            for _ in 0..2 {
                for score in scores(&*scorer, &request, &all) {
                    prop_assert!((0.0..=1.0).contains(&score), "{}: {score}", scorer.name());
                }
                scorer.picked(&request, &all, &all[0]);
            }
        }
    }
}
