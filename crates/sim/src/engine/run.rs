//! Runs: steps that decode the same batch, played at once.
//!
//! While nobody enters, is let in, finishes or yields, a step differs from the one before only by
//! one more token in every context. So the end of each such step is known in advance, and the books
//! (tokens, blocks) can be brought up to date once for all of them. The result is the same to the
//! nanosecond and to the order of the free list; a property test plays both ways.

use std::time::Duration;

use types::Timestamp;

use super::cost::BatchCost;
use super::{Engine, Place, RequestId, StepWork};
use crate::engine::Event;

/// Most steps of a run. A request that enters cuts a run short, and what was foreseen beyond it was
/// in vain.
const STEPS_MAX: usize = 64;

/// A run that has begun: call [`Engine::finish_run`] at `end`, unless a request or a cut changes
/// that ([`Engine::run_end`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// At least 1.
    pub steps: u32,
    /// End of the first step.
    pub first_end: Timestamp,
    /// End of the last step.
    pub end: Timestamp,
    /// What the first step computes. Only a run of one step can compute prompt tokens.
    pub work: StepWork,
    /// The part of the first step's time that loading adapters took.
    pub adapter_load: Duration,
}

/// Tokens of the steps before the last of a run: each of `requests` got one at each of `ends`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// In order of admission.
    pub requests: Vec<RequestId>,
    /// Rising.
    pub ends: Vec<Timestamp>,
}

impl Decoded {
    fn clear(&mut self) {
        self.requests.clear();
        self.ends.clear();
    }
}

/// A run seen from within, at some instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunView {
    /// Steps of the run that have ended: so many tokens has each of its requests got that no call
    /// has reported yet.
    pub steps_ended: u32,
    /// End of the step under way.
    pub step_end: Timestamp,
    /// Blocks in use, those of the step under way included.
    pub blocks_used: u32,
    /// Blocks in use when the last step ended: what a metrics page shows that is renewed once a
    /// step. `None`: the first step is still under way.
    pub blocks_used_at_last_end: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct ForeseenStep {
    end: Timestamp,
    blocks_used: u32,
}

/// The steps of the run under way. Empty: a step that was begun on its own, or none.
#[derive(Debug, Default)]
pub(super) struct Foreseen {
    steps: Vec<ForeseenStep>,
    /// For each request of the batch, how far its tokens reach into its last block.
    residues: Vec<u32>,
    /// How many requests have each residue.
    counts: Vec<u32>,
    /// Places in the batch, sorted by residue; `starts` says where each residue begins.
    by_residue: Vec<u32>,
    starts: Vec<u32>,
}

impl Foreseen {
    /// Steps before the last one.
    pub(super) fn quiet_steps(&self) -> usize {
        self.steps.len().saturating_sub(1)
    }

    pub(super) fn clear(&mut self) {
        self.steps.clear();
    }

    /// Nothing is certain any more but the step under way, taken to be the first.
    pub(super) fn keep_first(&mut self) {
        self.steps.truncate(1);
    }

    /// The step that begins at `ready` or later is another one: somebody enters.
    pub(super) fn cut_at_entry(&mut self, ready: Timestamp) {
        let last = self.steps.partition_point(|step| step.end < ready);
        self.steps.truncate(last + 1);
    }

    /// Steps that have ended before `now`, the last one never.
    fn ended(&self, now: Timestamp) -> usize {
        self.steps.partition_point(|step| step.end < now).min(self.quiet_steps())
    }

    fn sort_by_residue(&mut self) {
        self.starts.clear();
        let mut start = 0;
        for count in &self.counts {
            self.starts.push(start);
            start += count;
        }
        self.by_residue.resize(self.residues.len(), 0);
        for (at, residue) in self.residues.iter().enumerate() {
            let next = &mut self.starts[*residue as usize];
            self.by_residue[*next as usize] = at as u32;
            *next += 1;
        }
    }

    /// Members of the batch with this residue, in order of admission; after `sort_by_residue`.
    fn with_residue(&self, residue: u32) -> &[u32] {
        let end = self.starts[residue as usize];
        let start = end - self.counts[residue as usize];
        &self.by_residue[start as usize..end as usize]
    }
}

/// The residue before a run of those who cross `boundary` tokens later: 0 for now.
fn residue_before(block_size: u32, boundary: u32) -> u32 {
    (block_size - boundary % block_size) % block_size
}

impl Engine {
    /// Begins a step at `now` and foresees as many after it as are certain: all before the last
    /// only decode, nobody enters, is let in, finishes or yields, and none of them begins at `until`
    /// or later. `None`: as [`Engine::step`].
    ///
    /// It is exact: the same steps at the same times as with [`Engine::step`] and
    /// [`Engine::finish_step`]. A driver's loop has one event a run:
    ///
    /// ```text
    /// go on at now:    if let Some(run) = engine.begin_run(now, until) { order(run.end, RunEnd) }
    /// request at now:  engine.submit(…); if engine.run_end() has changed, order(its new end, RunEnd)
    /// RunEnd at now:   if engine.run_end() == Some(now) {          // else it was cut: ignore it
    ///                      engine.finish_run(&mut decoded, &mut events);
    ///                      // decoded: one token for each of `requests` at each of `ends`;
    ///                      // events: the last step's, at now, as from `finish_step`
    ///                      go on at now
    ///                  }
    /// look at now:     engine.run_at(now)                          // gauges, tokens so far
    /// cancel at now:   engine.cut(now, &mut decoded); engine.cancel(id); order the new run_end()
    /// ```
    ///
    /// A request that arrives in the middle cuts the run by itself: the step under way when it
    /// enters is the last. `until` may be [`Timestamp`]'s largest value; a near one saves work.
    pub fn begin_run(&mut self, now: Timestamp, until: Timestamp) -> Option<Run> {
        let (step, cost) = self.begin(now)?;
        let first_end = now + step.duration;
        let blocks_used = self.blocks.total() - self.blocks.free();
        self.foreseen.steps.push(ForeseenStep { end: first_end, blocks_used });
        let decodes_only = step.work.decodes as usize == self.running.len()
            && self.step.batch.len() == self.running.len()
            && self.step.events.is_empty();
        if decodes_only {
            self.foresee(&step.work, cost, until);
        }
        let end = self.run_end().unwrap_or(first_end);
        let steps = self.foreseen.steps.len() as u32;
        let (work, adapter_load) = (step.work, step.adapter_load);
        Some(Run { steps, first_end, end, work, adapter_load })
    }

    /// When the run under way ends. `None`: there is none, or its step was begun on its own.
    pub fn run_end(&self) -> Option<Timestamp> {
        self.foreseen.steps.last().map(|step| step.end)
    }

    /// Ends the run under way, at [`Engine::run_end`]. `decoded` receives the tokens of all steps
    /// but the last (what was in it is gone), `events` those of the last step in addition to what
    /// they hold.
    pub fn finish_run(&mut self, decoded: &mut Decoded, events: &mut Vec<Event>) {
        decoded.clear();
        let Some(end) = self.run_end() else { return };
        self.advance(self.foreseen.quiet_steps(), decoded);
        self.finish_step(end, events);
    }

    /// Ends those steps of the run that end before `now` and forgets those after the step under way,
    /// which becomes the last. `decoded` receives the tokens of the former. Who needs to know what
    /// was in use at their end asks [`Engine::run_at`] first.
    pub fn cut(&mut self, now: Timestamp, decoded: &mut Decoded) {
        decoded.clear();
        let ended = self.foreseen.ended(now);
        self.advance(ended, decoded);
        self.foreseen.steps.drain(..ended);
        self.foreseen.keep_first();
    }

    /// The run under way as it is at `now`, a step that ends just then still under way; costs a
    /// binary search.
    pub fn run_at(&self, now: Timestamp) -> Option<RunView> {
        let ended = self.foreseen.ended(now);
        let step = self.foreseen.steps.get(ended)?;
        let last = ended.checked_sub(1).and_then(|last| self.foreseen.steps.get(last));
        Some(RunView {
            steps_ended: ended as u32,
            step_end: step.end,
            // During the first step the books are up to date, and know of cancellations.
            blocks_used: if ended == 0 { self.gauges().blocks_used } else { step.blocks_used },
            blocks_used_at_last_end: last.map(|last| last.blocks_used),
        })
    }

    /// Adds to `foreseen`, which holds the step just begun, the steps that will follow it.
    fn foresee(&mut self, work: &StepWork, cost: BatchCost, until: Timestamp) {
        let until = self.entering.front().map_or(until, |(ready, _)| until.min(*ready));
        let block_size = self.spec.block_size;
        self.foreseen.residues.clear();
        self.foreseen.counts.clear();
        self.foreseen.counts.resize(block_size as usize, 0);
        let mut steps_max = STEPS_MAX as u32;
        for (place, _) in &self.step.batch {
            let Some(request) = self.requests[*place as usize].as_ref() else { return };
            // Somebody finishes at the end of the last step.
            steps_max = steps_max.min(request.spec.output_tokens - request.generated);
            let residue = request.computed % block_size;
            self.foreseen.residues.push(residue);
            self.foreseen.counts[residue as usize] += 1;
        }
        if let Some(blocked) = self.blocked {
            steps_max = self.steps_before_a_shared_block(blocked, steps_max);
        }
        let Some(first) = self.foreseen.steps.last().copied() else { return };
        let (mut begins, mut used) = (first.end, first.blocks_used);
        let mut context = work.decode_context;
        for after in 1..steps_max {
            used += self.foreseen.counts[residue_before(block_size, after) as usize];
            if begins >= until || used > self.blocks.total() {
                break;
            }
            context += f64::from(work.decodes);
            let number = self.stats.steps - 1 + u64::from(after);
            begins = begins + self.step_time(cost.step_ms(context), number);
            self.foreseen.steps.push(ForeseenStep { end: begins, blocks_used: used });
        }
    }

    /// How many of `steps_max` steps are over before one names a block that the prompt of `blocked`
    /// has at the same place: then it needs a block less, and may fit. (It cannot fit sooner: no
    /// block comes free. Hashes cover what is before them, so equal ones are at equal places.)
    fn steps_before_a_shared_block(&self, blocked: Place, mut steps_max: u32) -> u32 {
        if !self.spec.prefix_caching {
            return steps_max;
        }
        let (blocked, block_size) = (self.request(blocked), self.spec.block_size);
        for (place, _) in &self.step.batch {
            let request = self.request(*place);
            // Full with the step under way, of number 0, or with a later one.
            let first = block_size - 1 - request.computed % block_size;
            let fills = (first..steps_max).step_by(block_size as usize).filter(|after| *after > 0);
            for after in fills {
                let at = ((request.computed + after + 1) / block_size - 1) as usize;
                let Some(hash) = request.hash(at) else { break };
                if blocked.hash(at) == Some(hash) {
                    steps_max = after;
                    break;
                }
            }
        }
        steps_max
    }

    /// Ends the step under way and begins the next, `steps` times, all of them foreseen.
    fn advance(&mut self, steps: usize, decoded: &mut Decoded) {
        if steps == 0 {
            return;
        }
        self.foreseen.sort_by_residue();
        let batch = std::mem::take(&mut self.step.batch);
        let foreseen = std::mem::take(&mut self.foreseen);
        let block_size = self.spec.block_size;
        for after in 1..=steps as u32 {
            // Those who need a new block for this step's token, and those who fill one with it.
            let starts = foreseen.with_residue(residue_before(block_size, after));
            let fills = match self.spec.prefix_caching {
                true => foreseen.with_residue(residue_before(block_size, after + 1)),
                false => &[],
            };
            let (mut starts, mut fills) = (starts.iter().peekable(), fills.iter().peekable());
            loop {
                // In order of admission, and a new block before its name.
                match (starts.peek(), fills.peek()) {
                    (Some(start), fill) if fill.is_none_or(|fill| start <= fill) => {
                        self.extend(batch[**start as usize].0);
                        starts.next();
                    }
                    (_, Some(fill)) => {
                        self.name_filled(batch[**fill as usize].0, after + 1);
                        fills.next();
                    }
                    _ => break,
                }
            }
        }
        decoded.ends.extend(foreseen.steps[..steps].iter().map(|step| step.end));
        for (place, _) in &batch {
            let request = self.request_mut(*place);
            request.computed += steps as u32;
            request.generated += steps as u32;
            decoded.requests.push(request.spec.id);
        }
        self.stats.steps += steps as u64;
        self.stats.generation_tokens += (steps * batch.len()) as u64;
        self.foreseen = foreseen;
        self.step.batch = batch;
    }
}
