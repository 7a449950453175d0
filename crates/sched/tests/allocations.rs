//! The request path allocates nothing once warm.

use std::sync::Arc;
use std::time::Duration;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use types::{AdapterId, EndpointId, EndpointMetrics, LoraMetrics, Slot, Timestamp};
use wicketgate_sched::{Candidate, EndpointState, Profile, RequestView, Scratch, Weights};

#[test]
fn a_decision_with_every_scorer_allocates_nothing() {
    let weights = Weights {
        running_requests: 1.0,
        lora_affinity: 1.0,
        no_hit_lru: 1.0,
        session_affinity: 1.0,
        expected_time: 1.0,
        ..Weights::REFERENCE
    };
    let profile = Profile::from_weights(&weights);
    let now = Timestamp::from_millis(10);
    let adapter = AdapterId(7);
    let metrics = EndpointMetrics {
        waiting: Some(1),
        running: Some(5),
        lora: Some(LoraMetrics { max: 4, running: vec![adapter], waiting: Vec::new() }),
        ..EndpointMetrics::default()
    };
    let endpoints: Vec<_> = (0..100_u16)
        .map(|n| {
            let state = Arc::new(EndpointState::new(EndpointId(u32::from(n)), Slot(n)));
            state.record_scrape(&metrics, now, Duration::from_secs(1));
            state
        })
        .collect();
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    let mut scratch = Scratch::default();
    let mut candidates: Vec<Candidate> = Vec::with_capacity(endpoints.len());
    let mut decide = |session| {
        let request = RequestView {
            now,
            prompt_blocks: 3,
            prompt_tokens: 200,
            adapter: Some(adapter),
            session: Some(session),
            ..RequestView::default()
        };
        candidates.clear();
        candidates.extend(endpoints.iter().map(|state| state.observe(request.adapter, now)));
        let order = profile.pick(&request, &mut candidates, &mut scratch, &mut rng, None);
        let picked = order.map(|order| candidates[order[0] as usize].endpoint);
        let state = &endpoints[picked.expect("an idle pool has room").0 as usize];
        let mut reservation = state.reserve_with(200, Some(adapter), now);
        reservation.first_token(now);
        reservation.finished(Some(100), now + Duration::from_secs(1));
    };
    // Once per endpoint at least, so that every table has its size.
    (0..300).for_each(&mut decide);
    let counted = allocation_counter::measure(|| (300..600).for_each(&mut decide));
    assert_eq!(counted.count_total, 0);
}
