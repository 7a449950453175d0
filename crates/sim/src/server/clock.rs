//! Modelled time against real time.

use std::time::Duration;

use tokio::time::Instant;
use types::Timestamp;

/// Maps real instants to the engine's time and back, `scale` real units to a modelled one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    origin: Instant,
    /// Seconds since 1970 at `origin`.
    origin_wall: f64,
    scale: f64,
}

impl Clock {
    pub(super) fn new(scale: f64) -> Self {
        let origin_wall = telemetry::clock::unix_seconds(telemetry::clock::wall());
        Self { origin: Instant::now(), origin_wall, scale }
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from_duration(self.origin.elapsed().div_f64(self.scale))
    }

    /// When modelled time `at` is reached.
    pub(super) fn instant(&self, at: Timestamp) -> Instant {
        self.origin + at.as_duration().mul_f64(self.scale)
    }

    /// How long a modelled duration takes.
    pub(super) fn real(&self, modelled: Duration) -> Duration {
        modelled.mul_f64(self.scale)
    }

    /// Seconds since 1970.
    pub(super) fn wall(&self) -> f64 {
        self.origin_wall + self.origin.elapsed().as_secs_f64()
    }
}
