//! A preview says what would happen, and nothing happens.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{ms, offer, queue, requests, standard, work};
use proptest::prelude::*;
use types::Priority;
use wicketgate_flow::{Bound, Config, Preview, Queue, Reason, Refused, Scope};

/// What really becomes of it, on a queue that is thrown away.
fn happens(queue: &mut Queue<u64>, work: wicketgate_flow::Work, saturation: f32) -> Preview {
    let (now, mut evicted) = (work.received, Vec::new());
    let forecast = queue.forecast(&work.flow, work.tokens, now);
    if queue.pass(&work, saturation, now).is_some() {
        return Preview::Goes;
    }
    match queue.offer(work, 0, saturation, now, &mut evicted) {
        Ok(_) => Preview::Waits { forecast, makes_room: !evicted.is_empty() },
        Err(refused) => Preview::Refused(refused),
    }
}

/// Without the time, which is spread only when it is told.
fn plain(preview: Preview) -> Preview {
    match preview {
        Preview::Refused(Refused { reason, retry_after, ahead }) => {
            let retry_after = retry_after.map(|_| Duration::ZERO);
            Preview::Refused(Refused { reason, retry_after, ahead })
        }
        other => other,
    }
}

fn bounds(config: &mut Config) {
    config.limits = requests(12);
    config.band.limits = requests(6);
    config.band.flow_limits = requests(4);
    config.band.limits.bytes_max = Some(1_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_previewed_is_what_happens(
        before in prop::collection::vec((0..4_u8, 0..3_i32, 1..500_u32), 0..30),
        asked in (0..5_u8, 0..3_i32, 1..500_u32, 1..1_200_u64),
        saturation in 0.5..1.2_f32,
    ) {
        let mut queue = queue(bounds);
        let named = |flow: u8, band: i32, tokens| {
            work(&format!("f{flow}"), Priority((band - 1) * 10), tokens, ms(0))
        };
        for (flow, band, tokens) in before {
            let _ = queue.offer(named(flow, band, tokens), 1, 1.0, ms(0), &mut Vec::new());
        }
        let (flow, band, tokens, bytes) = asked;
        let asked = wicketgate_flow::Work { bytes, ..named(flow, band, tokens) };
        let stats = queue.stats();
        let previewed = queue.preview(&asked, saturation, ms(0));
        prop_assert_eq!(queue.stats(), stats);
        prop_assert_eq!(plain(previewed), plain(happens(&mut queue, asked, saturation)));
    }
}

#[test]
fn a_preview_tells_place_and_wait() {
    let mut queue = queue(|_| {});
    for number in 0..10 {
        offer(&mut queue, standard("a", 1_000, ms(0)), number).unwrap();
    }
    for second in 1..10 {
        let now = ms(1_000 * second);
        let gone = queue.next(0.0, now).unwrap().work;
        queue.drained(&gone.flow, gone.tokens, now);
        offer(&mut queue, standard("a", 1_000, now), second).unwrap();
    }
    let asked = standard("a", 1_000, ms(9_000));
    let Preview::Waits { forecast, makes_room: false } = queue.preview(&asked, 1.0, ms(9_000))
    else {
        panic!("it does not wait")
    };
    assert_eq!(forecast.position, 10);
    let wait = forecast.wait.unwrap().as_secs();
    assert!((8..=13).contains(&wait), "ten thousand tokens at a thousand a second: {wait} s");
}

#[test]
fn a_preview_of_a_refusal_tells_why_and_when() {
    let mut queue = queue(|config| config.band.limits = requests(1));
    offer(&mut queue, standard("a", 10, ms(0)), 1).unwrap();
    let Preview::Refused(refused) = queue.preview(&standard("a", 10, ms(0)), 1.0, ms(0)) else {
        panic!("it is not refused")
    };
    assert_eq!(refused.reason, Reason::Full { scope: Scope::Band, bound: Bound::Requests });
    assert!(refused.retry_after >= Some(Duration::from_secs(1)));
}
