//! A straight line through the cleanest of the last samples.
//!
//! `y = base + slope · x`, `x` work and `y` milliseconds, fitted as a low quantile: with 0.4, the
//! line runs above 40 % of the weight. Queueing only ever adds time, so the lower part is where
//! the truth is; and no outlier, however far off, moves a quantile by more than its own weight.
//!
//! Both sides are divided by `x + scale`, because the error grows with the work. The two unknowns
//! then have the same unit, and a sample is a point `p + q = 1` between "all constant" and "all
//! work", which keeps the equations well conditioned.

/// Samples remembered.
pub(super) const SAMPLES_MAX: usize = 32;
/// Weight left of a sample when the next one arrives, so that 64 later ones replace it whatever
/// their quality.
const KEPT: f32 = 0.97;
/// Share of the weight that lies under the line.
const QUANTILE: f64 = 0.4;
/// Rounds of reweighting; the estimate moves less than 1 % after about six.
const ROUNDS: u32 = 8;
/// Pull towards the previous line, as a share of the samples' weight: decides only what equal
/// samples cannot, how to split their time between constant and work.
const PULL: f64 = 0.01;
/// Bounds of either unknown, milliseconds for one unit of work.
const LEAST: f64 = 1e-5;
const MOST: f64 = 1e4;

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    /// Share of the constant part, `scale / (x + scale)`.
    constant: f32,
    /// Milliseconds over `x + scale`.
    ms: f32,
    /// Say in the fit.
    weight: f32,
    /// Say in how far to believe the fit.
    credit: f32,
}

/// The last samples and the line through them.
#[derive(Clone, Debug)]
pub(super) struct Line {
    scale: f64,
    samples: [Sample; SAMPLES_MAX],
    len: usize,
    since_fit: usize,
    /// Base over `scale`, and slope.
    unknowns: [f64; 2],
}

impl Line {
    /// * `scale`: work at which constant and work weigh the same, in units of `x`.
    /// * `base`, `slope`: the line until there are samples.
    pub(super) fn new(scale: f64, base: f32, slope: f32) -> Self {
        Self {
            scale,
            samples: [Sample::default(); SAMPLES_MAX],
            len: 0,
            since_fit: 0,
            unknowns: [f64::from(base) / scale, f64::from(slope)],
        }
    }

    /// * `work`, `ms`: not negative.
    /// * `weight`: `0.0..=1.0`, 1.0 for a sample that nothing pollutes.
    /// * `credit`: `0.0..=1.0`, what it adds to [`Self::samples`]. After an hour of overload all
    ///   samples are poor and still more to be believed than other endpoints' are.
    pub(super) fn add(&mut self, work: f64, ms: f64, weight: f32, credit: f32) {
        let divisor = work + self.scale;
        let constant = (self.scale / divisor) as f32;
        let sample = Sample { constant, ms: (ms / divisor) as f32, weight, credit };
        if !(sample.ms.is_finite() && weight > 0.0) {
            return;
        }
        self.fade(KEPT);
        if self.len < SAMPLES_MAX {
            self.samples[self.len] = sample;
            self.len += 1;
        } else if let Some(least) =
            self.samples.iter_mut().min_by(|a, b| a.weight.total_cmp(&b.weight))
        {
            // Busy hours bring only polluted samples; they must not push out the clean ones at once.
            *least = sample;
        }
        self.since_fit += 1;
        // A full window changes little with one sample.
        if self.len < SAMPLES_MAX || self.since_fit >= 4 {
            self.since_fit = 0;
            self.fit();
        }
    }

    /// Multiplies what all samples so far weigh, `0.0..=1.0`; at zero they are forgotten.
    pub(super) fn fade(&mut self, kept: f32) {
        if kept <= 0.0 {
            self.len = 0;
        }
        for sample in &mut self.samples[..self.len] {
            sample.weight *= kept;
            sample.credit *= kept;
        }
    }

    pub(super) fn base(&self) -> f32 {
        (self.unknowns[0] * self.scale) as f32
    }

    pub(super) fn slope(&self) -> f32 {
        self.unknowns[1] as f32
    }

    /// What the line rests on, in new samples.
    pub(super) fn samples(&self) -> f32 {
        self.samples[..self.len].iter().map(|sample| sample.credit).sum()
    }

    /// Quantile regression by reweighted least squares, from the previous line.
    fn fit(&mut self) {
        let before = self.unknowns;
        for _ in 0..ROUNDS {
            let [base, slope] = self.unknowns;
            let (mut pp, mut pq, mut qq, mut pz, mut qz) = (0.0, 0.0, 0.0, 0.0, 0.0);
            for sample in &self.samples[..self.len] {
                let (p, z) = (f64::from(sample.constant), f64::from(sample.ms));
                let q = 1.0 - p;
                let fitted = base * p + slope * q;
                let residual = z - fitted;
                let side = if residual > 0.0 { QUANTILE } else { 1.0 - QUANTILE };
                // Within 2 % of the line a sample is on it.
                let weight = f64::from(sample.weight) * side / residual.abs().max(0.02 * fitted);
                pp += weight * p * p;
                pq += weight * p * q;
                qq += weight * q * q;
                pz += weight * p * z;
                qz += weight * q * z;
            }
            let pull = PULL * (pp + qq);
            pp += pull;
            qq += pull;
            pz += pull * before[0];
            qz += pull * before[1];
            self.unknowns = solve(pp, pq, qq, pz, qz).unwrap_or(self.unknowns);
        }
    }
}

/// The symmetric system, both unknowns kept above zero; `None` if it has no finite solution.
fn solve(pp: f64, pq: f64, qq: f64, pz: f64, qz: f64) -> Option<[f64; 2]> {
    let determinant = pp * qq - pq * pq;
    let mut base = (pz * qq - qz * pq) / determinant;
    let mut slope = (qz * pp - pz * pq) / determinant;
    if base < LEAST {
        (base, slope) = (LEAST, qz / qq);
    } else if slope < LEAST {
        (base, slope) = (pz / pp, LEAST);
    }
    (base.is_finite() && slope.is_finite())
        .then(|| [base.clamp(LEAST, MOST), slope.clamp(LEAST, MOST)])
}
