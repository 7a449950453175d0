//! Traces to a receiver of OpenTelemetry's own messages, and through its collector where Go is installed to build
//! it; `/metrics` by Prometheus' reference parsers.

use std::process::Command;

use anyhow::Result;

use crate::cache::Cache;
use crate::report::{Outcome, Tally};
use crate::run::{Show, run as run_command};
use crate::tools;
use crate::totals;
use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let requirements = workspace.root.join("tests/otel/requirements.txt");
    let cache = Cache::open()?;
    let python = tools::python::environment("otel", &requirements, &cache)?;
    let collector = tools::collector::binary(workspace, &cache)?;
    let mut command = Command::new(python);
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no", "tests/otel"]);
    command
        .current_dir(&workspace.root)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("WICKETGATE_TEST_BINARY", workspace.wicketgate());
    if let Some(collector) = &collector {
        command.env("WICKETGATE_TEST_COLLECTOR", collector);
    }
    let log = workspace.logs()?.join("otel.log");
    let finished = run_command("otel", &mut command, Some(log), Show::All)?;
    let mut tally = totals::pytest(&finished.output);
    if !finished.success && tally.failed == 0 {
        tally += Tally::fail();
    }
    let outcome = Outcome::new(tally);
    Ok(match collector {
        Some(_) => outcome,
        None => outcome.note("without OpenTelemetry's collector: Go is not installed"),
    })
}
