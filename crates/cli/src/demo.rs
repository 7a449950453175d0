//! `wicketgate demo`: the same load through three policies, on a simulated fleet of fast and slow
//! GPUs, and what each of them made of it.
//!
//! Everything is real except the GPUs: a gateway of its own for each policy, HTTP over the
//! loopback, an open-loop client. Each policy begins with engines whose caches are cold, and gets
//! the same prompts at the same times.
//!
//! Three runtimes share the machine: the simulated servers, the gateway on its own thread, and the
//! client here.

mod chunked;
mod client;
mod fleet; // in reading order
mod load;
mod measure;
mod progress;
mod report;
mod stand;
mod text;
mod workload;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use gateway::Policy;
use sim::Fleet;
use tokio::runtime::{Handle, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use crate::admin_client;
use fleet::{FLEET, Limits, MODEL};
use load::Timetable;
use progress::{Display, Live, note};
use report::Row;
use stand::Stand;
use workload::Ask;

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// End after the results, instead of serving on until Ctrl-C
    #[arg(long)]
    once: bool,

    /// One JSON object a line for each policy on standard output, and nothing else there
    #[arg(long)]
    json: bool,

    /// Offered load, as a share of what the fleet can do at most
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = positive)]
    load: f64,

    /// How long each policy is measured, after a warm-up of a third of it
    #[arg(long, value_name = "TIME", default_value = "12s", value_parser = humantime::parse_duration)]
    duration: Duration,

    /// Decides prompts, lengths and arrival times
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Real time for one second of the fleet's: 2 takes twice as long, on a machine that is too slow
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = positive)]
    time_scale: f64,

    /// What the gateway logs: error, warn, info, debug, trace, or a filter
    #[arg(long, value_name = "FILTER", env = "WICKETGATE_LOG", default_value = "error")]
    log: String,
}

const HELP: &str = "\
What it does:
  Simulates two H100 and four A10G that serve Llama 3.1 8B with vLLM (no GPU is needed), puts a
  gateway in front of them, and sends chats with shared system prompts and follow-up turns: first
  by round robin, then to the endpoint with the fewest requests, then with the picker.
  Arrivals are random (Poisson) but the same for all three. TTFT is the time to the first token.

How to read it:
  The load decides. An A10G is some ten times slower than an H100, so a policy that gives equal
  shares is overloaded long before the fleet is; the report says where. Try other loads:

  wicketgate demo --once --load 0.2
  wicketgate demo --once --load 0.8

For machines:
  wicketgate demo --once --json | jq '{policy, ttft_p95_ms, output_tokens_per_second}'";

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err("a number greater than 0, as in 0.5".to_owned()),
    }
}

/// A policy, in the order in which they run; the first is what the others are compared with.
const POLICIES: [(Policy, &str, &str); 3] = [
    (Policy::RoundRobin, "round-robin", "round robin"),
    (Policy::LeastRequest, "least-request", "least request"),
    (Policy::Document, "wicketgate", "wicketgate"),
];

/// What all policies get alike.
struct Plan {
    load: f64,
    seed: u64,
    limits: Limits,
    /// Requests per second of the fleet's time.
    rate: f64,
    timetable: Timetable,
    asks: Vec<(Duration, Ask)>,
}

impl Plan {
    fn new(args: &Args) -> anyhow::Result<Self> {
        /// Long enough to see who is still waiting, and no longer.
        const DRAIN_MAX: Duration = Duration::from_secs(2);
        let limits = fleet::limits(&workload::mix(args.seed))?;
        let rate = args.load * limits.fleet;
        let timetable = Timetable {
            warm_up: args.duration / 3,
            measured: args.duration,
            drain: DRAIN_MAX.min(args.duration),
            time_scale: args.time_scale,
        };
        let arrivals = workload::arrivals(args.seed, rate, timetable.sent());
        let asks = arrivals.into_iter().zip(workload::Chats::new(args.seed)).collect();
        Ok(Self { load: args.load, seed: args.seed, limits, rate, timetable, asks })
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    telemetry::logging::init(&args.log, false)?;
    let simulator = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("simulator")
        .enable_all()
        .build()?;
    let client = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = client.block_on(demo(&args, simulator.handle()));
    end(simulator);
    result
}

/// Streams may still be under way; nobody waits for them.
fn end(simulator: Runtime) {
    simulator.shutdown_background();
}

async fn demo(args: &Args, simulator: &Handle) -> anyhow::Result<()> {
    let plan = Plan::new(args)?;
    announce(&plan);
    let mut rows = Vec::new();
    let mut last = None;
    for (policy, name, title) in POLICIES {
        let serves_on = policy == Policy::Document && !args.once;
        let ports = if serves_on { stand::USUAL } else { stand::EPHEMERAL };
        let servers = fleet::servers(plan.timetable.time_scale, plan.seed);
        let fleet = simulator.spawn(Fleet::start(servers)).await??;
        let stand = Stand::start(&fleet.urls(), policy, ports).await?;
        let row = measure(&plan, (name, title), &fleet, &stand).await?;
        if args.json {
            print(&report::json(&plan, &row).to_string())?;
        }
        rows.push(row);
        if serves_on {
            last = Some((fleet, stand));
        } else {
            stand.stop()?;
        }
    }
    if !args.json {
        print(&format!("\n{}\n\n{}", report::table(&rows), report::remarks(&plan, &rows)?))?;
    }
    if let Some((fleet, stand)) = last {
        // Before anyone is told how to end it.
        let interrupted = interrupted()?;
        invite(&stand, args.json)?;
        interrupted.await;
        drop(fleet);
        stand.stop()?;
    }
    Ok(())
}

fn announce(plan: &Plan) {
    let gpus: Vec<String> =
        FLEET.iter().map(|group| format!("{} × {}", group.count, group.gpu)).collect();
    let whole = plan.timetable.whole().mul_f64(plan.timetable.time_scale);
    note(&format!(
        "Simulating {} with {MODEL}.\nSending {:.1} requests/s ({} of capacity) through {} policies, {:.0} s each:\n",
        gpus.join(" and "),
        plan.rate,
        plan.load,
        POLICIES.len(),
        whole.as_secs_f64(),
    ));
}

/// Sends the load through one gateway.
async fn measure(
    plan: &Plan,
    (policy, title): (&'static str, &'static str),
    fleet: &Fleet,
    stand: &Stand,
) -> anyhow::Result<Row> {
    let live = Arc::new(Live::default());
    let display = Display::new(title, plan.timetable, live.clone());
    let warm = async {
        tokio::time::sleep(plan.timetable.real(plan.timetable.warm_up)).await;
        picks(fleet, stand)
    };
    let sending = load::run(stand.traffic, plan.asks.clone(), plan.timetable, live);
    let (samples, before) = tokio::join!(sending, warm);
    let measured = measure::measure(&samples, &plan.timetable);
    display.done(&report::summary(&measured));
    let mut picked = picks(fleet, stand);
    picked.iter_mut().zip(before).for_each(|(count, before)| *count -= before);
    let all = picked.iter().sum::<u64>().max(1);
    Ok(Row {
        policy,
        title,
        measured,
        shares: picked.map(|count| count as f64 / all as f64),
        cached: cached(fleet),
        step_late_p99: step_lateness(fleet)?,
    })
}

/// How many requests each group of the fleet got so far.
fn picks(fleet: &Fleet, stand: &Stand) -> [u64; FLEET.len()] {
    let mut counts = [0; FLEET.len()];
    for (endpoint, count) in stand.picks() {
        let server = fleet.servers().iter().find(|server| server.address().to_string() == endpoint);
        if let Some(group) = server.and_then(fleet::group_of) {
            counts[group] += count;
        }
    }
    counts
}

/// Share of the prompt tokens that all engines together found in their caches.
fn cached(fleet: &Fleet) -> f64 {
    let (mut hits, mut looked_up) = (0, 0);
    for server in fleet.servers() {
        let stats = server.stats();
        hits += stats.prefix_hit_tokens;
        looked_up += stats.prefix_query_tokens;
    }
    hits as f64 / looked_up.max(1) as f64
}

/// The worst server's; a bound of the simulator's histogram.
fn step_lateness(fleet: &Fleet) -> anyhow::Result<Duration> {
    /// What a server that tells no number is taken for: it is beyond the histogram's last bound.
    const BEYOND_MS: f64 = 1000.0;
    let mut worst = 0.0_f64;
    for server in fleet.servers() {
        let state = admin_client::request(server.address(), "GET", "/admin/state", &[])?;
        let state: serde_json::Value = serde_json::from_slice(&state)?;
        worst = worst.max(state["step_lateness_ms_p99"].as_f64().unwrap_or(BEYOND_MS));
    }
    Ok(Duration::from_secs_f64(worst * 1e-3))
}

/// Says what to try against the gateway that goes on.
fn invite(stand: &Stand, quietly: bool) -> anyhow::Result<()> {
    let Stand { traffic, admin, .. } = stand;
    let text = format!(
        "\nThe last gateway goes on serving at http://{traffic}. Try:\n\n\
         curl http://{traffic}/v1/models\n\
         curl -N http://{traffic}/v1/chat/completions -H 'content-type: application/json' \
         -d '{{\"model\":\"{MODEL}\",\"stream\":true,\"messages\":[{{\"role\":\"user\",\"content\":\"Hello\"}}]}}'\n\n\
         The live page, metrics: http://{admin}/, http://{admin}/metrics\n\
         Ctrl-C ends it."
    );
    if quietly {
        note(&text);
        return Ok(());
    }
    print(&text)
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// Catches SIGINT and SIGTERM from now on; resolves when one came.
fn interrupted() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
