//! What is simulated: two fast and four slow GPUs that serve the same model.

use std::time::Duration;

use lab::capacity::{Mix, capacity};
use sim::engine::{EngineSpec, Hardware};
use sim::{ServerHandle, ServerSpec};
use types::EngineKind;

/// GPUs of one kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    /// What people call it.
    pub(super) gpu: &'static str,
    pub(super) hardware: &'static str,
    pub(super) count: u32,
}

/// The mix that AWS's published comparison names: some H100, more A10G, one model of 8 billion
/// parameters. An H100 reads a prompt 14 times as fast and holds 14 times as many tokens.
pub(super) const FLEET: [Group; 2] = [
    Group { gpu: "H100", hardware: "llama-3.1-8b/h100", count: 2 },
    Group { gpu: "A10G", hardware: "llama-3.1-8b/a10g", count: 4 },
];

/// The model's name; the same on all rows of [`FLEET`].
pub(super) const MODEL: &str = "llama-3.1-8b";

const ENGINE: EngineKind = EngineKind::Vllm;

impl Group {
    pub(super) fn row(&self) -> anyhow::Result<&'static Hardware> {
        Hardware::find(self.hardware)
            .ok_or_else(|| anyhow::anyhow!("no hardware row `{}`", self.hardware))
    }

    fn engine(&self) -> anyhow::Result<EngineSpec> {
        Ok(EngineSpec::new(ENGINE, self.row()?, 0, 0))
    }
}

/// One server for each GPU, all with cold caches; the same seed, so that an answer does not
/// depend on who gives it.
pub(super) fn servers(time_scale: f64, seed: u64) -> Vec<ServerSpec> {
    FLEET
        .iter()
        .flat_map(|group| {
            let spec = ServerSpec { time_scale, seed, ..ServerSpec::new(ENGINE, group.hardware) };
            std::iter::repeat_n(spec, group.count as usize)
        })
        .collect()
}

/// Which group of [`FLEET`] a server belongs to.
pub(super) fn group_of(server: &ServerHandle) -> Option<usize> {
    FLEET.iter().position(|group| group.hardware == server.spec().hardware)
}

/// What no step of any engine is shorter than: reading the weights of the model once.
pub(super) fn shortest_step() -> Duration {
    let rows = FLEET.iter().filter_map(|group| Hardware::find(group.hardware));
    let shortest = rows.map(|row| row.costs.overhead_ms + row.costs.weights_ms);
    Duration::from_secs_f64(shortest.fold(f64::INFINITY, f64::min).min(1e3) * 1e-3)
}

/// How much the fleet can do, requests per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// All engines together.
    pub(super) fleet: f64,
    /// Where equal shares overload the slowest: number of engines × the slowest one's capacity.
    pub(super) knee: f64,
}

pub(super) fn limits(mix: &Mix) -> anyhow::Result<Limits> {
    let (mut fleet, mut slowest, mut engines) = (0.0, f64::INFINITY, 0);
    for group in &FLEET {
        let one = capacity(&group.engine()?, mix);
        fleet += one * f64::from(group.count);
        slowest = one.min(slowest);
        engines += group.count;
    }
    Ok(Limits { fleet, knee: slowest * f64::from(engines) })
}
