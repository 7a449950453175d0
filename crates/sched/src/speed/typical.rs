//! A typical value of something that is always above zero.

/// Share of a new sample once the value rests on many.
const SHARE: f32 = 1.0 / 32.0;
/// Most that one sample moves the logarithm, but for the first: an answer that waited for memory, or
/// a load that found the disk busy, says little.
const MOVE_MAX: f32 = 0.5;
/// Bounds of the value.
const LEAST: f32 = 1e-3;
const MOST: f32 = 1e6;

/// Mean of logarithms, in which no sample counts for more than a factor of 1.65.
#[derive(Clone, Copy, Debug)]
pub(super) struct Typical {
    value: f32,
    /// What it rests on; poor and old samples count less.
    samples: f32,
}

impl Typical {
    /// * `value`: until there are samples.
    pub(super) fn new(value: f32) -> Self {
        Self { value, samples: 0.0 }
    }

    /// * `weight`: `0.0..=1.0`.
    pub(super) fn add(&mut self, sample: f32, weight: f32) {
        if !(sample.is_finite() && sample > 0.0 && weight > 0.0) {
            return;
        }
        let is_first = self.samples <= 0.0;
        self.samples = (self.samples + weight).min(1.0 / SHARE);
        let share = (weight / self.samples).min(1.0);
        let limit = if is_first { f32::MAX } else { MOVE_MAX };
        let off = (sample.clamp(LEAST, MOST) / self.value).ln().clamp(-limit, limit);
        self.value = (self.value * (share * off).exp()).clamp(LEAST, MOST);
    }

    /// Multiplies what it rests on, `0.0..=1.0`.
    pub(super) fn fade(&mut self, kept: f32) {
        self.samples *= kept;
    }

    pub(super) fn value(&self) -> f32 {
        self.value
    }

    pub(super) fn samples(&self) -> f32 {
        self.samples
    }
}
