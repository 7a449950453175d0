//! `wicketgate doctor`: looks at a running gateway and its engines, and says what to change.
//!
//! [`gather`] asks the gateway and each endpoint once and writes down [`facts`]; [`checks`] are plain
//! functions from facts to findings; [`catalog`] holds what each finding means and how to mend it.

mod catalog;
mod checks;
mod facts;
mod gather;
mod look;
mod report;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use gateway::SettingsView;

use crate::admin::{Admin, AdminFlags};
use catalog::{Finding, Severity};
use facts::Facts;
use gather::Probing;

pub use catalog::markdown;

/// Most time for one answer of the gateway.
const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    admin: AdminFlags,

    /// Look at the endpoints of this document (InferenceGatewayConfig) instead, without a gateway
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    file: Option<PathBuf>,

    /// Key that endpoints ask for
    #[arg(long, value_name = "KEY", env = "WICKETGATE_ENDPOINT_API_KEY", hide_env_values = true)]
    endpoint_api_key: Option<String>,

    /// Longest wait to see whether an endpoint closes an idle connection; 0s: do not look
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = humantime::parse_duration)]
    patience: Duration,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Looks, prints, and tells by the exit code: 0 nothing to mend, 1 warnings, 2 errors, or nothing could
/// be looked at.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command's output")]
pub fn run(args: &Args) -> ExitCode {
    let findings = match examine(args) {
        Ok(findings) => findings,
        Err(error) => {
            eprintln!("error: {error:#}");
            return ExitCode::from(2);
        }
    };
    let (findings, looked_at) = findings;
    if args.json {
        println!("{}", report::json(&findings, &looked_at));
    } else {
        print!("{}", report::text(&findings, &looked_at));
    }
    ExitCode::from(match findings.iter().map(|finding| finding.kind.severity).max() {
        None | Some(Severity::Note) => 0,
        Some(Severity::Warning) => 1,
        Some(Severity::Error) => 2,
    })
}

/// The findings, the gravest first, and what was looked at.
fn examine(args: &Args) -> anyhow::Result<(Vec<Finding>, String)> {
    let probing = Probing { key: args.endpoint_api_key.clone(), patience: args.patience };
    let (facts, looked_at) = match &args.file {
        Some(file) => {
            let document = config::load(file)
                .map_err(|errors| anyhow::anyhow!("{}\n{errors}", file.display()))?;
            let facts = gather::offline(SettingsView::of(&document), &probing);
            (facts, format!("the endpoints of {}", file.display()))
        }
        None => {
            let admin = Admin::new(&args.admin, TIMEOUT);
            let looked_at = format!("the gateway at {}", admin.authority());
            match gather::online(&admin, &probing) {
                Ok(facts) => (facts, looked_at),
                Err(error) => {
                    let error = anyhow::Error::from(error);
                    let place = admin.authority();
                    let finding =
                        Finding::new(&catalog::GATEWAY_UNREACHABLE, place, format!("{error:#}"));
                    return Ok((vec![finding], looked_at));
                }
            }
        }
    };
    let endpoints = facts.endpoints.len();
    let plural = if endpoints == 1 { "" } else { "s" };
    Ok((judge(&facts), format!("{looked_at}: {endpoints} endpoint{plural}")))
}

/// Every check, the gravest finding first.
fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    checks::gateway::check(facts, &mut findings);
    checks::process::check(facts, &mut findings);
    checks::traffic::check(facts, &mut findings);
    checks::endpoint::check(facts, &mut findings);
    checks::signals::check(facts, &mut findings);
    checks::pool::check(facts, &mut findings);
    checks::adapters::check(facts, &mut findings);
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.kind.severity));
    findings
}
