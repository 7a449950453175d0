//! Where the figures were made, because they hold for nowhere else.

use std::fs;

use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct Machine {
    pub cores: usize,
    pub cpu: String,
    pub kernel: String,
    /// Runnable processes, mean of the last minute.
    pub load: String,
}

impl Machine {
    pub fn look() -> Self {
        let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = cpus.lines().find_map(|line| line.strip_prefix("model name"));
        let name = name.and_then(|line| line.split_once(':')).map_or("unknown", |(_, name)| name);
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            cpu: name.trim().to_owned(),
            kernel: kernel.trim().to_owned(),
            load: load(),
        }
    }
}

/// The load average of the last minute.
pub fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}
