//! Memory: what a block costs, and that the bound holds.

mod common;

use common::{chain, matched};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use types::Slot;
use wicketgate_prefix::{Config, PrefixIndex};

/// Unique prompts: characters of a 256-byte block against the bytes that it takes.
#[test]
fn a_unique_prompt_takes_far_less_than_its_share_of_a_byte_per_character() {
    let index = PrefixIndex::new(Config::default());
    let slots = 40;
    let mut blocks = 0_u64;
    let mut worst = 0.0_f64;
    for slot in 0..slots {
        index.set_capacity(Slot(slot), 1 << 20);
    }
    for prompt in 0..2000_u64 {
        let hashes = chain(prompt, 100);
        blocks += hashes.len() as u64;
        index.record(Slot((prompt % u64::from(slots)) as u16), &hashes);
        if blocks > 100_000 && prompt % 100 == 0 {
            worst = worst.max(index.stats().bytes as f64 / blocks as f64);
        }
    }
    assert_eq!(index.stats().holders, blocks);
    assert!(worst <= 16.0, "{worst:.1} bytes per block and holder");
    assert!(worst / 256.0 <= 0.15, "{:.3} bytes per character", worst / 256.0);
}

/// Around every change of how holders are stored: words, short rows, lists, bitsets.
#[test]
fn a_block_takes_at_most_sixteen_bytes_per_holder_however_many_hold_it() {
    for holders in [1_u16, 4, 5, 7, 9, 16, 40, 150, 171, 1000] {
        let index = PrefixIndex::new(Config { bytes_max: 8 << 20 });
        for slot in 0..1000 {
            index.set_capacity(Slot(slot), 1 << 20);
        }
        let prompts = (200_000 / 100 / u64::from(holders)).max(1);
        let mut next = 0;
        for prompt in 0..prompts {
            let hashes = chain(prompt, 100);
            for _ in 0..holders {
                // Spread over all endpoints, as far apart as they get.
                next = (next + 389) % 1000;
                index.record(Slot(next), &hashes);
            }
        }
        let stats = index.stats();
        assert_eq!(stats.holders, prompts * 100 * u64::from(holders), "{holders} holders");
        let fixed = 1000 * 1024 + PrefixIndex::new(Config { bytes_max: 8 << 20 }).stats().bytes;
        let per_holder = (stats.bytes - fixed) as f64 / stats.holders as f64;
        assert!(per_holder <= 16.0, "{per_holder:.1} bytes with {holders} holders");
    }
}

#[test]
fn a_thousand_endpoints_that_come_and_go_stay_within_the_bound() {
    let bytes_max = 8 << 20;
    let index = PrefixIndex::new(Config { bytes_max });
    let mut rng = Pcg64Mcg::seed_from_u64(11);
    let shared = chain(u64::MAX, 30);
    for round in 0..12_000_u64 {
        let slot = Slot(rng.random_range(0..1000));
        match rng.random_range(0..40) {
            0 => index.clear(slot),
            1 => index.set_capacity(slot, rng.random_range(1..100_000)),
            2 => {
                index.record(slot, &shared);
            }
            _ => {
                let mut prompt = shared[..rng.random_range(0..30)].to_vec();
                let name = if rng.random() { round } else { rng.random_range(0..200) };
                prompt.extend(chain(name, rng.random_range(1..150)));
                index.record(slot, &prompt);
            }
        }
        if round % 100 == 0 {
            let bytes = index.stats().bytes;
            assert!(bytes <= bytes_max as u64 + 2_000_000, "{bytes} after {round}");
        }
    }
    assert!(index.stats().holders > 200_000, "the room is used: {:?}", index.stats());
}

#[test]
fn ten_times_more_than_fits_stays_within_the_bound_and_keeps_the_newest() {
    let bytes_max = 1 << 19;
    let index = PrefixIndex::new(Config { bytes_max });
    for slot in 0..10 {
        index.set_capacity(Slot(slot), 1 << 24);
    }
    let fits = bytes_max / 11;
    let prompts = (10 * fits / 100) as u64;
    for prompt in 0..prompts {
        index.record(Slot((prompt % 10) as u16), &chain(prompt, 100));
        if prompt % 200 == 0 {
            let stats = index.stats();
            assert!(stats.bytes <= bytes_max as u64 + 100_000, "{stats:?} after {prompt}");
        }
    }
    let newest = prompts - (fits / 100 / 2) as u64..prompts;
    let found: u64 = newest
        .clone()
        .map(|prompt| u64::from(matched(&index, Slot((prompt % 10) as u16), &chain(prompt, 100))))
        .sum();
    let share = found as f64 / (newest.count() * 100) as f64;
    assert!(share > 0.97, "only {share:.3} of the newest half is found");
    let stats = index.stats();
    assert!(stats.holders as usize > fits / 2, "the room is used: {stats:?}");
}

#[test]
fn at_the_bound_an_idle_endpoint_gives_way_to_a_busy_one() {
    let index = PrefixIndex::new(Config { bytes_max: 1 << 20 });
    for slot in 0..2 {
        index.set_capacity(Slot(slot), 1 << 24);
    }
    for prompt in 0..2000 {
        index.record(Slot(0), &chain(prompt, 100));
    }
    for prompt in 10_000..10_300 {
        index.record(Slot(1), &chain(prompt, 100));
    }
    let found: u32 =
        (10_000..10_300).map(|prompt| matched(&index, Slot(1), &chain(prompt, 100))).sum();
    assert!(found > 28_000, "{found} of 30000");
}

#[test]
fn an_empty_index_is_small() {
    let bytes = PrefixIndex::new(Config::default()).stats().bytes;
    assert!(bytes < 700_000, "{bytes}");
}
