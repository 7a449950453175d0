//! The files of a recording: the newest under the given path, older ones with `.1`, `.2`, … behind.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// For the owner alone: a recording tells who was busy when.
const MODE: u32 = 0o600;

#[derive(Debug)]
pub(super) struct Files {
    path: PathBuf,
    rotate_bytes: u64,
    files_max: u32,
    newest: File,
    written: u64,
}

impl Files {
    /// Begins a new file. One that is there already is kept as `.1`, like one that is full.
    ///
    /// * `files_max`: files in all, at least 1; the oldest is deleted.
    pub(super) fn create(path: PathBuf, rotate_bytes: u64, files_max: u32) -> io::Result<Self> {
        make_way(&path, files_max)?;
        let newest = create(&path)?;
        Ok(Self { path, rotate_bytes, files_max, newest, written: 0 })
    }

    /// Whether these bytes belong into the next file. A file takes at least one write.
    pub(super) fn is_full_for(&self, bytes: usize) -> bool {
        self.written > 0 && self.written.saturating_add(bytes as u64) > self.rotate_bytes
    }

    /// Begins the next file. When it fails the newest stays.
    pub(super) fn rotate(&mut self) -> io::Result<()> {
        make_way(&self.path, self.files_max)?;
        self.newest = create(&self.path)?;
        self.written = 0;
        Ok(())
    }

    /// Appends all of it or nothing.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.newest.write_all(bytes) {
            // A full disk may have taken half a line. If that cannot be undone, so be it.
            let _ = self.newest.set_len(self.written);
            return Err(error);
        }
        self.written = self.written.saturating_add(bytes.len() as u64);
        Ok(())
    }
}

/// Exclusively: a link that someone put there is not followed.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create_new(true).mode(MODE).open(path)
}

/// Moves each file one number up, so that the path itself is free.
fn make_way(path: &Path, files_max: u32) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(found) if !found.is_file() => {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "there is something else than a file",
            ));
        }
        Ok(_) => {}
    }
    if files_max <= 1 {
        return fs::remove_file(path);
    }
    for number in (1..files_max - 1).rev() {
        match fs::rename(numbered(path, number), numbered(path, number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::rename(path, numbered(path, 1))
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{number}"));
    PathBuf::from(name)
}
