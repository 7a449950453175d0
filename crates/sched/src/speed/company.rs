//! What the endpoints of a pool teach about each other.
//!
//! Each endpoint learns alone, from some thirty answers, and what it has learned is off by a tenth
//! or a quarter. Equal GPUs then look unequal, and the one that looks fastest gets too much. So
//! those that look alike are taken to be alike: an endpoint gets the mean speed of all that are
//! within half an octave of it, the nearer the more. GPU generations, which are further apart, stay
//! apart; so does an endpoint that has become slow. A stranger gets the middle of the pool.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use types::Timestamp;

use super::{Mean, Speed};

/// How long the means are used before they are taken anew.
const RENEWED_EVERY: Duration = Duration::from_millis(250);
/// Prompt by which endpoints are compared, tokens: the mean of the Azure conversation trace.
const TYPICAL_TOKENS: f32 = 1024.0;
/// Classes in an octave of time: the first bits of a float's mantissa.
const CLASSES_PER_OCTAVE: usize = 8;
/// From 1 ms, shorter ones included, to 65 s, longer ones included.
const CLASSES: usize = 16 * CLASSES_PER_OCTAVE;
/// How far alike reaches: half an octave, at which the weight is zero.
const REACH: usize = CLASSES_PER_OCTAVE / 2;
/// Base, prefill, step, output.
const MEANS: usize = 4;

type Means = [f32; MEANS];

/// The mean speeds of one pool, by class of speed. Reading is atomic loads; two values may stem
/// from two renewals.
#[derive(Debug)]
pub struct Company {
    /// The next renewal, nanoseconds.
    due: AtomicU64,
    stranger: Cell,
    adapter_load_ms: AtomicU32,
    classes: Box<[Cell]>,
}

/// Bits of `f32`.
#[derive(Debug, Default)]
struct Cell([AtomicU32; MEANS]);

impl Default for Company {
    fn default() -> Self {
        let company = Self {
            due: AtomicU64::new(0),
            stranger: Cell::default(),
            adapter_load_ms: AtomicU32::new(Speed::default().adapter_load_ms.to_bits()),
            classes: (0..CLASSES).map(|_| Cell::default()).collect(),
        };
        company.stranger.store(means(&Speed::default()));
        company
    }
}

impl Company {
    /// Takes the means anew if they are old. Of many threads one does it.
    pub(crate) fn renew<'a>(&self, pool: impl Iterator<Item = &'a Speed>, now: Timestamp) {
        let due = self.due.load(Ordering::Relaxed);
        if now.as_nanos() < due {
            return;
        }
        let next = (now + RENEWED_EVERY).as_nanos();
        if self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.compute(pool);
        }
    }

    /// The speed to go by: of its company as far as its own is to be trusted, of the pool for the
    /// rest. Keeps its own sample counts.
    pub(crate) fn settle(&self, speed: &Speed) -> Speed {
        let stranger = self.stranger.load();
        let (prefill_trust, step_trust) = (speed.prefill_trust(), speed.step_trust());
        let trusts = [prefill_trust, prefill_trust, step_trust, step_trust];
        let mut settled = means(speed);
        for ((own, stranger), trust) in settled.iter_mut().zip(stranger).zip(trusts) {
            *own = trust * *own + (1.0 - trust) * stranger;
        }
        let alike = self.classes[class(&settled)].load();
        // Zero: nobody is near.
        if alike[0] > 0.0 {
            settled = alike;
        }
        let [base_ms, prefill_ms_per_token, step_ms, output_tokens] = settled;
        let adapter_trust = speed.adapter_trust();
        let pool_ms = f32::from_bits(self.adapter_load_ms.load(Ordering::Relaxed));
        let adapter_load_ms =
            adapter_trust * speed.adapter_load_ms + (1.0 - adapter_trust) * pool_ms;
        Speed { base_ms, prefill_ms_per_token, step_ms, output_tokens, adapter_load_ms, ..*speed }
    }

    fn compute<'a>(&self, pool: impl Iterator<Item = &'a Speed>) {
        let mut sums = [(0.0, [0.0; MEANS]); CLASSES];
        let [mut base, mut prefill, mut step, mut output, mut load] = [Mean::default(); MEANS + 1];
        for speed in pool {
            let (prefill_trust, step_trust) = (speed.prefill_trust(), speed.step_trust());
            base.add(speed.base_ms, prefill_trust);
            prefill.add(speed.prefill_ms_per_token, prefill_trust);
            step.add(speed.step_ms, step_trust);
            output.add(speed.output_tokens, step_trust);
            load.add(speed.adapter_load_ms, speed.adapter_trust());
            let weight = prefill_trust.min(step_trust);
            if weight > 0.0 {
                let own = means(speed);
                let (weights, sum) = &mut sums[class(&own)];
                *weights += weight;
                sum.iter_mut().zip(own).for_each(|(sum, own)| *sum += weight * own);
            }
        }
        let default = Speed::default();
        let adapter_load_ms = load.or(default.adapter_load_ms);
        self.adapter_load_ms.store(adapter_load_ms.to_bits(), Ordering::Relaxed);
        self.stranger.store([
            base.or(default.base_ms),
            prefill.or(default.prefill_ms_per_token),
            step.or(default.step_ms),
            output.or(default.output_tokens),
        ]);
        for (at, cell) in self.classes.iter().enumerate() {
            let (mut weights, mut alike) = (0.0, [0.0; MEANS]);
            let near = at.saturating_sub(REACH - 1)..(at + REACH).min(CLASSES);
            for (other, (weight, sum)) in near.clone().zip(&sums[near]) {
                let nearness = (REACH - at.abs_diff(other)) as f32;
                weights += nearness * weight;
                alike.iter_mut().zip(sum).for_each(|(alike, sum)| *alike += nearness * sum);
            }
            let is_known = weights > 0.0;
            cell.store(if is_known { alike.map(|sum| sum / weights) } else { [0.0; MEANS] });
        }
    }
}

impl Cell {
    fn load(&self) -> Means {
        [0, 1, 2, 3].map(|at| f32::from_bits(self.0[at].load(Ordering::Relaxed)))
    }

    fn store(&self, means: Means) {
        for (cell, mean) in self.0.iter().zip(means) {
            cell.store(mean.to_bits(), Ordering::Relaxed);
        }
    }
}

fn means(speed: &Speed) -> Means {
    [speed.base_ms, speed.prefill_ms_per_token, speed.step_ms, speed.output_tokens]
}

/// By the time of a typical prompt: the exponent of its milliseconds and the first bits of the mantissa.
fn class([base_ms, prefill_ms_per_token, ..]: &Means) -> usize {
    let typical_ms = (base_ms + TYPICAL_TOKENS * prefill_ms_per_token).max(1.0);
    let octaves = typical_ms.to_bits() >> (f32::MANTISSA_DIGITS - 1 - CLASSES_PER_OCTAVE.ilog2());
    let one = 1.0_f32.to_bits() >> (f32::MANTISSA_DIGITS - 1 - CLASSES_PER_OCTAVE.ilog2());
    (octaves.saturating_sub(one) as usize).min(CLASSES - 1)
}
