//! The scenarios: a fleet, its traffic, and what counts as good.

use std::time::Duration;

use crate::arrivals::Arrivals;
use crate::lengths::{AZURE_ANSWER, AZURE_PROMPT, Lengths};
use crate::workload::{Sharing, Workload};

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

/// One cell of the laboratory, up to load, policy and seed.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub about: &'static str,
    pub fleet: &'static [Group],
    pub workload: Workload,
    /// Load factors that are run unless others are asked for.
    pub loads: &'static [f64],
    pub slo: Slo,
}

/// A name that no scenario bears.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no scenario `{0}`")]
pub struct UnknownScenario(pub String);

const fn slo(ttft_ms: u64, tpot_ms: u64) -> Slo {
    Slo { ttft: Duration::from_millis(ttft_ms), tpot: Duration::from_millis(tpot_ms) }
}

const CONVERSATION: Sharing = Sharing::Separate { prompt: AZURE_PROMPT, answer: AZURE_ANSWER };
const EIGHT_H100: &[Group] = &[Group { hardware: "llama-3.1-8b/h100", count: 8 }];

/// 150 groups with 6,000 tokens in common, questions of 1,200, answers of 1,000: the published cell
/// of llm-d's prefix benchmarks.
const fn groups(hot: f64) -> Sharing {
    Sharing::Groups {
        groups: 150,
        prefix: 6000,
        hot,
        question: Lengths::Fixed(1200),
        answer: Lengths::Fixed(1000),
    }
}

/// Every scenario there is.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "mixed-8b",
        about: "2 H100 and 4 A10G, 8B; lengths of the Azure conversation trace, Poisson",
        fleet: &[
            Group { hardware: "llama-3.1-8b/h100", count: 2 },
            Group { hardware: "llama-3.1-8b/a10g", count: 4 },
        ],
        workload: Workload { arrivals: Arrivals::Poisson, sharing: CONVERSATION },
        loads: &[0.15, 0.3, 0.5, 0.7, 0.85],
        slo: slo(500, 50),
    },
    Scenario {
        name: "mixed-32b",
        about: "2 nodes of 2 H100 and 2 of 8 A10G, 32B; the same traffic",
        fleet: &[
            Group { hardware: "qwen3-32b/2xh100", count: 2 },
            Group { hardware: "qwen3-32b/8xa10g", count: 2 },
        ],
        workload: Workload { arrivals: Arrivals::Poisson, sharing: CONVERSATION },
        loads: &[0.15, 0.3, 0.5, 0.7, 0.85],
        slo: slo(1000, 80),
    },
    Scenario {
        name: "burst-70b",
        about: "8 nodes of 4 H100, 70B; bursts of 4 times the rate, 3 % of prompts 12k to 80k",
        fleet: &[Group { hardware: "llama-3.1-70b/4xh100", count: 8 }],
        workload: Workload {
            arrivals: Arrivals::Bursts {
                peak: 4.0,
                length: Duration::from_secs(10),
                period: Duration::from_secs(60),
            },
            sharing: Sharing::Separate {
                prompt: Lengths::Outliers {
                    most: &AZURE_PROMPT,
                    share: 0.03,
                    min: 12_000,
                    max: 80_000,
                },
                answer: AZURE_ANSWER,
            },
        },
        loads: &[0.5, 0.7],
        slo: slo(2000, 100),
    },
    Scenario {
        name: "prefix-8b",
        about: "8 H100, 8B; 150 groups share 6,000 tokens, 1,200 new, answers of 1,000; gap CV 2",
        fleet: EIGHT_H100,
        workload: Workload { arrivals: Arrivals::Gamma { cv: 2.0 }, sharing: groups(0.0) },
        loads: &[0.5, 0.8, 1.0, 1.3],
        slo: slo(500, 50),
    },
    Scenario {
        name: "hot-prefix",
        about: "the same fleet and groups, one group has half of the traffic; Poisson",
        fleet: EIGHT_H100,
        workload: Workload { arrivals: Arrivals::Poisson, sharing: groups(0.5) },
        loads: &[0.6],
        slo: slo(500, 50),
    },
    Scenario {
        name: "chat",
        about: "8 H100, 8B; conversations of 5 turns on average that repeat all before",
        fleet: EIGHT_H100,
        workload: Workload {
            arrivals: Arrivals::Poisson,
            sharing: Sharing::Chat {
                systems: 20,
                system: 400,
                turns: 5.0,
                pause: 15.0,
                prompt_max: 16_000,
                question: Lengths::LogNormal { median: 180.0, sigma: 0.8, min: 10, max: 2000 },
                answer: Lengths::LogNormal { median: 210.0, sigma: 0.6, min: 10, max: 1000 },
            },
        },
        // From about 0.4 on the open conversations no longer fit into the fleet's caches.
        loads: &[0.25, 0.4, 0.55],
        slo: slo(500, 50),
    },
    Scenario {
        name: "uniform",
        about: "8 H100, 8B; lengths of the Azure conversation trace, Poisson, nothing shared",
        fleet: EIGHT_H100,
        workload: Workload { arrivals: Arrivals::Poisson, sharing: CONVERSATION },
        loads: &[0.3, 0.5, 0.7, 0.85],
        slo: slo(500, 50),
    },
];

impl Scenario {
    pub fn find(name: &str) -> Result<&'static Scenario, UnknownScenario> {
        let found = SCENARIOS.iter().find(|scenario| scenario.name == name);
        found.ok_or_else(|| UnknownScenario(name.to_owned()))
    }

    /// The hardware rows of a fleet of `endpoints` (the scenario's own size if `None`): the same
    /// shares, at least one of each kind, hence never fewer than there are kinds.
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
            let rows = Scenario::find(name).unwrap().rows(endpoints);
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
            for group in scenario.fleet {
                assert!(sim::engine::Hardware::find(group.hardware).is_some(), "{}", scenario.name);
            }
        }
    }
}
