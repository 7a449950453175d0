//! Runs a command to its end: output to the screen and to a log, and a sign of life when it is quiet.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::children;
use crate::clock::Stopwatch;

/// Silence after which we say that the command is still at work.
const QUIET_LIMIT: Duration = Duration::from_secs(20);

/// Silence after which nothing more is expected of a command. Tests that hang are then named by what
/// they printed last, and the run goes on to its total.
const SILENCE_LIMIT: Duration = Duration::from_secs(600);

/// The same for what installs and builds: a large program of Go's prints nothing while it is built.
const INSTALL_SILENCE_LIMIT: Duration = Duration::from_secs(1800);

/// Which lines of a command's output are shown; all of them are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Show {
    All,
    None,
    /// All but the lines for which the function holds.
    Except(fn(&str) -> bool),
}

/// A finished command.
#[derive(Debug)]
pub(crate) struct Finished {
    pub success: bool,
    /// It printed nothing for so long that it was ended.
    pub has_hung: bool,
    /// Both outputs, line by line as they came.
    pub output: String,
}

/// Runs `command`, called `label` where it is mentioned; fails only when it cannot be started.
pub(crate) fn run(
    label: &str,
    command: &mut Command,
    log: Option<PathBuf>,
    show: Show,
) -> Result<Finished> {
    run_within(label, command, log, show, SILENCE_LIMIT)
}

fn run_within(
    label: &str,
    command: &mut Command,
    log: Option<PathBuf>,
    show: Show,
    silence_limit: Duration,
) -> Result<Finished> {
    let mut log = match &log {
        Some(path) => {
            Some(File::create(path).with_context(|| format!("cannot write {}", path.display()))?)
        }
        None => None,
    };
    let mut group = children::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let (sender, receiver) = mpsc::channel();
    if let Some(stdout) = group.child.stdout.take() {
        read_lines(stdout, sender.clone());
    }
    if let Some(stderr) = group.child.stderr.take() {
        read_lines(stderr, sender);
    }

    let stopwatch = Stopwatch::start();
    let mut last_shown = Stopwatch::start();
    let mut last_line = Stopwatch::start();
    let mut output = String::new();
    loop {
        if last_line.elapsed() >= silence_limit {
            let minutes = silence_limit.as_secs() / 60;
            println!("    {label}: ended, it printed nothing for {minutes} minutes. Before that:");
            for line in last_lines(&output, 5) {
                println!("    {line}");
            }
            return Ok(Finished { success: false, has_hung: true, output });
        }
        // Lines that come but are not shown do not count as a sign of life.
        let patience = QUIET_LIMIT.saturating_sub(last_shown.elapsed());
        if patience.is_zero() {
            println!("    … {label}: still at work after {} s", stopwatch.elapsed().as_secs());
            last_shown = Stopwatch::start();
            continue;
        }
        match receiver.recv_timeout(patience.min(silence_limit)) {
            Ok(line) => {
                last_line = Stopwatch::start();
                let shown = match show {
                    Show::All => true,
                    Show::None => false,
                    Show::Except(hidden) => !hidden(&line),
                };
                if shown {
                    println!("{line}");
                    last_shown = Stopwatch::start();
                }
                if let Some(log) = &mut log {
                    writeln!(log, "{line}").context("cannot write the log")?;
                }
                output.push_str(&line);
                output.push('\n');
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = group.child.wait().with_context(|| format!("cannot wait for {label}"))?;
    Ok(Finished { success: status.success(), has_hung: false, output })
}

fn last_lines(output: &str, count: usize) -> Vec<&str> {
    let mut lines: Vec<&str> = output.lines().rev().take(count).collect();
    lines.reverse();
    lines
}

/// Runs a step of an installation: quiet while it works, all its output when it fails.
pub(crate) fn must(label: &str, command: &mut Command) -> Result<String> {
    let finished = run_within(label, command, None, Show::None, INSTALL_SILENCE_LIMIT)?;
    if !finished.success {
        bail!("{label} failed:\n{}", finished.output.trim_end());
    }
    Ok(finished.output)
}

fn read_lines(stream: impl Read + Send + 'static, sender: Sender<String>) {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while matches!(reader.read_until(b'\n', &mut line), Ok(1..)) {
            let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
            line.clear();
            if sender.send(text).is_err() {
                break;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_outputs_are_kept_and_the_exit_code_is_seen() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo out; echo err >&2; exit 4"]);
        let finished = run("sh", &mut shell, None, Show::None).expect("a shell");
        assert!(!finished.success);
        assert!(finished.output.contains("out\n") && finished.output.contains("err\n"));
    }

    #[test]
    fn a_command_that_hangs_is_ended_and_has_failed() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo begun; exec tail -f /dev/null"]);
        let limit = Duration::from_millis(200);
        let finished = run_within("sh", &mut shell, None, Show::None, limit).expect("a shell");
        assert!(!finished.success && finished.has_hung);
        assert_eq!(finished.output, "begun\n");
    }

    #[test]
    fn a_failed_step_says_all_that_it_printed() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo no space left; exit 1"]);
        let error = must("unpacking", &mut shell).expect_err("it fails");
        assert!(error.to_string().contains("no space left"), "{error}");
    }
}
