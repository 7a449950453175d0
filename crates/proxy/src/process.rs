//! What the operating system allows this process.

use serde::Serialize;

/// Limits and use, as Linux tells them; `null` elsewhere.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Process {
    /// File descriptors that it may have open.
    descriptors_max: Option<u64>,
    descriptors_open: Option<u64>,
}

impl Process {
    pub(crate) fn this() -> Self {
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        let open = std::fs::read_dir("/proc/self/fd").map(|folder| folder.count() as u64);
        Self {
            descriptors_max: line
                .and_then(|line| line.split_whitespace().next())
                .and_then(|most| most.parse().ok()),
            descriptors_open: open.ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_knows_its_descriptors() {
        let process = Process::this();
        assert!(process.descriptors_max.is_some_and(|most| most > 8));
        assert!(process.descriptors_open.is_some_and(|open| open > 2));
    }
}
