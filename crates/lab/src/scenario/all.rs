//! Every scenario there is.

use std::time::Duration;

use super::{Group, Lora, Pool, Scenario, Slo};
use crate::arrivals::Arrivals;
use crate::fault::{Fault, FaultKind};
use crate::lengths::{AZURE_ANSWER, AZURE_PROMPT, Lengths};
use crate::trace::TraceName;
use crate::workload::{Adapters, Sharing, Workload};

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

/// Bursts of 4 times the rate, 10 s a minute.
const fn bursts(cv: f64) -> Arrivals {
    let (length, period) = (Duration::from_secs(10), Duration::from_secs(60));
    Arrivals::Bursts { peak: 4.0, length, period, cv }
}

/// Conversations, and a share of prompts that are as long as documents.
const fn outliers(share: f64, min: u32, max: u32) -> Sharing {
    let prompt = Lengths::Outliers { most: &AZURE_PROMPT, share, min, max };
    Sharing::Separate { prompt, answer: AZURE_ANSWER }
}

/// What scenarios have in common.
const BASE: Scenario = Scenario {
    name: "",
    about: "",
    pools: &[],
    loads: &[],
    slo: slo(500, 50),
    lora: None,
    context_tokens: None,
    faults: &[],
    gateways: 1,
    duration_min: Duration::ZERO,
};

const fn pool(fleet: &'static [Group], arrivals: Arrivals, sharing: Sharing) -> Pool {
    Pool { fleet, workload: Workload::new(arrivals, sharing), count: 1 }
}

/// Every scenario there is.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "mixed-8b",
        about: "2 H100 and 4 A10G, 8B; lengths of the Azure conversation trace, Poisson",
        pools: &[pool(
            &[
                Group { hardware: "llama-3.1-8b/h100", count: 2 },
                Group { hardware: "llama-3.1-8b/a10g", count: 4 },
            ],
            Arrivals::Poisson,
            CONVERSATION,
        )],
        loads: &[0.15, 0.3, 0.5, 0.7, 0.85],
        ..BASE
    },
    Scenario {
        name: "mixed-32b",
        about: "2 nodes of 2 H100 and 2 of 8 A10G, 32B; the same traffic",
        pools: &[pool(
            &[
                Group { hardware: "qwen3-32b/2xh100", count: 2 },
                Group { hardware: "qwen3-32b/8xa10g", count: 2 },
            ],
            Arrivals::Poisson,
            CONVERSATION,
        )],
        loads: &[0.15, 0.3, 0.5, 0.7, 0.85],
        slo: slo(1000, 80),
        ..BASE
    },
    Scenario {
        name: "burst-70b",
        about: "8 nodes of 4 H100, 70B; bursts of 4 times the rate, 3 % of prompts 12k to 80k",
        pools: &[pool(
            &[Group { hardware: "llama-3.1-70b/4xh100", count: 8 }],
            bursts(1.0),
            outliers(0.03, 12_000, 80_000),
        )],
        loads: &[0.5, 0.7],
        slo: slo(2000, 100),
        ..BASE
    },
    Scenario {
        name: "burst-235b",
        about: "4 nodes of 8 H100, 235B in FP8; the same bursts with gap CV 4, the same lengths",
        pools: &[pool(
            &[Group { hardware: "qwen3-235b-a22b-fp8/8xh100", count: 4 }],
            bursts(4.0),
            outliers(0.03, 12_000, 80_000),
        )],
        loads: &[0.5, 0.7],
        slo: slo(2000, 100),
        context_tokens: Some(YARN),
        ..BASE
    },
    Scenario {
        name: "prefix-8b",
        about: "8 H100, 8B; 150 groups share 6,000 tokens, 1,200 new, answers of 1,000; gap CV 2",
        pools: &[pool(EIGHT_H100, Arrivals::Gamma { cv: 2.0 }, groups(0.0))],
        loads: &[0.5, 0.8, 1.0, 1.3],
        ..BASE
    },
    Scenario {
        name: "hot-prefix",
        about: "the same fleet and groups, one group has half of the traffic; Poisson",
        pools: &[pool(EIGHT_H100, Arrivals::Poisson, groups(0.5))],
        loads: &[0.6],
        ..BASE
    },
    Scenario {
        name: "chat",
        about: "8 H100, 8B; conversations of 5 turns on average that repeat all before",
        pools: &[pool(
            EIGHT_H100,
            Arrivals::Poisson,
            Sharing::Chat {
                systems: 20,
                system: 400,
                turns: 5.0,
                pause: 15.0,
                prompt_max: 16_000,
                question: Lengths::LogNormal { median: 180.0, sigma: 0.8, min: 10, max: 2000 },
                answer: Lengths::LogNormal { median: 210.0, sigma: 0.6, min: 10, max: 1000 },
            },
        )],
        // From about 0.4 on the open conversations no longer fit into the fleet's caches.
        loads: &[0.25, 0.4, 0.55],
        ..BASE
    },
    Scenario {
        name: "uniform",
        about: "8 H100, 8B; lengths of the Azure conversation trace, Poisson, nothing shared",
        pools: &[pool(EIGHT_H100, Arrivals::Poisson, CONVERSATION)],
        loads: &[0.3, 0.5, 0.7, 0.85],
        ..BASE
    },
    Scenario {
        name: "lora-churn",
        about: "4 H100, 8B; 40 adapters by Zipf 0.9, 8 slots an engine, 10 % base model",
        pools: &[Pool {
            fleet: &[Group { hardware: "llama-3.1-8b/h100", count: 4 }],
            workload: Workload {
                adapters: Some(Adapters { count: 40, zipf: 0.9, base: 0.1 }),
                ..Workload::new(Arrivals::Poisson, CONVERSATION)
            },
            count: 1,
        }],
        loads: &[0.3, 0.6],
        // All adapters fit into host memory, 3.4 GB of it, so only the first load is from disk.
        lora: Some(Lora { gpu_slots: 8, host_slots: 40 }),
        ..BASE
    },
    Scenario {
        name: "long-outliers",
        about: "8 nodes of 2 H100, 32B; 4 % of prompts 16k to 100k, Poisson",
        pools: &[pool(
            &[Group { hardware: "qwen3-32b/2xh100", count: 8 }],
            Arrivals::Poisson,
            outliers(0.04, 16_000, 100_000),
        )],
        loads: &[0.4, 0.7],
        slo: slo(1000, 80),
        context_tokens: Some(YARN),
        ..BASE
    },
    Scenario {
        name: "failure-storm",
        about: "uniform, and six faults one after the other: deaths, a slow one, a lying one, 503s, \
                no scrapes, resets; 8.5 minutes at least",
        pools: &[pool(EIGHT_H100, Arrivals::Poisson, CONVERSATION)],
        loads: &[0.6],
        faults: &STORM,
        duration_min: Duration::from_secs(510),
        ..BASE
    },
    Scenario {
        name: "replay-mooncake",
        about: "8 nodes of 4 H100, 70B; the Mooncake conversation trace, prompts to 123k",
        // The least model of the table that is of the recorded one's class and holds its prompts.
        pools: &[pool(
            &[Group { hardware: "llama-3.1-70b/4xh100", count: 8 }],
            Arrivals::Poisson,
            Sharing::Trace(TraceName::MooncakeConversation),
        )],
        loads: &[0.3, 0.5, 0.7],
        slo: slo(2000, 100),
        duration_min: Duration::from_secs(600),
        ..BASE
    },
    Scenario {
        name: "replay-azure-code",
        about: "4 H100, 8B; the Azure code trace as recorded, twice and four times; gap CV 13",
        // So small that few copies load it: many on top of each other are smooth. Its busiest ten
        // seconds are 13 times the mean.
        pools: &[pool(
            &[Group { hardware: "llama-3.1-8b/h100", count: 4 }],
            Arrivals::Poisson,
            Sharing::Trace(TraceName::AzureCode),
        )],
        loads: &[0.035, 0.07, 0.14],
        duration_min: Duration::from_secs(1200),
        ..BASE
    },
    Scenario {
        name: "scale-1000",
        about: "1,000 engines in 20 pools of 50, half like mixed-8b, half like prefix-8b; 4 gateways",
        pools: &[
            Pool {
                fleet: &[
                    Group { hardware: "llama-3.1-8b/h100", count: 17 },
                    Group { hardware: "llama-3.1-8b/a10g", count: 33 },
                ],
                workload: Workload::new(Arrivals::Poisson, CONVERSATION),
                count: 10,
            },
            Pool {
                fleet: &[Group { hardware: "llama-3.1-8b/h100", count: 50 }],
                workload: Workload::new(Arrivals::Gamma { cv: 2.0 }, groups(0.0)),
                count: 10,
            },
        ],
        loads: &[0.7],
        gateways: 4,
        ..BASE
    },
];

/// What Qwen3 holds with its documented extension of positions.
const YARN: u32 = 131_072;

/// A minute of calm before each, another endpoint for each.
const STORM: [Fault; 6] = [
    fault("deaths", FaultKind::Dead, 0, 2, 30, 60),
    fault("slow", FaultKind::Slow { factor: 5.0 }, 2, 1, 150, 60),
    fault("frozen-at-zero", FaultKind::FrozenAtZero, 3, 1, 270, 60),
    fault("shedding", FaultKind::Shedding, 4, 1, 360, 30),
    fault("no-scrapes", FaultKind::NoPages, 0, 8, 420, 30),
    fault("resets", FaultKind::Resets { share: 0.01 }, 0, 8, 480, 30),
];

const fn fault(
    name: &'static str,
    kind: FaultKind,
    endpoint: usize,
    count: usize,
    from: u64,
    lasts: u64,
) -> Fault {
    let (from, lasts) = (Duration::from_secs(from), Duration::from_secs(lasts));
    Fault { name, kind, endpoint, count, from, lasts }
}
