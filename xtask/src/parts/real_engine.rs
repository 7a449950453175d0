//! The proof against a real vLLM on the CPU: two replicas of a tiny model behind `serve`.

use std::process::Command;

use anyhow::Result;

use crate::cache::Cache;
use crate::report::{Outcome, Tally};
use crate::run::{Show, run as run_command};
use crate::tools::{python, vllm};
use crate::totals;
use crate::workspace::Workspace;

/// The tests start and stop the engines themselves, because one test ends a replica.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let cache = Cache::open()?;
    let engine = vllm::environment(&cache)?;
    let model = vllm::tiny_model(workspace, &cache, &engine)?;
    let python = python::sdk_environment(workspace, &cache)?;
    drop(cache);
    let logs = workspace.logs()?;
    let mut command = Command::new(python);
    command
        .args([
            "-m",
            "pytest",
            "-v",
            "-p",
            "no:cacheprovider",
            "--color=no",
            "--tb=short",
            "tests/real-engine",
        ])
        .current_dir(&workspace.root)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("WICKETGATE_TEST_BINARY", workspace.wicketgate())
        .env("WICKETGATE_TEST_ENGINE", engine)
        .env("WICKETGATE_TEST_MODELS", model)
        .env("WICKETGATE_TEST_LOGS", &logs);
    let log = logs.join("real-engine.log");
    let finished = run_command("real engine", &mut command, Some(log), Show::All)?;
    let mut tally = totals::pytest(&finished.output);
    if !finished.success && tally.failed == 0 {
        tally += Tally::fail();
    }
    Ok(Outcome::new(tally))
}
