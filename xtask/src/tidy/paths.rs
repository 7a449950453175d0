//! Nothing in the repository may name one machine: a path under its folders, a host it uses.

use std::path::Path;

use anyhow::Result;

use super::{Findings, TextFile, is_data};
use crate::workspace::Workspace;

/// Starts of absolute paths that exist on some machine only. Written apart, so that this file
/// does not hold what it looks for.
const MACHINE_PATHS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/tm", "p/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

pub(crate) fn check(_: &Workspace, files: &[TextFile]) -> Result<Findings> {
    let mut findings = Findings::default();
    for file in files.iter().filter(|file| !is_data(&file.path) && !is_lock(&file.path)) {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(path) = machine_path(line) {
                findings.errors.push(format!("{}:{}: `{path}`", file.path.display(), number + 1));
            }
        }
    }
    Ok(findings)
}

/// npm writes the registry's address beside every package unless told not to.
pub(crate) fn check_locks(_: &Workspace, files: &[TextFile]) -> Result<Findings> {
    let mut findings = Findings::default();
    for file in files.iter().filter(|file| file.path.ends_with("package-lock.json")) {
        for (number, line) in file.text.lines().enumerate() {
            if line.trim_start().starts_with("\"resolved\"") {
                let place = format!("{}:{}", file.path.display(), number + 1);
                findings.errors.push(format!(
                    "{place}: `resolved`; write the lock file with `npm install --omit-lockfile-registry-resolved`"
                ));
            }
        }
    }
    Ok(findings)
}

fn is_lock(path: &Path) -> bool {
    path.ends_with("Cargo.lock") || path.ends_with("package-lock.json")
}

/// The first path of a machine in `line`, to its end.
fn machine_path(line: &str) -> Option<&str> {
    for start in MACHINE_PATHS {
        let mut from = 0;
        while let Some(found) = line[from..].find(start) {
            let at = from + found;
            // Inside a longer path or an address it is another folder: `/srv/…`, `host/home/…`.
            let inside = line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-~}".contains(c));
            if !inside {
                let end = line[at..]
                    .find([' ', '`', '"', '\'', ')', ','])
                    .map_or(line.len(), |end| at + end);
                return Some(&line[at..end]);
            }
            from = at + start.len();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_one_machine_is_found_and_a_path_below_another_is_not() {
        let [work, temporary, ..] = MACHINE_PATHS;
        assert_eq!(
            machine_path(&format!("see `{work}main/x` there")),
            Some(format!("{work}main/x").as_str())
        );
        assert_eq!(
            machine_path(&format!("cat {temporary}log")),
            Some(format!("{temporary}log").as_str())
        );
        assert_eq!(machine_path(&format!("the folder target{temporary}log")), None);
        assert_eq!(machine_path("plain text"), None);
    }

    #[test]
    fn a_lock_file_with_addresses_is_refused() {
        let workspace = Workspace { root: "".into() };
        let file =
            |text: &str| TextFile { path: "a/package-lock.json".into(), text: text.to_owned() };
        let with = file("{\n  \"resolved\": \"https://example.org/x.tgz\"\n}");
        assert_eq!(check_locks(&workspace, &[with]).expect("read").errors.len(), 1);
        let without = file("{\n  \"integrity\": \"sha512-x\"\n}");
        assert!(check_locks(&workspace, &[without]).expect("read").errors.is_empty());
    }
}
