//! Room on the disk that cargo builds to: a full disk fails a run late, and in odd words.

use std::path::Path;

/// What a whole run takes on a fresh clone, without what it installs: 3 GB without incremental
/// compilation and debug information, as CI runs it, else up to 6.
const WHOLE_RUN: u64 = 6_000_000_000;

/// Bytes that are free where `folder` is; of its parent if it does not exist yet.
pub(crate) fn free(folder: &Path) -> Option<u64> {
    let existing = folder.ancestors().find(|folder| folder.exists())?;
    let stat = rustix::fs::statvfs(existing).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// What to say before a run that may not fit; `None` once the product was built, since then most
/// of the room is taken already.
pub(crate) fn warning(target: &Path) -> Option<String> {
    if target.join("debug/wicketgate").exists() {
        return None;
    }
    let free = free(target)?;
    (free < WHOLE_RUN).then(|| {
        format!(
            "{:.1} GB are free for {}, a first run may take {:.0}: with CARGO_INCREMENTAL=0 and \
             CARGO_PROFILE_DEV_DEBUG=0 it takes half of that, CARGO_TARGET_DIR puts it elsewhere",
            gigabytes(free),
            target.display(),
            gigabytes(WHOLE_RUN)
        )
    })
}

#[allow(clippy::cast_precision_loss, reason = "for people, to one digit")]
pub(crate) fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_for_a_folder_that_is_not_there_yet_is_that_of_its_parent() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(free(folder).is_some_and(|bytes| bytes > 0));
        assert!(free(&folder.join("not/there")).is_some_and(|bytes| bytes > 0));
    }
}
