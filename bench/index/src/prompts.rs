//! What is recorded and looked up: a recorded trace, and long prompts that nobody shares.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

/// Blocks of one 512-token id of the trace: ours have 64 tokens.
const BLOCKS_PER_ID: u64 = 8;
/// Share of a prompt that must be held for it to follow its prefix; SGLang's threshold.
const FOLLOW_SHARE: f64 = 0.3;

/// A prompt, where it is sent, and what the best endpoint holds of it then.
pub struct Sent {
    pub endpoint: usize,
    pub blocks: Vec<u64>,
    pub held: u32,
}

#[derive(Deserialize)]
struct Line {
    hash_ids: Vec<u64>,
}

/// Reads a trace in Mooncake's format and sends each prompt to the endpoint that holds most of
/// it, or the next in turn.
pub fn replay(trace: &Path, endpoints: usize) -> Result<Vec<Sent>> {
    let text = std::fs::read_to_string(trace)
        .with_context(|| format!("cannot read the trace {}", trace.display()))?;
    let mut held: HashMap<u64, Vec<bool>> = HashMap::new();
    let mut next = 0;
    let mut sent = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line: Line = serde_json::from_str(line)
            .with_context(|| format!("line {} of {}", number + 1, trace.display()))?;
        let blocks: Vec<_> = line.hash_ids.iter().flat_map(|id| sub_blocks(*id)).collect();
        let matches = (0..endpoints).map(|endpoint| {
            let holds = |block: &&u64| held.get(*block).is_some_and(|holders| holders[endpoint]);
            (blocks.iter().take_while(holds).count(), endpoint)
        });
        let (most, best) = matches.max_by_key(|(blocks, _)| *blocks).unwrap_or_default();
        let follows = most as f64 > FOLLOW_SHARE * blocks.len() as f64;
        let endpoint = if follows { best } else { next % endpoints };
        next += usize::from(!follows);
        for block in &blocks {
            held.entry(*block).or_insert_with(|| vec![false; endpoints])[endpoint] = true;
        }
        sent.push(Sent { endpoint, blocks, held: most as u32 });
    }
    Ok(sent)
}

fn sub_blocks(id: u64) -> impl Iterator<Item = u64> {
    (0..BLOCKS_PER_ID).map(move |part| mix(id * BLOCKS_PER_ID + part))
}

/// A prompt that shares nothing with those of other names.
pub fn unique(name: u64, blocks: usize, out: &mut Vec<u64>) {
    out.clear();
    let first = mix(name ^ 0x5eed_0000_0000_0000);
    out.extend((0..blocks as u64).map(|at| mix(first.wrapping_add(at))));
}

/// splitmix64's finaliser: a stand-in for a block's hash.
pub fn mix(value: u64) -> u64 {
    let mut x = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
