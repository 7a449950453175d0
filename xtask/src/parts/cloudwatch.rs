//! `PutMetricData` against moto's server: what arrives is what the gateway knows.

use std::fs;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::fleet::Fleet;
use crate::cache::Cache;
use crate::children::Server;
use crate::prometheus::{Load, get};
use crate::report::{Outcome, Tally};
use crate::run::{Show, run as run_command};
use crate::tools::moto;
use crate::workspace::Workspace;
use test_ports::free_address;

const READY_LIMIT: Duration = Duration::from_secs(30);

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let programs = moto::programs(&Cache::open()?)?;
    let logs = workspace.logs()?;
    let cloud = free_address()?;
    let mut command = Command::new(programs.join("moto_server"));
    command.args(["-H", "127.0.0.1", "-p", &cloud.port().to_string()]);
    let mut stand_in = Server::start("moto_server", logs.join("moto.log"), &mut command)?;
    stand_in.wait_ready(READY_LIMIT, || TcpStream::connect(cloud).is_ok())?;

    let fleet = Fleet::start(workspace, "cloud-watch")?;
    let (gateway, admin) = (free_address()?, free_address()?);
    let document = logs.join("cloud-watch.yaml");
    let endpoints: Vec<String> =
        fleet.endpoints.iter().map(|endpoint| format!("{{ url: 'http://{endpoint}' }}")).collect();
    fs::write(
        &document,
        format!(
            "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nspec:\n  \
             discover: [{}]\n  listener: {{ address: '{gateway}' }}\n  admin: {{ address: '{admin}' }}\n  \
             observability:\n    cloudWatch: {{ mode: api, region: eu-west-1, endpoint: 'http://{cloud}', \
             interval: 1s, dimensions: {{ Cluster: test }} }}\n",
            endpoints.join(", ")
        ),
    )
    .context("cannot write the document")?;
    let mut command = Command::new(workspace.wicketgate());
    command.args(["serve", "-f"]).arg(&document);
    // Anything: the stand-in lets everyone in.
    command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
    let log = logs.join("cloud-watch-serve.log");
    let mut serve = Server::start("wicketgate serve", log, &mut command)?;
    serve.wait_ready(READY_LIMIT, || get(admin, "/readyz").is_some())?;
    let _load = Load::start(&[gateway]);

    let mut command = Command::new(programs.join("python"));
    command
        .arg(workspace.root.join("tests/cloudwatch/arrived.py"))
        .arg(format!("http://{cloud}"))
        .current_dir(&workspace.root)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let finished = run_command("arrived.py", &mut command, None, Show::All)?;
    let page = get(admin, "/metrics").unwrap_or_default();
    let count = |name: &str| {
        let lines = page.lines().filter(|line| line.starts_with(name));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum::<f64>()
    };
    let counted = count("wicketgate_cloudwatch_reports_total") > 0.0
        && count("wicketgate_cloudwatch_failures_total") == 0.0;
    println!("    {}  reports are counted, none failed", if counted { "ok    " } else { "FAILED" });
    let mut tally = Tally::of(finished.success);
    tally += Tally::of(counted);
    Ok(Outcome::new(tally))
}
