//! The queue against a naive one: a list that is searched from end to end.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;

use common::ms;
use proptest::collection::vec;
use proptest::prelude::*;
use types::{Priority, Timestamp};
use wicketgate_flow::{BandConfig, Bound, Config, Fairness, Limits, Queue, Reason, Ticket, Victim};

#[derive(Clone, Debug)]
enum Op {
    Offer { flow: u8, priority: i32, tokens: u32, bytes: u64, age_ms: u64 },
    Next { saturation: f32 },
    Cancel { nth: usize },
    Wait { millis: u64 },
}

fn op() -> impl Strategy<Value = Op> {
    let tokens = prop_oneof![4 => 1..500_u32, 1 => Just(0), 1 => Just(u32::MAX)];
    prop_oneof![
        6 => (0..5_u8, prop_oneof![Just(100), Just(0), Just(7)], tokens, 0..400_u64, 0..2000_u64)
            .prop_map(|(flow, priority, tokens, bytes, age_ms)| Op::Offer { flow, priority, tokens, bytes, age_ms }),
        5 => prop_oneof![3 => Just(0.5_f32), 1 => Just(1.0), 1 => Just(f32::NAN)]
            .prop_map(|saturation| Op::Next { saturation }),
        1 => any::<usize>().prop_map(|nth| Op::Cancel { nth }),
        2 => (0..3000_u64).prop_map(|millis| Op::Wait { millis }),
    ]
}

struct Listed {
    ticket: Ticket,
    number: u64,
    flow: (Priority, String),
    tokens: u64,
    /// Charged to its flow.
    cost: u64,
    bytes: u64,
    received: Timestamp,
    expiry: Timestamp,
}

/// Rank and turn of each flow that was ever seen, and the virtual time of each band.
#[derive(Default)]
struct Naive {
    items: Vec<Listed>,
    ranks: BTreeMap<(Priority, String), (f64, u64)>,
    clocks: BTreeMap<Priority, (f64, f64)>,
    turns: u64,
    fairness: Fairness,
}

impl Naive {
    fn of_flow<'a>(&'a self, flow: &'a (Priority, String)) -> impl Iterator<Item = &'a Listed> {
        self.items.iter().filter(move |item| item.flow == *flow)
    }

    fn push(&mut self, item: Listed) {
        self.turns += 1;
        let start = self.clocks.entry(item.flow.0).or_default().0;
        if self.items.iter().all(|other| other.flow != item.flow) {
            let entry = self.ranks.entry(item.flow.clone()).or_default();
            *entry = (entry.0.max(start), self.turns);
        }
        self.items.push(item);
    }

    fn next(&mut self) -> Option<usize> {
        let priority = self.items.iter().map(|item| item.flow.0).max()?;
        let key = |at: &usize| {
            let item = &self.items[*at];
            let (rank, turn) = match self.fairness {
                Fairness::GlobalOrder => (0.0, 0),
                _ => self.ranks[&item.flow],
            };
            (rank.to_bits(), turn, item.received, item.number)
        };
        let all = (0..self.items.len()).filter(|at| self.items[*at].flow.0 == priority);
        let best = all.min_by_key(key)?;
        self.turns += 1;
        let (now, end) = self.clocks.entry(priority).or_default();
        let rank = self.ranks.get_mut(&self.items[best].flow)?;
        *now = now.max(rank.0);
        *rank = (rank.0 + self.items[best].cost as f64, self.turns);
        *end = end.max(rank.0);
        if self.items.iter().filter(|item| item.flow.0 == priority).count() == 1 {
            *now = *end;
        }
        Some(best)
    }
}

/// Bounds small enough to be met.
fn config(fairness: Fairness) -> Config {
    let limits = Limits { requests_max: Some(12), bytes_max: Some(3000), tokens_max: Some(4000) };
    let band = BandConfig {
        limits,
        flow_limits: Limits { requests_max: Some(8), ..Limits::default() },
        ttl: std::time::Duration::from_secs(8),
        fairness,
        ..BandConfig::default()
    };
    Config {
        limits: Limits { requests_max: Some(20), bytes_max: Some(5000), tokens_max: None },
        band,
        ..Config::default()
    }
}

/// Both give out whose time is over; how many.
fn end_overdue(queue: &mut Queue<u64>, naive: &mut Naive, now: Timestamp) -> u64 {
    let mut out = Vec::new();
    queue.expired(now, &mut out);
    for gone in &out {
        let at = naive.items.iter().position(|item| item.number == gone.payload).unwrap();
        assert!(naive.items.remove(at).expiry <= now);
    }
    out.len() as u64
}

fn play(fairness: Fairness, ops: Vec<Op>) {
    let config = config(fairness);
    let mut queue = Queue::new(config.clone());
    let mut naive = Naive { fairness, ..Naive::default() };
    let (mut now, mut offered, mut ended) = (ms(10_000), 0_u64, 0_u64);
    for op in ops {
        match op {
            Op::Offer { flow, priority, tokens, bytes, age_ms } => {
                ended += end_overdue(&mut queue, &mut naive, now);
                let mut asked = common::work(&flow.to_string(), Priority(priority), tokens, now);
                asked.received = Timestamp(now.0 - age_ms * 1_000_000);
                asked.bytes = bytes;
                let mut evicted = Vec::new();
                offered += 1;
                let number = offered;
                let outcome = queue.offer(asked.clone(), number, 1.0, now, &mut evicted);
                for victim in evicted {
                    let at = naive.items.iter().position(|item| item.number == victim.payload);
                    let gone = naive.items.remove(at.expect("evicted though not queued"));
                    assert!(gone.flow.0 <= Priority(priority), "a higher band gave way");
                    let is_lowest = naive.items.iter().all(|item| item.flow.0 >= gone.flow.0);
                    match victim.why {
                        Victim::OfPriority => assert!(is_lowest && gone.flow.0.0 < priority),
                        Victim::OfFairness => assert_eq!(gone.flow.0.0, priority),
                        Victim::OfPromise => unreachable!("nobody here comes back"),
                    }
                    let last = naive.of_flow(&gone.flow).map(|item| (item.received, item.number));
                    assert!(
                        last.max() < Some((gone.received, gone.number))
                            || naive.of_flow(&gone.flow).count() == 0
                    );
                    ended += 1;
                }
                match outcome {
                    Ok(ticket) => {
                        let flow = (Priority(priority), flow.to_string());
                        let expiry = now + config.band.ttl;
                        let (tokens, cost) = (asked.cost().min(4000), asked.cost());
                        let received = asked.received;
                        naive.push(Listed {
                            ticket,
                            number,
                            flow,
                            tokens,
                            cost,
                            bytes,
                            received,
                            expiry,
                        });
                    }
                    Err(refused) => {
                        ended += 1;
                        let of = |priority| {
                            naive.items.iter().filter(move |item| item.flow.0 == priority)
                        };
                        let band: Vec<_> = of(Priority(priority)).collect();
                        match refused.reason {
                            Reason::Full { bound: Bound::Time, .. } => {}
                            _ => assert!(
                                band.len() >= 8
                                    || band.iter().map(|item| item.bytes).sum::<u64>() + bytes
                                        > 3000
                                    || band.iter().map(|item| item.tokens).sum::<u64>()
                                        + asked.cost()
                                        > 4000
                                    || naive.items.len() >= 20
                                    || naive.items.iter().map(|item| item.bytes).sum::<u64>()
                                        + bytes
                                        > 5000,
                                "refused without need: {refused:?}"
                            ),
                        }
                    }
                }
            }
            Op::Next { saturation } => {
                ended += end_overdue(&mut queue, &mut naive, now);
                assert!(naive.items.iter().all(|item| item.expiry > now), "one stayed too long");
                let gone = queue.next(saturation, now);
                let expected = if saturation < 1.0 { naive.next() } else { None };
                assert_eq!(
                    gone.as_ref().map(|gone| gone.payload),
                    expected.map(|at| naive.items[at].number)
                );
                if let Some(at) = expected {
                    naive.items.remove(at);
                    ended += 1;
                }
            }
            Op::Cancel { nth } if !naive.items.is_empty() => {
                let gone = naive.items.remove(nth % naive.items.len());
                // Its time may be over without anyone having asked yet: it is still given back once.
                assert_eq!(queue.cancel(gone.ticket), Some(gone.number));
                assert_eq!(queue.cancel(gone.ticket), None);
                ended += 1;
            }
            Op::Cancel { .. } => {}
            Op::Wait { millis } => now = Timestamp(now.0 + millis * 1_000_000),
        }
        let stats = queue.stats();
        for band in &stats {
            assert!(band.requests <= 12 && band.bytes <= 3000 && band.tokens <= 4000, "{band:?}");
        }
        let sum = |of: fn(&Listed) -> u64| naive.items.iter().map(of).sum::<u64>();
        let (bytes, tokens) = (sum(|item| item.bytes), sum(|item| item.tokens));
        // What is overdue waits to be fetched, and holds nothing meanwhile.
        assert!(stats.iter().map(|band| band.bytes).sum::<u64>() <= bytes);
        assert!(stats.iter().map(|band| band.tokens).sum::<u64>() <= tokens);
        assert!(queue.len() <= naive.items.len() && queue.len() <= 20);
    }
    // Each request ends exactly once.
    let mut out = Vec::new();
    queue.expired(now, &mut out);
    ended += out.len() as u64;
    ended += std::iter::from_fn(|| queue.next(0.0, now)).count() as u64;
    assert_eq!((ended, queue.len()), (offered, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn it_does_what_a_list_searched_from_end_to_end_would_do(ops in vec(op(), 1..120)) {
        play(Fairness::DeficitRoundRobin, ops);
    }

    #[test]
    fn a_global_order_is_that_of_a_sorted_list(ops in vec(op(), 1..120)) {
        play(Fairness::GlobalOrder, ops);
    }
}
