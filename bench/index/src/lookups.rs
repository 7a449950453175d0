//! Timed lookups in an index that is out of the caches, alone or beside a writer.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::figures::Spread;
use crate::prompts::{mix, unique};
use crate::subject::{Index, Write};

/// Blocks of a looked-up prompt.
pub const PROMPT_BLOCKS: usize = 2000;
/// Blocks of a prompt that the concurrent writer records.
const WRITTEN_BLOCKS: usize = 100;
/// Names of prompts that are never recorded.
const UNKNOWN: u64 = 1 << 50;
/// Names of prompts that the concurrent writer records.
const WRITTEN: u64 = 1 << 52;

/// How much of a prompt is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    Full,
    Half,
    None,
}

pub const HELD: [(Held, &str); 3] =
    [(Held::Full, "full match"), (Held::Half, "half match"), (Held::None, "no match")];

/// One measurement: what was looked up, how long it took.
pub struct Lookups {
    pub spread: Spread,
    /// Blocks that the writer recorded meanwhile, per second.
    pub written_per_second: f64,
}

/// Looks up `count` of the prompts named `0..prompts`, each in the index whole, in random order.
pub fn measure(
    index: &dyn Index,
    writer: Option<&mut (dyn Write + Send)>,
    (prompts, endpoints): (u64, usize),
    held: Held,
    (count, seed): (usize, u64),
) -> Result<Lookups> {
    let is_done = AtomicBool::new(false);
    let written = AtomicU64::new(0);
    let begun = Instant::now();
    let has_writer = writer.is_some();
    let spread = std::thread::scope(|scope| {
        let thread = writer.map(|writer| {
            let (is_done, written) = (&is_done, &written);
            scope.spawn(move || write(writer, endpoints, seed, is_done, written))
        });
        while has_writer && written.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        let spread = look_up(index, prompts, held, (count, seed));
        is_done.store(true, Ordering::Relaxed);
        if let Some(Ok(result)) = thread.map(std::thread::ScopedJoinHandle::join) {
            result?;
        }
        spread
    })?;
    let written_per_second = written.into_inner() as f64 / begun.elapsed().as_secs_f64();
    Ok(Lookups { spread, written_per_second })
}

fn look_up(
    index: &dyn Index,
    prompts: u64,
    held: Held,
    (count, seed): (usize, u64),
) -> Result<Spread> {
    let mut reader = index.reader();
    let (mut blocks, mut others) = (Vec::new(), Vec::new());
    let mut times = Vec::with_capacity(count);
    // The first few make room in the reader and are not counted.
    for number in 0..count as u64 + 16 {
        unique(mix(seed ^ number << 20) % prompts, PROMPT_BLOCKS, &mut blocks);
        unique(UNKNOWN + number, PROMPT_BLOCKS, &mut others);
        let kept = match held {
            Held::Full => PROMPT_BLOCKS,
            Held::Half => PROMPT_BLOCKS / 2,
            Held::None => 0,
        };
        blocks[kept..].copy_from_slice(&others[kept..]);
        reader.prepare(&blocks);
        let begun = Instant::now();
        let best = black_box(reader.best());
        let took = begun.elapsed();
        let found = best.map_or(0, |(_, blocks)| blocks as usize);
        ensure!(found == kept, "found {found} blocks of a prompt with {kept} held");
        if number >= 16 {
            times.push(took);
        }
    }
    Ok(Spread::of(times))
}

fn write(
    writer: &mut (dyn Write + Send),
    endpoints: usize,
    seed: u64,
    is_done: &AtomicBool,
    written: &AtomicU64,
) -> Result<()> {
    let mut blocks = Vec::new();
    let mut name = WRITTEN + mix(seed) % (1 << 40);
    while !is_done.load(Ordering::Relaxed) {
        name += 1;
        unique(name, WRITTEN_BLOCKS, &mut blocks);
        writer.prepare(name as usize % endpoints, &blocks)?;
        writer.store()?;
        written.fetch_add(WRITTEN_BLOCKS as u64, Ordering::Relaxed);
    }
    writer.settle()
}

/// Records the prompts named `0..prompts`, each on `holders` endpoints in turn.
pub fn fill(
    writer: &mut (dyn Write + Send),
    prompts: u64,
    (endpoints, holders): (usize, usize),
) -> Result<Duration> {
    let mut blocks = Vec::new();
    let mut took = Duration::ZERO;
    for name in 0..prompts {
        unique(name, PROMPT_BLOCKS, &mut blocks);
        for holder in 0..holders {
            writer.prepare((name as usize + holder) % endpoints, &blocks)?;
            let begun = Instant::now();
            writer.store()?;
            took += begun.elapsed();
        }
    }
    let begun = Instant::now();
    writer.settle()?;
    Ok(took + begun.elapsed())
}
