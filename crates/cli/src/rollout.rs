//! `wicketgate rollout`.

mod share;
mod table;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::Context;
use clap::Subcommand;
use gateway::{RolloutAction, RolloutView};

use crate::admin_client;
use share::{Share, Weight};

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = NOTE)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,

    /// The gateway's administration address
    #[arg(
        long,
        value_name = "ADDR",
        env = "WICKETGATE_ADMIN",
        default_value = "127.0.0.1:9090",
        global = true
    )]
    admin: SocketAddr,

    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

const NOTE: &str = "\
What is changed here holds in that one gateway, until it ends or the document changes the rule. For a
split that lasts, and for several gateways, change the weights in the document.";

#[derive(Clone, Debug, Subcommand)]
enum Command {
    /// Targets with their weights, error rates and times, and what has been done to them
    Status {
        /// Name of a rewrite; else all
        name: Option<String>,
    },
    /// Set weights; targets that are not named keep theirs
    Set {
        #[command(flatten)]
        of: Of,
        #[arg(value_name = "TARGET=WEIGHT", required = true)]
        weights: Vec<Weight>,
    },
    /// Give a target more: the next of 1, 5, 10, 25, 50 and 100 %, or what --to says
    Step {
        #[command(flatten)]
        of: Of,
        /// Share that the target gets, such as 25%; the others keep their proportions
        #[arg(long, value_name = "SHARE")]
        to: Option<Share>,
        /// Which target, if there are several beside the stable one
        #[arg(long, value_name = "MODEL")]
        target: Option<String>,
    },
    /// Hold the split as it is: steps are refused until it is resumed, roll-backs are not
    Pause {
        #[command(flatten)]
        of: Of,
    },
    /// Take all traffic back to the stable target
    Rollback {
        #[command(flatten)]
        of: Of,
        /// Why; shown in the status
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Only this target
        #[arg(long, value_name = "MODEL")]
        target: Option<String>,
    },
    /// Lift a pause or a roll-back
    Resume {
        #[command(flatten)]
        of: Of,
        /// Share that the target begins with, such as 1%; else the one it had
        #[arg(long, value_name = "SHARE")]
        to: Option<Share>,
        /// Which target, if there are several beside the stable one
        #[arg(long, value_name = "MODEL", requires = "to")]
        target: Option<String>,
    },
}

#[derive(Clone, Debug, clap::Args)]
struct Of {
    /// Name of the rewrite
    name: String,

    /// Which of its rules, 0 the first; needed if there are several
    #[arg(long, value_name = "N")]
    rule: Option<usize>,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Rollouts {
    rollouts: Vec<RolloutView>,
}

#[expect(clippy::print_stdout, reason = "a command's output")]
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Some((of, action)) = action(&args.command) else {
        let name = match &args.command {
            Command::Status { name } => name.as_deref(),
            _ => None,
        };
        let found = status(args.admin, name)?;
        let text = if args.json {
            serde_json::to_string_pretty(&found)?
        } else {
            table::render_all(&found.rollouts)
        };
        println!("{text}");
        return Ok(());
    };
    let view = act(args.admin, of, &action)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&view)?);
    } else {
        println!("{}\n{}", table::render(&view), table::advice(&view));
    }
    Ok(())
}

fn status(admin: SocketAddr, name: Option<&str>) -> anyhow::Result<Rollouts> {
    let answer = admin_client::request(admin, "GET", "/debug/rollouts", b"")?;
    let mut found: Rollouts = serde_json::from_slice(&answer)?;
    if let Some(name) = name {
        let known: Vec<_> = found.rollouts.iter().map(|view| view.name.clone()).collect();
        found.rollouts.retain(|view| view.name == name);
        if found.rollouts.is_empty() {
            anyhow::bail!("there is no rewrite `{name}`; rewrites: {}", known.join(", "));
        }
    }
    Ok(found)
}

fn act(admin: SocketAddr, of: &Of, action: &RolloutAction) -> anyhow::Result<RolloutView> {
    let rule = of.rule.map(|rule| format!("?rule={rule}")).unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    if !of.name.chars().all(plain) {
        anyhow::bail!("`{}` is no name of a rewrite", of.name);
    }
    let path = format!("/debug/rollouts/{}{rule}", of.name);
    let answer = admin_client::request(admin, "POST", &path, &serde_json::to_vec(action)?)?;
    serde_json::from_slice(&answer).context("the gateway's answer cannot be read")
}

/// What a command does to a rewrite; `None`: it only looks.
fn action(command: &Command) -> Option<(&Of, RolloutAction)> {
    Some(match command {
        Command::Status { .. } => return None,
        Command::Set { of, weights } => {
            let weights: BTreeMap<_, _> =
                weights.iter().map(|weight| (weight.target.clone(), weight.weight)).collect();
            (of, RolloutAction::Set { weights })
        }
        Command::Step { of, to, target } => {
            (of, RolloutAction::Step { to: to.map(|to| to.0), target: target.clone() })
        }
        Command::Pause { of } => (of, RolloutAction::Pause),
        Command::Rollback { of, reason, target } => {
            (of, RolloutAction::Rollback { reason: reason.clone(), target: target.clone() })
        }
        Command::Resume { of, to, target } => {
            (of, RolloutAction::Resume { to: to.map(|to| to.0), target: target.clone() })
        }
    })
}
