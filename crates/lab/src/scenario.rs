//! A scenario: a fleet, its traffic, and what counts as good.

mod all;

use std::time::Duration;

use crate::fault::Fault;
use crate::workload::Workload;
pub use all::SCENARIOS;

/// Engines of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// A row of `sim::engine::TABLE`.
    pub hardware: &'static str,
    pub count: usize,
}

/// What an answer must keep to be good.
#[derive(Clone, Copy, Debug)]
pub struct Slo {
    pub ttft: Duration,
    /// Mean time of the tokens after the first.
    pub tpot: Duration,
}

/// Engines behind one model, and what is asked of them.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    pub fleet: &'static [Group],
    pub workload: Workload,
    /// How many of this kind there are, each by itself.
    pub count: usize,
}

/// LoRA room of every engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lora {
    /// vLLM's `max_loras`.
    pub gpu_slots: u32,
    /// vLLM's `max_cpu_loras`.
    pub host_slots: u32,
}

/// One cell of the laboratory, up to load, policy and seed.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub about: &'static str,
    /// One kind in all scenarios but the largest.
    pub pools: &'static [Pool],
    /// Load factors that are run unless others are asked for.
    pub loads: &'static [f64],
    pub slo: Slo,
    pub lora: Option<Lora>,
    /// Longest prompt and answer together, where it is not what the hardware table says.
    pub context_tokens: Option<u32>,
    pub faults: &'static [Fault],
    /// Gateways that share the requests.
    pub gateways: usize,
    /// A shorter run would not see what this is about.
    pub duration_min: Duration,
}

/// A name that no scenario bears.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no scenario `{0}`")]
pub struct UnknownScenario(pub String);

impl Scenario {
    pub fn find(name: &str) -> Result<&'static Scenario, UnknownScenario> {
        let found = SCENARIOS.iter().find(|scenario| scenario.name == name);
        found.ok_or_else(|| UnknownScenario(name.to_owned()))
    }

    /// The kinds of pools, each with how many there are of it.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&'static Pool, usize)> {
        self.pools.iter().map(|pool| (pool, pool.count))
    }

    pub(crate) fn pool_count(&self) -> usize {
        self.pools.iter().map(|pool| pool.count).sum::<usize>().max(1)
    }
}

impl Pool {
    /// The hardware rows of so many endpoints (the pool's own size if `None`): the same shares, at
    /// least one of each kind, hence never fewer than there are kinds.
    pub(crate) fn rows(&self, endpoints: Option<usize>) -> Vec<&'static str> {
        let own: usize = self.fleet.iter().map(|group| group.count).sum();
        let wanted = endpoints.unwrap_or(own).max(self.fleet.len());
        let mut rows = Vec::with_capacity(wanted);
        let mut before = 0;
        for (at, group) in self.fleet.iter().enumerate() {
            before += group.count;
            // Cumulative shares, so that roundings do not add up; room for one of each still to come.
            let end = (wanted * before + own / 2) / own;
            let end = end.max(rows.len() + 1).min(wanted - (self.fleet.len() - 1 - at));
            rows.resize(end, group.hardware);
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_or_smaller_fleet_keeps_its_shares() {
        let count = |name: &str, endpoints: Option<usize>, row: &str| {
            let rows = Scenario::find(name).unwrap().pools[0].rows(endpoints);
            assert_eq!(rows.len(), endpoints.unwrap_or(rows.len()).max(1));
            rows.iter().filter(|other| **other == row).count()
        };
        assert_eq!(count("mixed-8b", None, "llama-3.1-8b/h100"), 2);
        assert_eq!(count("mixed-8b", Some(12), "llama-3.1-8b/h100"), 4);
        assert_eq!(count("mixed-8b", Some(2), "llama-3.1-8b/h100"), 1);
        assert_eq!(count("uniform", Some(1), "llama-3.1-8b/h100"), 1);
    }

    #[test]
    fn every_scenario_names_hardware_that_exists() {
        for scenario in SCENARIOS {
            for group in scenario.pools.iter().flat_map(|pool| pool.fleet) {
                assert!(sim::engine::Hardware::find(group.hardware).is_some(), "{}", scenario.name);
            }
        }
    }

    #[test]
    fn the_largest_scenario_has_a_thousand_endpoints_in_twenty_pools() {
        let scale = Scenario::find("scale-1000").unwrap();
        let all: usize = scale.kinds().map(|(pool, count)| count * pool.rows(None).len()).sum();
        assert_eq!((all, scale.pool_count()), (1000, 20));
    }

    #[test]
    fn no_fault_outlasts_its_scenario() {
        for scenario in SCENARIOS {
            for fault in scenario.faults {
                assert!(fault.from + fault.lasts <= scenario.duration_min, "{}", fault.name);
            }
        }
    }
}
