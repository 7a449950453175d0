//! Ours alone: bytes per (block, holder) and lookups, by size and by holders of a block.

use anyhow::Result;

use crate::lookups::{self, HELD, PROMPT_BLOCKS};
use crate::memory::allocated;
use crate::subject::Subject;

const ENDPOINTS: usize = 1000;
const PAIRS: [usize; 4] = [10_000, 100_000, 1_000_000, 10_000_000];
/// Pairs of the index whose lookups are timed.
const LOOKED_UP_PAIRS: usize = 4_000_000;

pub fn run(holders: &[usize], count: usize) -> Result<()> {
    println!("bytes per (block, holder), allocator's count, {ENDPOINTS} endpoints");
    print!("{:>8}", "holders");
    for pairs in PAIRS {
        print!(" {pairs:>12}");
    }
    println!();
    for &holders in holders {
        print!("{holders:>8}");
        for pairs in PAIRS {
            let before = allocated()?;
            let index = Subject::Wicketgate.make(ENDPOINTS)?;
            let mut writer = index.writer()?;
            let prompts = (pairs / PROMPT_BLOCKS / holders).max(1) as u64;
            lookups::fill(&mut *writer, prompts, (ENDPOINTS, holders))?;
            let stored = prompts as usize * PROMPT_BLOCKS * holders;
            print!(" {:>12.1}", (allocated()? - before) as f64 / stored as f64);
        }
        println!();
    }
    println!("\nlookups of {PROMPT_BLOCKS} blocks among {LOOKED_UP_PAIRS} pairs, µs P50 P99 P99.9");
    for &holders in holders {
        let index = Subject::Wicketgate.make(ENDPOINTS)?;
        let mut writer = index.writer()?;
        let prompts = (LOOKED_UP_PAIRS / PROMPT_BLOCKS / holders).max(1) as u64;
        lookups::fill(&mut *writer, prompts, (ENDPOINTS, holders))?;
        for (held, name) in HELD {
            let size = (prompts, ENDPOINTS);
            let alone = lookups::measure(&*index, None, size, held, (count, 1))?;
            let beside = lookups::measure(&*index, Some(&mut *writer), size, held, (count, 2))?;
            println!(
                "{holders:>8} holders, {name}: alone {}   beside a writer {}   {:.1} M blocks/s",
                alone.spread,
                beside.spread,
                beside.written_per_second / 1e6
            );
        }
    }
    Ok(())
}
