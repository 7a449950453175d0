//! Programs under measurement: started, accounted by the operating system, and ended by their pid.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

use crate::clock;

/// How long a program may take to leave after SIGTERM before it is killed.
const LEAVE_MAX: Duration = Duration::from_secs(5);

/// A program that this harness started; dropping it ends the program and its children.
pub struct Program {
    child: Child,
    log: PathBuf,
}

impl Program {
    /// Starts `command` with both outputs in the file `log`.
    pub fn start(mut command: Command, log: PathBuf) -> anyhow::Result<Self> {
        let out = fs::File::create(&log).with_context(|| format!("cannot write {log:?}"))?;
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        Ok(Self { child, log })
    }

    /// Takes over a child whose outputs somebody else reads.
    pub fn adopt(child: Child) -> Self {
        Self { child, log: PathBuf::new() }
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Fails with the end of the program's log if it has left already.
    pub fn still_runs(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.child.try_wait()? {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            let from = log.len().saturating_sub(2_000);
            let tail = log.get(from..).unwrap_or(&log);
            bail!("left with {:?} {:?}: {tail}", status.code(), status.signal());
        }
        Ok(())
    }

    /// CPU time, user and system, of all threads of the program and its children, in nanoseconds.
    ///
    /// It is what `utime + stime` of `/proc/<pid>/stat` shows in steps of 10 ms, read from the same
    /// accounting without the rounding (the process's CPU clock); a thread that ended still counts.
    pub fn cpu_ns(&self) -> anyhow::Result<u64> {
        let mut sum = 0;
        for pid in tree(self.pid()) {
            // A child that ends between listing and reading has nothing to add.
            let Ok(id) = clock_getcpuclockid(Pid::from_raw(pid)) else { continue };
            let Ok(time) = clock_gettime(id) else { continue };
            sum += time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64;
        }
        if sum == 0 {
            bail!("no CPU accounting for pid {}", self.pid());
        }
        Ok(sum)
    }

    /// Resident memory of the program and its children in bytes; shared pages count for each.
    pub fn rss_bytes(&self) -> anyhow::Result<u64> {
        let mut sum = 0;
        for pid in tree(self.pid()) {
            let exact = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
            let exact = exact.ok().and_then(|text| kib_of(&text, "Rss:"));
            let rough = || {
                let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
                kib_of(&text, "VmRSS:")
            };
            sum += exact.or_else(rough).unwrap_or(0) * 1024;
        }
        if sum == 0 {
            bail!("no memory accounting for pid {}", self.pid());
        }
        Ok(sum)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let family = tree(self.pid()).into_iter().map(|pid| (pid, start_of(pid)));
        let family: Vec<_> = family.filter(|(pid, _)| *pid != self.pid()).collect();
        let _ = kill(Pid::from_raw(self.pid()), Signal::SIGTERM);
        let deadline_ns = clock::now_ns() + LEAVE_MAX.as_nanos() as u64;
        while matches!(self.child.try_wait(), Ok(None)) && clock::now_ns() < deadline_ns {
            std::thread::sleep(Duration::from_millis(5));
        }
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        // Children that outlive their parent: only while the pid still means the same program.
        for (pid, started) in family {
            if started.is_some() && start_of(pid) == started {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
    }
}

/// `root` and all its living descendants.
fn tree(root: i32) -> Vec<i32> {
    let parents: Vec<(i32, i32)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid: i32| Some((pid, parent_of(pid)?)))
        .collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found
}

fn parent_of(pid: i32) -> Option<i32> {
    parent_in(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The parent's pid in a `/proc/<pid>/stat` line; the name in brackets may hold anything.
fn parent_in(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// When `pid` was started, in ticks since the machine was.
fn start_of(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// The number of kibibytes behind `name` in a `/proc` page.
fn kib_of(page: &str, name: &str) -> Option<u64> {
    page.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_is_found_behind_a_name_with_brackets_and_spaces() {
        assert_eq!(parent_in("12 (a b) c) S 7 12 12 0"), Some(7));
        assert_eq!(parent_in("garbage"), None);
    }

    #[test]
    fn memory_is_read_in_kibibytes() {
        assert_eq!(kib_of("Name: x\nRss:      2048 kB\n", "Rss:"), Some(2048));
        assert_eq!(kib_of("Name: x\n", "Rss:"), None);
    }

    #[test]
    fn a_child_of_the_program_is_accounted_and_ends_with_it() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & while :; do :; done"]);
        let log = tempfile::NamedTempFile::new().unwrap();
        let program = Program::start(command, log.path().into()).unwrap();
        while tree(program.pid()).len() < 2 || program.cpu_ns().unwrap() < 5_000_000 {
            std::thread::yield_now();
        }
        let child = tree(program.pid())[1];
        assert!(program.rss_bytes().unwrap() > 100_000);
        drop(program);
        let gone = |pid: i32| {
            // Killed, and perhaps not yet collected by init.
            fs::read_to_string(format!("/proc/{pid}/stat"))
                .map_or(true, |stat| stat.rsplit_once(')').unwrap().1.trim().starts_with('Z'))
        };
        while !gone(child) {
            std::thread::yield_now();
        }
    }
}
