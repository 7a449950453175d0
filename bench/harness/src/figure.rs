//! The figures: what is done to a subject, and what is read from it.
//!
//! Figures under load share their subjects, which all run from the first round to the last; a round
//! visits each subject once, in an order that turns, so that what the machine does meanwhile hits
//! all alike. Figures of memory and idleness start their subjects afresh.

mod cpu;
mod epp;
mod fresh;
mod latency;
mod metrics_page;
mod sse;

use std::time::Duration;

use clap::ValueEnum;

use crate::clock;
use crate::interrupt::pause;
use crate::metric::{FAILED, Metric, RSS_AFTER};
use crate::mock::Stats;
use crate::mock::handle::Mock;
use crate::prompts::{Kind, Requests};
use crate::results::Results;
use crate::subject::{DIRECT, Plan, Subject};

/// What one run of the command can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Figure {
    /// CPU per request and requests per second, 0.5 KB, closed loop.
    CpuSmall,
    /// CPU per request, 32 KB with a shared system prompt, closed loop.
    #[value(name = "cpu-32k")]
    Cpu32k,
    /// CPU per request, conversations of 32 KB in the mean, closed loop.
    #[value(name = "cpu-32k-conversations")]
    Cpu32kConversations,
    /// CPU per request and share of a core, 400 KB with a shared prompt at 50 per second.
    #[value(name = "cpu-400k")]
    Cpu400k,
    /// The same with prompts that share nothing; not in the default run.
    #[value(name = "cpu-400k-unique")]
    Cpu400kUnique,
    /// Added latency, 0.5 KB at 500 per second.
    Latency,
    /// CPU per chunk and added delay of chunks, 100 streams with 100 chunks per second each.
    Sse,
    /// Resident memory before any load.
    MemoryIdle,
    /// Memory of 1,000 idle streams, and the time until they end upstream when clients leave.
    MemoryStreams,
    /// Memory kept of 33,000 unique prompts.
    MemoryUnique,
    /// CPU with 100 endpoints to scrape and no requests.
    Idle,
    /// Time of a scrape with 1,000 endpoints, and what it adds to the latency of requests.
    MetricsPage,
    /// Behind Envoy: the picker's CPU per request, 0.5 KB, closed loop.
    EppCpuSmall,
    /// Behind Envoy: the picker's CPU per request, 400 KB at 50 per second.
    #[value(name = "epp-cpu-400k")]
    EppCpu400k,
    /// The picker asked by a client of gRPC, without Envoy: CPU per request, 0.5 KB and 400 KB.
    EppRaw,
    /// Behind Envoy: latency over Envoy alone and beside the built-in proxy, 0.5 KB at 500 per second.
    EppLatency,
    /// Behind Envoy: memory of 2,000 long answers at the same time.
    EppStreams,
    /// Memory and CPU of a picker with 10,000 idle pools.
    EppPools,
}

/// All but the ones that must be asked for.
pub const DEFAULT_FIGURES: &[Figure] = &[
    Figure::CpuSmall,
    Figure::Cpu32k,
    Figure::Cpu32kConversations,
    Figure::Cpu400k,
    Figure::Latency,
    Figure::Sse,
    Figure::MemoryIdle,
    Figure::MemoryStreams,
    Figure::MemoryUnique,
    Figure::Idle,
    Figure::MetricsPage,
];

/// The figures of the picker behind Envoy.
pub const EPP_FIGURES: &[Figure] = &[
    Figure::EppCpuSmall,
    Figure::EppCpu400k,
    Figure::EppRaw,
    Figure::EppLatency,
    Figure::EppStreams,
    Figure::EppPools,
];

/// How long and how often.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    pub rounds: usize,
    /// Measured time of one visit to one subject.
    pub measured: Duration,
}

/// Runs `figures` over `plans` and returns what was seen.
pub fn run(plans: &[Plan], figures: &[Figure], effort: Effort) -> anyhow::Result<Results> {
    let mut results = Results::default();
    let (fresh, loaded): (Vec<Figure>, Vec<Figure>) =
        figures.iter().partition(|figure| figure.is_fresh());
    for figure in fresh {
        eprintln!("{}", figure.title());
        match figure {
            Figure::MemoryIdle => fresh::memory_idle(plans, &mut results)?,
            Figure::MemoryStreams => fresh::memory_streams(plans, &mut results)?,
            Figure::MemoryUnique => fresh::memory_unique(plans, &mut results)?,
            Figure::MetricsPage => metrics_page::run(plans, effort, &mut results)?,
            Figure::EppStreams => epp::streams(plans, effort, &mut results)?,
            Figure::EppPools => epp::pools(plans, &mut results)?,
            Figure::EppRaw => epp::raw(plans, effort, &mut results)?,
            _ => fresh::idle(plans, &mut results)?,
        }
    }
    if !loaded.is_empty() {
        under_load(plans, &loaded, effort, &mut results)?;
    }
    if figures.contains(&Figure::CpuSmall) {
        cpu::compare(&mut results);
    }
    if figures.contains(&Figure::EppLatency) {
        epp::compare_latencies(&mut results);
    }
    Ok(results)
}

fn under_load(
    plans: &[Plan],
    figures: &[Figure],
    effort: Effort,
    results: &mut Results,
) -> anyhow::Result<()> {
    let mut mock = Mock::start(2)?;
    let mut subjects = Vec::new();
    for plan in plans {
        subjects.push(plan.start(&mock.addresses)?);
        eprintln!("started {}{}", plan.name, subjects.last().map_or(String::new(), pid_of));
    }
    let mut visit = 1;
    for figure in figures {
        eprintln!("{}", figure.title());
        for round in 0..effort.rounds {
            let first = round % subjects.len();
            // `direct` first: what others add is counted from its value of the same round.
            let mut order: Vec<usize> =
                (0..subjects.len()).map(|turn| (first + turn) % subjects.len()).collect();
            order.sort_by_key(|index| subjects[*index].name != DIRECT);
            for index in order {
                let bench = Bench { subject: &subjects[index], mock: &mut mock, effort, visit };
                visit += 1;
                figure.visit(bench, results)?;
            }
        }
    }
    for subject in &subjects {
        if let Some(program) = &subject.program {
            results.add(&RSS_AFTER, subject.name, mib(program.rss_bytes()?));
        }
    }
    Ok(())
}

fn pid_of(subject: &Subject) -> String {
    subject.program.as_ref().map_or(String::new(), |program| format!(", pid {}", program.pid()))
}

/// One visit to one subject.
struct Bench<'a> {
    subject: &'a Subject,
    mock: &'a mut Mock,
    effort: Effort,
    /// Seed of what is said: no visit repeats the words of another, but the shared ones.
    visit: u64,
}

/// What happened between two readings.
struct Window {
    cpu_ns: f64,
    seconds: f64,
    requests: f64,
    chunks: f64,
}

impl Bench<'_> {
    /// Lets the load settle, then accounts the subject's CPU and the mock's counts for the
    /// measured time; `on` is called at both ends.
    fn window(&mut self, mut on: impl FnMut(bool)) -> anyhow::Result<Window> {
        pause(Duration::from_millis(500))?;
        on(true);
        let (before, cpu_before, begin_ns) = self.read()?;
        pause(self.effort.measured)?;
        let (after, cpu_after, end_ns) = self.read()?;
        on(false);
        Ok(Window {
            cpu_ns: cpu_after.saturating_sub(cpu_before) as f64,
            seconds: (end_ns - begin_ns) as f64 / 1e9,
            requests: (after.requests_sum() - before.requests_sum()) as f64,
            chunks: (after.chunks - before.chunks) as f64,
        })
    }

    fn read(&mut self) -> anyhow::Result<(Stats, u64, u64)> {
        let stats = self.mock.stats()?;
        let program = self.subject.program.as_ref().unwrap_or(&self.mock.program);
        Ok((stats, program.cpu_ns()?, clock::now_ns()))
    }

    fn requests(&self, kind: Kind, bytes: usize) -> Requests {
        Requests::new(kind, bytes, &self.subject.targets[0].to_string(), self.visit)
    }

    fn failed(&self, results: &mut Results, failed: u64) {
        results.add_to_sum(&FAILED, self.subject.name, failed as f64);
    }

    /// Adds a latency: for `direct` as it is, for others what they add to it in this round.
    fn added(&self, results: &mut Results, metric: &Metric, us: f64) {
        let direct = results.rounds(metric, DIRECT).last().copied();
        let value = if self.subject.name == DIRECT { us } else { us - direct.unwrap_or(0.0) };
        results.add(metric, self.subject.name, value);
    }
}

impl Figure {
    fn is_fresh(self) -> bool {
        matches!(
            self,
            Self::MemoryIdle
                | Self::MemoryStreams
                | Self::MemoryUnique
                | Self::Idle
                | Self::MetricsPage
                | Self::EppStreams
                | Self::EppPools
                | Self::EppRaw
        )
    }

    /// The name on the command line.
    fn title(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }

    fn visit(self, bench: Bench<'_>, results: &mut Results) -> anyhow::Result<()> {
        match self {
            Self::CpuSmall => cpu::small(bench, results),
            Self::Cpu32k => cpu::medium(bench, Kind::Shared, results),
            Self::Cpu32kConversations => cpu::medium(bench, Kind::Conversations, results),
            Self::Cpu400k => cpu::large(bench, Kind::Shared, results),
            Self::Cpu400kUnique => cpu::large(bench, Kind::Unique, results),
            Self::Latency => latency::visit(&bench, results),
            Self::Sse => sse::visit(bench, results),
            Self::EppCpuSmall => epp::small(bench, results),
            Self::EppCpu400k => epp::large(bench, results),
            Self::EppLatency => latency::visit(&bench, results),
            Self::MemoryIdle
            | Self::MemoryStreams
            | Self::MemoryUnique
            | Self::Idle
            | Self::MetricsPage
            | Self::EppStreams
            | Self::EppPools
            | Self::EppRaw => Ok(()),
        }
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
