//! Traffic is what it says it is.

use std::time::Duration;

use types::{AdapterId, Timestamp};

use super::{Request, Sharing, uncached_tokens};
use crate::prompt::Segment;
use crate::scenario::{SCENARIOS, Scenario};

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_seed_fixes_what_is_asked_and_when() {
    for scenario in SCENARIOS {
        let workload = scenario.pools[0].workload;
        let all = workload.requests(5, 10.0, MINUTE);
        assert_eq!(all, workload.requests(5, 10.0, MINUTE), "{}", scenario.name);
        assert_ne!(all, workload.requests(6, 10.0, MINUTE), "{}", scenario.name);
        assert!(all.is_sorted_by_key(|request| request.at), "{}", scenario.name);
    }
}

#[test]
fn every_kind_of_traffic_keeps_its_rate() {
    let is_drawn =
        |scenario: &&Scenario| !matches!(scenario.pools[0].workload.sharing, Sharing::Trace(_));
    for scenario in SCENARIOS.iter().filter(is_drawn) {
        let until = Duration::from_secs(1200);
        let rate = scenario.pools[0].workload.requests(1, 10.0, until).len() as f64 / 1200.0;
        assert!((rate / 10.0 - 1.0).abs() < 0.08, "{}: {rate}", scenario.name);
    }
}

#[test]
fn adapters_are_named_by_zipfs_law_and_the_base_model_has_its_share() {
    let churn = SCENARIOS.iter().find(|scenario| scenario.name == "lora-churn").unwrap();
    let all = churn.pools[0].workload.requests(1, 20.0, Duration::from_secs(1000));
    let share = |adapter: Option<AdapterId>| {
        all.iter().filter(|request| request.adapter == adapter).count() as f64 / all.len() as f64
    };
    let named = |rank: u32| share(Some(AdapterId::of(&format!("adapter-{rank}"))));
    assert!((share(None) - 0.1).abs() < 0.01, "{}", share(None));
    assert!((named(0) / named(1) / 2_f64.powf(0.9) - 1.0).abs() < 0.1);
    assert!(named(39) > 0.0 && named(40) == 0.0);
}

#[test]
fn adapters_share_no_block() {
    let request = |name: Option<&str>| Request {
        at: Timestamp::ZERO,
        prompt: Box::new([Segment { content: 1, tokens: 160 }]),
        answer: Segment { content: 2, tokens: 1 },
        adapter: name.map(AdapterId::of),
    };
    let requests = [request(None), request(Some("a")), request(Some("b")), request(Some("a"))];
    assert_eq!(uncached_tokens(&requests, 16), [160, 160, 160, 16]);
}

#[test]
fn the_next_turn_of_a_chat_begins_with_the_turn_before_and_its_answer() {
    let chat = SCENARIOS.iter().find(|scenario| scenario.name == "chat").unwrap();
    let all = chat.pools[0].workload.requests(1, 4.0, Duration::from_secs(300));
    let followed = all.iter().filter(|turn| {
        let said = [&turn.prompt[..], &[turn.answer]].concat();
        all.iter().any(|next| next.at > turn.at && next.prompt.starts_with(&said))
    });
    assert!(followed.count() * 2 > all.len());
}

#[test]
fn with_endless_memory_only_the_new_text_is_computed() {
    let groups = SCENARIOS.iter().find(|scenario| scenario.name == "prefix-8b").unwrap();
    let mix = groups.pools[0].workload.mix(8);
    assert!((1200.0..1220.0).contains(&mix.uncached), "{mix:?}");
    assert_eq!((mix.prompt, mix.output, mix.own), (7200.0, 1000.0, 1700.0));
}
