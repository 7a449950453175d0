//! Processes that we start, and the promise that none outlives us.
//!
//! Each gets a process group of its own, so that stopping it reaches what it started in turn (an
//! inference engine forks its workers). A signal to us stops them all before we leave.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process_group, test_kill_process_group, waitpid,
};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::clock::wait_until;

/// How long a stopped process may take to leave before it is asked again.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long it may take after that, before it is ended.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Groups that are alive; the signal thread reads it.
static GROUPS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

fn groups() -> MutexGuard<'static, Vec<Pid>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes over SIGINT and SIGTERM: stops every group we started, then exits with the usual code.
pub(crate) fn stop_all_on_signal() {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            // Held to the end: nothing is started any more, and who stops a group waits for us.
            let alive = groups();
            for group in alive.iter() {
                let _ = kill_process_group(*group, Signal::TERM);
            }
            wait_until(STOP_LIMIT, || alive.iter().all(|group| is_gone(*group)));
            for group in alive.iter() {
                let _ = kill_process_group(*group, Signal::KILL);
            }
            std::process::exit(128 + signal);
        }
    });
}

/// Whether nobody is left in the group; a leader that has ended must be reaped to be gone.
fn is_gone(group: Pid) -> bool {
    let _ = waitpid(Some(group), WaitOptions::NOHANG);
    test_kill_process_group(group).is_err()
}

/// Starts `command` as the leader of a new group that a signal to us reaches.
pub(crate) fn spawn(command: &mut Command) -> Result<Group> {
    let mut groups = groups(); // held over the start, so that no signal falls between
    let child = command
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let id = Pid::from_child(&child);
    groups.push(id);
    Ok(Group { child, id })
}

/// A running group of processes; stopped when dropped.
#[derive(Debug)]
pub(crate) struct Group {
    pub child: Child,
    id: Pid,
}

impl Group {
    pub(crate) fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = kill_process_group(self.id, Signal::TERM);
        if !self.leaves_within(PATIENCE) {
            // The gateway takes a second signal as the wish not to wait for open streams.
            let _ = kill_process_group(self.id, Signal::TERM);
            self.leaves_within(STOP_LIMIT);
        }
        let _ = kill_process_group(self.id, Signal::KILL);
        let _ = self.child.wait();
        groups().retain(|group| *group != self.id);
    }
}

impl Group {
    /// Waits for the last process of the group; the leader must be reaped to be gone.
    fn leaves_within(&mut self, limit: Duration) -> bool {
        wait_until(limit, || {
            let _ = self.child.try_wait();
            test_kill_process_group(self.id).is_err()
        })
    }
}

/// A server in the background whose output goes to a log file.
#[derive(Debug)]
pub(crate) struct Server {
    pub name: String,
    pub log: PathBuf,
    group: Group,
}

impl Server {
    pub(crate) fn start(name: &str, log: PathBuf, command: &mut Command) -> Result<Self> {
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let errors = file.try_clone().context("cannot share the log file")?;
        let group = spawn(command.stdout(file).stderr(errors))?;
        Ok(Self { name: name.to_owned(), log, group })
    }

    /// Waits until `ready` holds; fails at once when the process leaves before that.
    pub(crate) fn wait_ready(&mut self, limit: Duration, ready: impl Fn() -> bool) -> Result<()> {
        let mut left = None;
        let done = wait_until(limit, || {
            left = self.group.exited();
            left.is_some() || ready()
        });
        let problem = match left {
            Some(status) => format!("left early ({status})"),
            None if !done => format!("is not ready after {} s", limit.as_secs()),
            None => return Ok(()),
        };
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let tail: Vec<&str> = log.lines().rev().take(15).collect();
        let tail = tail.into_iter().rev().collect::<Vec<_>>().join("\n    ");
        anyhow::bail!("{} {problem}; the end of {}:\n    {tail}", self.name, self.log.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_a_group_ends_what_its_leader_started() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 600 & echo $!; wait"]).stdout(Stdio::piped());
        let mut group = spawn(&mut shell).expect("a shell");
        let mut line = String::new();
        let mut stdout = std::io::BufReader::new(group.child.stdout.take().expect("piped"));
        std::io::BufRead::read_line(&mut stdout, &mut line).expect("the grandchild's id");
        let id = group.id;
        drop(group);
        assert!(test_kill_process_group(id).is_err(), "group {line} is still there");
    }

    #[test]
    fn a_server_that_leaves_early_is_reported_with_its_last_words() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo no such flag >&2; exit 3"]);
        let mut server =
            Server::start("it", folder.path().join("log"), &mut shell).expect("started");
        let error = server.wait_ready(Duration::from_secs(10), || false).expect_err("it left");
        let text = error.to_string();
        assert!(text.contains("left early") && text.contains("no such flag"), "{text}");
    }
}
