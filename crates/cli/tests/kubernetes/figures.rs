//! What a thousand pools and ten thousand pods cost: figures, printed.
//!
//! `cargo xtask test --only kubernetes` does not run them; in a build for release:
//! `cargo test --release --workspace --test kubernetes -- --ignored --nocapture measured`, with `KUBEBUILDER_ASSETS`.

#![expect(clippy::print_stderr, reason = "figures are printed for whoever asks for them")]

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::control_plane::shared;
use crate::gateway::Gateway;
use crate::igwc::{apply, has};
use crate::namespace::{Namespace, status, until};
use crate::process::Controller;

const GATEWAYS: usize = 4;
const POOLS_EACH: usize = 250;
const PODS_EACH: usize = 10;
/// Pods whose readiness is changed.
const CHANGES: usize = 1000;
/// Requests to the API server at once.
const AT_ONCE: usize = 32;
/// Longest that filling the cluster may take.
const FILLING: Duration = Duration::from_secs(540);

fn spec(gateway: usize) -> Value {
    let scheduler = |pool: usize| {
        let name = format!("pool-{gateway}-{pool}");
        json!({ "name": name, "modelName": name, "modelSelector": { "matchLabels": { "app": name } } })
    };
    let schedulers: Vec<Value> = (0..POOLS_EACH).map(scheduler).collect();
    // Nobody is at the pods' addresses; what scraping costs is another figure.
    json!({ "schedulers": schedulers, "scrape": { "busyInterval": "60s", "idleInterval": "60s" } })
}

/// Does something for each of `count`, some at a time.
async fn for_each(count: usize, act: impl AsyncFn(usize) + Clone + 'static) {
    let local = tokio::task::LocalSet::new();
    local
        .run_until(async {
            let mut tasks = JoinSet::new();
            for n in 0..count {
                while tasks.len() >= AT_ONCE {
                    tasks.join_next().await.unwrap().unwrap();
                }
                let act = act.clone();
                tasks.spawn_local(async move { act(n).await });
            }
            while let Some(done) = tasks.join_next().await {
                done.unwrap();
            }
        })
        .await;
}

fn pod_name(n: usize) -> String {
    format!("pod-{n}")
}

fn app_of(n: usize) -> String {
    let pool = n / PODS_EACH;
    format!("pool-{}-{}", pool / POOLS_EACH, pool % POOLS_EACH)
}

fn ip_of(n: usize) -> String {
    format!("10.{}.{}.{}", 100 + n / 62_500, n / 250 % 250, 1 + n % 250)
}

async fn filled() -> Namespace {
    let namespace = Namespace::new(shared().await).await;
    for gateway in 0..GATEWAYS {
        apply(&namespace, &format!("gateway-{gateway}"), spec(gateway)).await;
    }
    let pods = GATEWAYS * POOLS_EACH * PODS_EACH;
    let begun = Instant::now();
    let to = namespace.clone();
    let filling = for_each(pods, async move |n| {
        to.make_pod(&pod_name(n), &app_of(n), status(&ip_of(n), true)).await;
    });
    timeout(FILLING, filling).await.expect("the pods are made in time");
    eprintln!("{pods} pods made in {:?}", begun.elapsed());
    namespace
}

/// Changes the readiness of pods, each of another pool where there are enough.
async fn change(namespace: &Namespace, is_ready: bool) {
    let to = namespace.clone();
    for_each(CHANGES, async move |n| {
        let n = n * PODS_EACH;
        to.set_status(&pod_name(n), status(&ip_of(n), is_ready)).await;
    })
    .await;
}

/// Processor time of a process so far, and its resident memory in MiB.
fn cost(process: u32) -> (Duration, u64) {
    /// Linux has counted in these since long ago, whatever its own clock does.
    const TICKS_A_SECOND: u64 = 100;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: u64 = [11, 12].iter().map(|at| fields[*at].parse::<u64>().unwrap()).sum();
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.split_whitespace().next().unwrap().parse().unwrap();
    (Duration::from_millis(ticks * 1000 / TICKS_A_SECOND), kib / 1024)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn measured_a_thousand_pools_and_ten_thousand_pods() {
    let namespace = filled().await;
    let begun = Instant::now();
    let controller = Controller::start(&namespace);
    for gateway in 0..GATEWAYS {
        has(&namespace, &format!("gateway-{gateway}"), "Accepted", "True/Accepted").await;
    }
    let (cpu, peak) = cost(controller.id());
    eprintln!(
        "controller: all statuses after {:?}, {cpu:?} of CPU, peak {peak} MiB",
        begun.elapsed()
    );
    let spent = cost(controller.id()).0;
    change(&namespace, false).await;
    change(&namespace, true).await;
    until("all endpoints are back", async || {
        controller.said();
        let all = crate::igwc::gateways(&namespace, config::ApiGroup::Wicketgate);
        let list = all.list(&kube::api::ListParams::default()).await.unwrap();
        let count = |one: &kube::api::DynamicObject| one.data["status"]["readyEndpoints"].as_u64();
        list.items.iter().filter_map(count).sum::<u64>()
            == (GATEWAYS * POOLS_EACH * PODS_EACH) as u64
    })
    .await;
    let (cpu, peak) = cost(controller.id());
    let changes = u32::try_from(CHANGES * 2).unwrap();
    eprintln!(
        "controller: {:?} of CPU for each pod that changed, peak {peak} MiB",
        (cpu - spent) / changes
    );
    drop(controller);

    let kubeconfig = namespace.kubeconfig.display().to_string();
    let any = "127.0.0.1:0";
    let begun = Instant::now();
    let arguments =
        ["--resource", "gateway-0", "--kubeconfig", &kubeconfig, "--listen", any, "--admin", any];
    let gateway = Gateway::start("serve", &arguments, tempfile::tempdir().unwrap()).await;
    let all = POOLS_EACH * PODS_EACH;
    gateway.until("all pods are endpoints", async || gateway.endpoints().await.len() == all).await;
    let (cpu, peak) = cost(gateway.id());
    eprintln!(
        "gateway of {POOLS_EACH} pools among 10,000 pods: all endpoints after {:?}, {cpu:?} of CPU, peak {peak} MiB",
        begun.elapsed()
    );
    let spent = cost(gateway.id()).0;
    change(&namespace, false).await;
    let left = all - CHANGES / GATEWAYS;
    gateway
        .until("the changed pods have left", async || gateway.endpoints().await.len() == left)
        .await;
    let cpu = cost(gateway.id()).0 - spent;
    eprintln!(
        "gateway: {:?} of CPU for each pod that changed, a quarter of them its own",
        cpu / (changes / 2)
    );
}
