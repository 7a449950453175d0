//! What the tests install, kept by version in the user's cache folder.
//!
//! `$XDG_CACHE_HOME/wicketgate` (default `~/.cache/wicketgate`) outlives a checkout, so a second
//! one finds everything. Things are installed in place, because virtual environments hold their
//! own path and cannot be moved; a marker written last tells a whole one from an interrupted one.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::clock::Stopwatch;

/// Written when an installation is whole.
const MARKER: &str = ".done";

/// The cache folder, held by this process alone.
#[derive(Debug)]
pub(crate) struct Cache {
    root: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
}

impl Cache {
    /// Opens the user's cache folder; waits for another run that installs into it.
    pub(crate) fn open() -> Result<Self> {
        let base = match std::env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
            Some(folder) => PathBuf::from(folder),
            None => {
                PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?).join(".cache")
            }
        };
        Self::at(base.join("wicketgate"))
    }

    fn at(root: PathBuf) -> Result<Self> {
        fs::create_dir_all(&root).with_context(|| format!("cannot create {}", root.display()))?;
        let path = root.join(".lock");
        let lock =
            File::create(&path).with_context(|| format!("cannot open {}", path.display()))?;
        if lock.try_lock().is_err() {
            println!("    another run holds {}; waiting for it", root.display());
            lock.lock().with_context(|| format!("cannot lock {}", path.display()))?;
        }
        Ok(Self { root, _lock: lock })
    }

    /// The folder `name`, whole: `install` fills it unless an earlier run did.
    ///
    /// `name` holds the version, so that another version is another folder. What an interrupted
    /// run left is removed first.
    pub(crate) fn entry(
        &self,
        name: &str,
        install: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let folder = self.root.join(name);
        if folder.join(MARKER).is_file() {
            return Ok(folder);
        }
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot remove the unfinished {}", folder.display()))?;
        }
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        println!("    installing {name} into {}", self.root.display());
        let stopwatch = Stopwatch::start();
        install(&folder).with_context(|| format!("cannot install {name}"))?;
        File::create(folder.join(MARKER))
            .and_then(|file| file.sync_all())
            .context("cannot write the marker")?;
        println!("    installed {name} in {:.0} s", stopwatch.elapsed().as_secs_f64());
        Ok(folder)
    }
}

/// A short name for the content of files that pin versions: FNV-1a, 64 bits, in hexadecimal.
pub(crate) fn fingerprint<'a>(contents: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for content in contents {
        for byte in content.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(folder.path().join("cache")).expect("a cache");
        (folder, cache)
    }

    #[test]
    fn what_is_installed_once_is_found_the_next_time() {
        let (_folder, cache) = cache();
        let first = cache
            .entry("tool-1", |folder| Ok(fs::write(folder.join("bin"), "x")?))
            .expect("installed");
        let second = cache.entry("tool-1", |_| anyhow::bail!("asked twice")).expect("found");
        assert_eq!(first, second);
        assert!(second.join("bin").is_file());
    }

    #[test]
    fn an_interrupted_installation_is_not_taken_for_a_whole_one() {
        let (_folder, cache) = cache();
        let interrupted = cache.entry("tool-1", |folder| {
            fs::write(folder.join("half"), "x")?;
            anyhow::bail!("interrupted")
        });
        assert!(interrupted.is_err());
        let folder = cache.entry("tool-1", |_| Ok(())).expect("installed anew");
        assert!(!folder.join("half").exists());
    }

    #[test]
    fn the_fingerprint_tells_where_one_file_ends() {
        assert_ne!(fingerprint(["ab", "c"]), fingerprint(["a", "bc"]));
        assert_eq!(fingerprint(["a"]), fingerprint(["a"]));
    }
}
