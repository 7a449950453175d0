//! `PutMetricData` against moto's server: what arrives is what a gateway, and a router before it, know.

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
    let (router, router_admin, heartbeats) = (free_address()?, free_address()?, free_address()?);
    let endpoints: Vec<String> =
        fleet.endpoints.iter().map(|endpoint| format!("{{ url: 'http://{endpoint}' }}")).collect();
    let seen = |dimension: &str| {
        format!(
            "  observability:\n    cloudWatch: {{ mode: api, region: eu-west-1, endpoint: 'http://{cloud}', \
             interval: 1s, dimensions: {{ {dimension}: test }} }}\n"
        )
    };
    let cluster = format!(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nspec:\n  \
         discover: [{}]\n  listener: {{ address: '{gateway}' }}\n  admin: {{ address: '{admin}' }}\n  \
         global: {{ cluster: near, routers: ['{heartbeats}'], interval: 500ms }}\n{}",
        endpoints.join(", "),
        seen("Cluster")
    );
    let global = format!(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: GlobalInferenceGateway\nspec:\n  members:\n  \
         - {{ name: near, url: 'http://{gateway}', price: {{ inputPerMillion: 1, outputPerMillion: 3 }} }}\n  \
         - {{ name: absent, url: 'http://127.0.0.1:1' }}\n  \
         heartbeats: {{ address: '{heartbeats}' }}\n  listener: {{ address: '{router}' }}\n  \
         admin: {{ address: '{router_admin}' }}\n{}",
        seen("Fleet")
    );
    let mut servers = Vec::new();
    for (verb, document, admin) in [("serve", cluster, admin), ("global", global, router_admin)] {
        let file = logs.join(format!("cloud-watch-{verb}.yaml"));
        fs::write(&file, document).context("cannot write the document")?;
        let mut command = Command::new(workspace.wicketgate());
        command.args([verb, "-f"]).arg(&file);
        // Anything: the stand-in lets everyone in.
        command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
        let log = logs.join(format!("cloud-watch-{verb}.log"));
        let mut server = Server::start(&format!("wicketgate {verb}"), log, &mut command)?;
        server.wait_ready(READY_LIMIT, || get(admin, "/readyz").is_some())?;
        servers.push(server);
    }
    let _load = Load::start(&[router]);

    let mut command = Command::new(programs.join("python"));
    command
        .arg(workspace.root.join("tests/cloudwatch/arrived.py"))
        .arg(format!("http://{cloud}"))
        .current_dir(&workspace.root)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let finished = run_command("arrived.py", &mut command, None, Show::All)?;
    let counted = [admin, router_admin].iter().all(|admin| {
        let page = get(*admin, "/metrics").unwrap_or_default();
        let count = |name: &str| {
            let lines = page.lines().filter(|line| line.starts_with(name));
            lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum::<f64>()
        };
        count("wicketgate_cloudwatch_reports_total") > 0.0
            && count("wicketgate_cloudwatch_failures_total") == 0.0
    });
    println!("    {}  reports are counted, none failed", if counted { "ok    " } else { "FAILED" });
    let mut tally = Tally::of(finished.success);
    tally += Tally::of(counted);
    Ok(Outcome::new(tally))
}
