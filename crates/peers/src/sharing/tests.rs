use std::time::Duration;

use gateway::Exchange;
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert_eq, proptest};
use sched::Credit;
use telemetry::metrics::labels::{Direction, PeerLoss};
use types::Timestamp;

use super::Sharing;
use crate::message::MESSAGE_BYTES_MAX;
use crate::testing::{
    Site, blocks, body, document, lost, peers, peers_credit, round, scrape, send, text,
};

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(1_000_000 + millis)
}

fn sites(count: usize, endpoints: usize) -> Vec<Site> {
    let numbers: Vec<_> = (1..=endpoints).collect();
    (0..count).map(|_| Site::new(&document(&numbers, ""))).collect()
}

fn everyone(_: usize, _: usize) -> bool {
    true
}

fn nobody(_: usize, _: usize) -> bool {
    false
}

fn answer(mut exchange: Exchange, now: Timestamp) {
    exchange.finish(gateway::Ending::Complete, now);
}

#[test]
fn a_peers_request_counts_here_until_it_ends() {
    let mut sites = sites(2, 2);
    let (exchange, chosen) = send(&sites[0].gateway, &body(&text("a", 1000)), at(0));
    round(&mut sites, everyone, at(50));
    let credit = peers_credit(&sites[1].gateway, chosen);
    assert_eq!((credit.requests, credit.prefilling), (1, 1));
    assert!((990..=1010).contains(&credit.prefill_tokens), "{credit:?}");
    assert_eq!(peers(&sites[0].gateway), [0, 0], "nobody hears himself");
    answer(exchange, at(60));
    round(&mut sites, everyone, at(100));
    assert_eq!(peers(&sites[1].gateway), [0, 0]);
}

#[test]
fn a_request_avoids_what_a_peer_has_just_sent_somewhere() {
    for _ in 0..20 {
        let mut sites = sites(2, 2);
        scrape(&sites[1].gateway, &[0, 0], at(0));
        let (_long, chosen) = send(&sites[0].gateway, &body(&text("a", 8000)), at(10));
        round(&mut sites, everyone, at(50));
        let (_short, other) = send(&sites[1].gateway, &body(&text("b", 100)), at(60));
        assert_ne!(chosen, other);
    }
}

/// Turns of conversations go to the gateways by turns; the share of them that follow their
/// conversation to its endpoint.
fn affinity(reaches: fn(usize, usize) -> bool) -> f64 {
    let mut sites = sites(2, 8);
    let (mut kept, mut turns) = (0, 0);
    let mut now = 0;
    for conversation in 0..20 {
        let mut said = text(&format!("c{conversation}"), 1000);
        let mut home = None;
        for turn in 0..6 {
            let (exchange, chosen) = send(&sites[turn % 2].gateway, &body(&said), at(now));
            answer(exchange, at(now + 10));
            if let Some(home) = home.replace(chosen) {
                turns += 1;
                kept += u32::from(home == chosen);
            }
            now += 50;
            round(&mut sites, reaches, at(now));
            said.push_str(&text(&format!("c{conversation}t{turn}"), 200));
        }
    }
    f64::from(kept) / f64::from(turns)
}

#[test]
fn a_conversation_whose_turns_reach_both_gateways_stays_on_its_endpoint() {
    assert_eq!(affinity(everyone), 1.0);
}

/// The measure: what two gateways do that know nothing of each other.
#[test]
fn without_sharing_the_same_conversation_wanders() {
    assert!(affinity(nobody) < 0.8);
}

fn land(sites: &[Site], burst: impl Iterator<Item = (usize, u64)>) -> (Vec<u32>, Vec<Exchange>) {
    let mut landed = vec![0; 8];
    let mut open = Vec::new();
    for (number, (site, now)) in burst.enumerate() {
        let prompt = body(&text(&format!("r{number}"), 512));
        let (exchange, chosen) = send(&sites[site].gateway, &prompt, at(now));
        landed[chosen] += 1;
        open.push(exchange);
    }
    (landed, open)
}

#[test]
fn a_burst_over_two_gateways_within_one_flush_lands_evenly() {
    let sites = sites(2, 8);
    let (landed, _open) = land(&sites, (0..200).map(|n| (n % 2, n as u64 / 10)));
    assert!(landed.iter().all(|count| (20..=30).contains(count)), "{landed:?}");
}

#[test]
fn a_burst_at_the_other_gateway_after_a_flush_fills_up_what_is_left() {
    let mut sites = sites(2, 8);
    // An odd number, so that gateway 0 leaves some endpoints with one more.
    let (first, _open) = land(&sites, (0..60).map(|_| (0, 0)));
    round(&mut sites, everyone, at(50));
    let (second, _more) = land(&sites, (0..140).map(|_| (1, 60)));
    let landed: Vec<_> = first.iter().zip(&second).map(|(a, b)| a + b).collect();
    assert!(landed.iter().all(|count| (24..=26).contains(count)), "{landed:?}");
}

#[test]
fn each_side_of_a_split_works_alone_and_both_merge_again() {
    let mut sites = sites(2, 2);
    let (_old, chosen) = send(&sites[0].gateway, &body(&text("a", 100)), at(0));
    round(&mut sites, everyone, at(50));
    assert_eq!(peers(&sites[1].gateway)[chosen], 1);
    // The page counts the peer's request, so nothing is lost when the peer is.
    scrape(&sites[1].gateway, &[1, 1], at(100));
    for flush in 2..30 {
        round(&mut sites, nobody, at(flush * 50));
    }
    assert_eq!(peers(&sites[1].gateway), [0, 0], "silent for more than a second");
    let candidate = sites[1].gateway.members()[chosen].state.observe(None, at(1500));
    assert_eq!(candidate.waiting + candidate.running, 1.0);
    let (_new, other) = send(&sites[1].gateway, &body(&text("b", 100)), at(1500));
    for flush in 30..60 {
        round(&mut sites, everyone, at(flush * 50));
    }
    assert_eq!(peers(&sites[1].gateway)[chosen], 1);
    assert_eq!(peers(&sites[0].gateway)[other], 1);
    let healed = sites[1].gateway.members()[chosen].state.observe(None, at(3000));
    assert!(healed.waiting + healed.running <= 2.0, "nothing is counted twice: {healed:?}");
}

#[test]
fn what_was_lost_on_the_way_is_told_again_within_a_second() {
    let mut sites = sites(2, 2);
    let (exchange, chosen) = send(&sites[0].gateway, &body(&text("a", 100)), at(0));
    round(&mut sites, nobody, at(50));
    for flush in 2..=21 {
        round(&mut sites, everyone, at(flush * 50));
    }
    assert_eq!(peers(&sites[1].gateway)[chosen], 1);
    answer(exchange, at(1100));
    round(&mut sites, nobody, at(1100));
    for flush in 23..=43 {
        round(&mut sites, everyone, at(flush * 50));
    }
    assert_eq!(peers(&sites[1].gateway)[chosen], 0);
}

#[test]
fn a_newcomer_learns_what_is_under_way_and_the_next_turn_of_conversations() {
    let mut sites = sites(2, 4);
    let mut said = text("a", 1000);
    let (open, home) = send(&sites[0].gateway, &body(&said), at(0));
    round(&mut sites, everyone, at(50));
    sites.push(Site::new(&document(&[1, 2, 3, 4], "")));
    sites.iter_mut().for_each(|site| site.sharing.peer_came());
    round(&mut sites, everyone, at(100));
    assert_eq!(peers(&sites[2].gateway)[home], 1);
    answer(open, at(110));
    said.push_str(&text("more", 300));
    let (exchange, _) = send(&sites[0].gateway, &body(&said), at(150));
    answer(exchange, at(160));
    round(&mut sites, everyone, at(200));
    said.push_str(&text("again", 300));
    let (_, chosen) = send(&sites[2].gateway, &body(&said), at(250));
    assert_eq!(chosen, home);
}

#[test]
fn a_gateway_that_leaves_takes_its_credit_with_it_at_once() {
    let mut sites = sites(2, 2);
    let (_open, chosen) = send(&sites[0].gateway, &body(&text("a", 100)), at(0));
    round(&mut sites, everyone, at(50));
    assert_eq!(peers(&sites[1].gateway)[chosen], 1);
    let counter = sites[0].counter;
    sites[1].hear(0, &[Sharing::farewell()], counter, at(60));
    assert_eq!(peers(&sites[1].gateway), [0, 0]);
}

#[test]
fn three_gateways_see_the_sum_of_the_others() {
    let mut sites = sites(3, 1);
    let _open: Vec<_> =
        [0, 1, 1, 2, 2, 2].map(|site| send(&sites[site].gateway, &body("hi"), at(0))).into();
    round(&mut sites, everyone, at(50));
    let seen: Vec<_> = sites.iter().map(|site| peers(&site.gateway)[0]).collect();
    assert_eq!(seen, [5, 4, 3]);
}

#[test]
fn an_endpoint_that_a_peer_does_not_know_is_passed_over() {
    let mut sites = vec![Site::new(&document(&[1, 2], "")), Site::new(&document(&[2, 3], ""))];
    let open: Vec<_> = (0..4).map(|_| send(&sites[0].gateway, &body("hi"), at(0))).collect();
    round(&mut sites, everyone, at(50));
    let on_second = open.iter().filter(|(_, chosen)| *chosen == 1).count();
    assert_eq!(peers(&sites[1].gateway), [on_second as u32, 0]);
    // It comes with a new document, and is heard of with the next telling.
    sites[1].gateway.apply(&document(&[1, 2, 3], ""));
    sites[1].sharing.follow_members();
    for flush in 2..24 {
        round(&mut sites, everyone, at(flush * 50));
    }
    assert_eq!(peers(&sites[1].gateway).iter().sum::<u32>(), 4);
}

#[test]
fn peers_with_blocks_of_another_size_share_load_but_no_prompts() {
    let mut sites = vec![
        Site::new(&document(&[1], "")),
        Site::new(&document(&[1], "  prefixIndex: { blockTokens: 32 }\n")),
    ];
    let _open = send(&sites[0].gateway, &body(&text("a", 1000)), at(0));
    round(&mut sites, everyone, at(50));
    assert_eq!(peers(&sites[1].gateway), [1]);
    assert_eq!(blocks(&sites[1].gateway, Direction::Received), 0);
    assert_eq!(lost(&sites[1].gateway, PeerLoss::Malformed), 0);
}

#[test]
fn a_flush_without_room_for_all_endpoints_tells_the_rest_in_the_next() {
    let mut sites = sites(2, 200);
    sites[0].sharing.credit_messages_max = 1;
    let _open: Vec<_> = (0..400)
        .map(|n| send(&sites[0].gateway, &body(&text(&format!("r{n}"), 300)), at(0)))
        .collect();
    for flush in 1..=4 {
        round(&mut sites, everyone, at(flush * 50));
    }
    assert!(peers(&sites[1].gateway).iter().all(|requests| *requests > 0));
}

#[test]
fn more_prompts_than_a_flush_holds_are_left_out_and_counted() {
    let mut sites = sites(1, 1);
    let prompts: Vec<_> = (0..100).map(|n| body(&text(&format!("r{n}"), 60_000))).collect();
    let _open: Vec<_> = prompts.iter().map(|body| send(&sites[0].gateway, body, at(0))).collect();
    let messages = sites[0].flush(at(50));
    assert!(messages.len() <= 66, "{}", messages.len());
    assert!(messages.iter().all(|message| message.len() <= MESSAGE_BYTES_MAX));
    assert!(blocks(&sites[0].gateway, Direction::Sent) > 8_000);
    assert!(lost(&sites[0].gateway, PeerLoss::FlushFull) > 50);
}

#[test]
fn an_idle_gateway_says_little() {
    let mut sites = sites(2, 100);
    let bytes: usize = (1..=20).map(|flush| round(&mut sites, everyone, at(flush * 50))).sum();
    assert!(bytes < 50, "{bytes} bytes in a second");
}

#[test]
fn a_part_of_a_prompt_whose_beginning_was_lost_is_not_taken_for_the_whole() {
    let mut sites = sites(2, 1);
    let (_open, _) = send(&sites[0].gateway, &body(&text("a", 40_000)), at(0));
    let messages = sites[0].flush(at(50));
    assert!(messages.len() > 3);
    let without_the_first_part: Vec<_> =
        messages.iter().filter(|message| message[0] != 2).chain(&messages[2..]).cloned().collect();
    sites[1].hear(0, &without_the_first_part, 1, at(50));
    assert_eq!(blocks(&sites[1].gateway, Direction::Received), 0);
    assert!(lost(&sites[1].gateway, PeerLoss::Unlinked) >= 3);
}

proptest! {
    #[test]
    fn whatever_a_message_holds_is_survived(message in vec(any::<u8>(), 0..100), kind in 0..5_u8) {
        let mut site = Site::new(&document(&[1], ""));
        let mut framed = vec![kind];
        framed.extend_from_slice(&message);
        for (counter, message) in [&message, &framed].into_iter().enumerate() {
            site.sharing.receive(9, counter as u64 + 1, message, at(0));
        }
        site.sharing.expire(at(5000));
        prop_assert_eq!(peers_credit(&site.gateway, 0), Credit::default());
    }
}

#[test]
fn what_is_not_understood_is_counted() {
    let mut site = Site::new(&document(&[1], ""));
    for message in [[].as_slice(), &[77], &[1], &[1, 0, 1, 2, 3], &[2, 64, 1], &[0, 1, 2]] {
        site.sharing.receive(9, 1, message, at(0));
    }
    assert_eq!(lost(&site.gateway, PeerLoss::Malformed), 6);
}

/// What a flush costs, for `docs/replicas.md`: `cargo test --release -p wicketgate-peers -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn cost_of_a_hundred_requests_a_second() {
    for (endpoints, prompt_tokens, turns) in
        [(8, 1000, 1), (8, 4000, 1), (100, 4000, 1), (8, 4000, 10), (8, 100_000, 1)]
    {
        let mut sites = sites(2, endpoints);
        let mut open = std::collections::VecDeque::new();
        let (mut bytes, mut took) = (0, Duration::ZERO);
        let mut said: Vec<String> = Vec::new();
        for flush in 0..200_u64 {
            for request in 0..5 {
                let number = flush * 5 + request;
                let conversation = (number as usize) % (1000 / turns);
                if conversation >= said.len() {
                    said.push(text(&format!("c{conversation}"), prompt_tokens));
                } else {
                    let more = text(&format!("c{conversation}n{number}"), 300);
                    said[conversation].push_str(&more);
                }
                let prompt = body(&said[conversation]);
                let now = at(flush * 50 + request * 10);
                open.push_back(send(&sites[(number % 2) as usize].gateway, &prompt, now).0);
            }
            // Two seconds each.
            while open.len() > 200 {
                answer(open.pop_front().unwrap(), at(flush * 50));
            }
            let begun = telemetry::clock::now();
            bytes += round(&mut sites, everyone, at(flush * 50 + 50));
            took += telemetry::clock::now().since(begun);
        }
        let seconds = 10.0;
        println!(
            "{endpoints} endpoints, {prompt_tokens} tokens, {turns} turns: {:.1} kB/s, {:.0} us of CPU a second, each gateway",
            bytes as f64 / seconds / 2000.0,
            took.as_secs_f64() * 1e6 / seconds / 2.0
        );
    }
}
