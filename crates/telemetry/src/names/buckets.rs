//! Bounds of histograms.

/// Decisions take microseconds; a bucket above a millisecond means something is wrong.
pub(super) const SCHEDULE_SECONDS: &[f64] =
    &[1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2];

/// vLLM's bounds for the same metric up to a minute, refined where users feel a difference.
pub(super) const TTFT_SECONDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.25, 0.35, 0.5, 0.75, 1.0, 1.5,
    2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 60.0,
];

pub(super) const REQUEST_SECONDS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 240.0,
    480.0, 960.0, 1920.0, 3600.0,
];

/// vLLM's bounds for time per output token, continued downwards for chunks that arrive together.
pub(super) const TOKEN_SECONDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5,
    5.0, 10.0, 20.0, 40.0,
];

/// Predicted over observed: a twentieth off on either side, then a tenth, a quarter, a half, twice.
pub(super) const PREDICTION_QUOTIENT: &[f64] =
    &[0.1, 0.25, 0.5, 0.67, 0.8, 0.9, 0.95, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0, 10.0];

/// Both signs; what lies at 0 is in the bucket that ends there.
pub(super) const REGRET_SECONDS: &[f64] = &[
    -10.0, -2.5, -1.0, -0.5, -0.25, -0.1, -0.05, -0.01, -0.001, 0.0, 0.001, 0.01, 0.05, 0.1, 0.25,
    0.5, 1.0, 2.5, 10.0,
];
