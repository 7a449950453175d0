//! Many threads at once.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::chain;
use types::Slot;
use wicketgate_prefix::{Config, Matches, PrefixIndex};

#[test]
fn readers_beside_writers_never_see_more_than_was_recorded() {
    let index = PrefixIndex::new(Config { bytes_max: 4 << 20 });
    let prompts: Vec<_> = (0..64).map(|name| chain(name, 200)).collect();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4_u16)
            .map(|writer| {
                let (index, prompts) = (&index, &prompts);
                scope.spawn(move || {
                    for round in 0..400_usize {
                        let prompt = &prompts[(round * 7 + usize::from(writer)) % 64];
                        // Slot parity follows the writer's, so that odd slots hold odd writers'.
                        index.record(Slot(writer % 2 + 2 * (round % 300) as u16), prompt);
                        if round % 50 == 0 {
                            index.clear(Slot((round % 600) as u16));
                            index.set_capacity(Slot(writer), 5_000);
                        }
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                let mut matches = Matches::default();
                while !is_done.load(Ordering::Relaxed) {
                    for prompt in &prompts {
                        index.longest_matches(prompt, &mut matches);
                        assert!(matches.longest() <= 200);
                        assert_eq!(matches.blocks(Slot(601)), 0);
                        let unknown = chain(1 << 50, 3);
                        index.longest_matches(&unknown, &mut matches);
                        assert_eq!(matches.longest(), 0);
                    }
                }
            });
        }
        for writer in writers {
            writer.join().expect("a writer does not panic");
        }
        is_done.store(true, Ordering::Relaxed);
    });
    for slot in 0..600 {
        index.clear(Slot(slot));
    }
    assert_eq!(index.stats().holders, 0, "the count of holders has drifted");
}

#[test]
fn what_threads_record_at_once_is_all_found() {
    let index = PrefixIndex::new(Config::default());
    std::thread::scope(|scope| {
        for thread in 0..4_u16 {
            let index = &index;
            scope.spawn(move || {
                for prompt in 0..70_u64 {
                    index.record(Slot(thread), &chain(prompt * 4 + u64::from(thread), 100));
                }
            });
        }
    });
    let mut matches = Matches::default();
    for prompt in 0..280_u64 {
        index.longest_matches(&chain(prompt, 100), &mut matches);
        assert_eq!(matches.blocks(Slot((prompt % 4) as u16)), 100, "prompt {prompt}");
    }
}
