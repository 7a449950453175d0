//! Whether files have changed, without reading them.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Size, inode and time of change of files and of what is in folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamp(Vec<(PathBuf, Option<FileState>)>);

/// What tells one state of a file from another.
type FileState = (u64, u64, i64, i64);

impl Stamp {
    /// Looks at files and folders; one that cannot be looked at is part of the stamp too.
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Self {
        let mut found = Vec::new();
        for path in paths {
            note(path, &mut found);
            let Ok(entries) = std::fs::read_dir(path) else { continue };
            let mut inner: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
            inner.sort();
            for path in inner {
                note(&path, &mut found);
            }
        }
        Self(found)
    }
}

fn note(path: &Path, found: &mut Vec<(PathBuf, Option<FileState>)>) {
    // Through links: Kubernetes changes where they lead.
    let metadata = std::fs::metadata(path).ok();
    let stamp = metadata.map(|data| (data.len(), data.ino(), data.mtime(), data.mtime_nsec()));
    found.push((path.to_owned(), stamp));
}
