//! Bytes that the process has allocated, as its allocator counts them.

use anyhow::{Result, anyhow};
use tikv_jemalloc_ctl::{epoch, stats};

/// Allocated and not freed, by all threads, size classes included.
pub fn allocated() -> Result<usize> {
    let read = || {
        epoch::advance()?;
        stats::allocated::read()
    };
    read().map_err(|error| anyhow!("jemalloc has no statistics: {error}"))
}
