//! What must hold of an engine whatever it is asked to do.

mod books;
mod latency;
mod runs;
mod scheduling;

use std::time::Duration;

use types::{AdapterId, Timestamp};

use super::{BlockHash, Engine, EngineSpec, Event, Hardware, RequestId, RequestSpec, RequestTimes};

/// A small engine: blocks of 16, few of them, one at a time.
pub(super) fn small(block_count: u32) -> EngineSpec {
    let hardware = Hardware::find("llama-3.1-8b/h100").unwrap();
    let mut spec = EngineSpec::new(types::EngineKind::Vllm, hardware, 2, 3);
    spec.block_count = block_count;
    spec.batched_tokens_max = 512;
    spec.sequences_max = 8;
    spec.api_delay = Duration::ZERO;
    spec
}

/// A request whose prompt and answer nobody else shares, unless `content` is the same.
pub(super) fn request(
    id: u64,
    content: u64,
    prompt_tokens: u32,
    output_tokens: u32,
) -> RequestSpec {
    let hash = |at: u32| BlockHash((content + 1) << 32 | u64::from(at));
    let prompt_blocks: Vec<_> = (0..prompt_tokens / 16).map(hash).collect();
    let all = (prompt_tokens + output_tokens) / 16;
    RequestSpec {
        id: RequestId(id),
        answer_blocks: (prompt_tokens / 16..all).map(hash).collect(),
        prompt_blocks,
        prompt_tokens,
        output_tokens,
        output_tokens_max: output_tokens,
        adapter: None,
        arrived: Timestamp::ZERO,
    }
}

pub(super) fn with_adapter(mut spec: RequestSpec, name: &str) -> RequestSpec {
    spec.adapter = Some(AdapterId::of(name));
    spec
}

/// Runs until nothing is left; returns all events and the time at the end.
pub(super) fn run(engine: &mut Engine, mut now: Timestamp) -> (Vec<Event>, Timestamp) {
    let mut events = Vec::new();
    while let Some(ready) = engine.next_ready() {
        now = now.max(ready);
        let step = engine.step(now).expect("ready, so there is a step");
        now = now + step.duration;
        engine.finish_step(now, &mut events);
    }
    (events, now)
}

pub(super) fn finished(events: &[Event]) -> Vec<(RequestId, RequestTimes)> {
    let pick = |event: &Event| match event {
        Event::Finished { id, times } => Some((*id, *times)),
        _ => None,
    };
    events.iter().filter_map(pick).collect()
}
