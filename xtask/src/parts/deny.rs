//! Dependencies: licences, bans and sources always; advisories where a copy of the database lies
//! beside the checkout, because it cannot be had from a package registry.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cache::Cache;
use crate::report::{Outcome, Tally};
use crate::run::{Show, must, run as run_command};
use crate::tools::cargo_deny;
use crate::workspace::Workspace;

/// Folder beside the checkout that holds `rustsec-DATE.tar.gz`.
const ADVISORIES: &str = "../shared/data/advisory-db";

/// Where cargo-deny looks: `db-path` of deny.toml, and the name it derives from `db-urls`.
const DATABASE: &str = "target/advisory-db/advisory-db-3157b0e258782691";

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let binary = cargo_deny::binary(workspace, &Cache::open()?)?;
    // Offline from here on; cargo-deny looks at dependencies of other systems too, which a build
    // has not fetched.
    must("cargo fetch", workspace.cargo().args(["fetch", "--locked"]))?;
    let mut outcome = Outcome::new(Tally::default());
    for check in ["licenses", "bans", "sources"] {
        outcome.tally += check_one(workspace, &binary, check)?;
    }
    let Some(archive) = newest_archive(&workspace.root.join(ADVISORIES)) else {
        outcome.tally += Tally::skip();
        return Ok(outcome.note(format!("advisories not checked: no database at {ADVISORIES}")));
    };
    lay_database(workspace, &archive)?;
    outcome.tally += check_one(workspace, &binary, "advisories")?;
    let name = archive.file_name().unwrap_or_default().display();
    Ok(outcome.note(format!("advisories as of {name}")))
}

fn check_one(workspace: &Workspace, binary: &Path, check: &str) -> Result<Tally> {
    let mut command = Command::new(binary);
    command.args([
        "--locked",
        "--offline",
        "check",
        "--hide-inclusion-graph",
        "--allow",
        "duplicate",
        check,
    ]);
    command.current_dir(&workspace.root);
    Ok(Tally::of(
        run_command(&format!("cargo deny check {check}"), &mut command, None, Show::All)?.success,
    ))
}

/// The archive whose name sorts last; names carry the date.
fn newest_archive(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    let archives = entries.flatten().map(|entry| entry.path());
    archives
        .filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(".tar.gz"))
        })
        .max()
}

/// Unpacks the archive as the git repository that cargo-deny expects, dated as the archive.
fn lay_database(workspace: &Workspace, archive: &Path) -> Result<()> {
    let database = workspace.root.join(DATABASE);
    if database.exists() {
        fs::remove_dir_all(&database).context("cannot remove the old advisory database")?;
    }
    fs::create_dir_all(&database).context("cannot create the advisory database")?;
    must("tar", Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(&database))?;
    let name = archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let date = name.trim_start_matches(|c: char| !c.is_ascii_digit()).trim_end_matches(".tar.gz");
    let when = format!("{date}T00:00:00Z");
    let steps: [&[&str]; 3] = [
        &["init", "--quiet"],
        &["add", "--all"],
        &[
            "-c",
            "user.name=xtask",
            "-c",
            "user.email=xtask@localhost",
            "commit",
            "--quiet",
            "-m",
            "As archived",
        ],
    ];
    for step in steps {
        let mut git = Command::new("git");
        git.args(step).current_dir(&database);
        git.env("GIT_AUTHOR_DATE", &when).env("GIT_COMMITTER_DATE", &when);
        must(&format!("git {}", step.join(" ")), &mut git)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_copy_of_the_database_is_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["rustsec-2026-01-02.tar.gz", "rustsec-2026-08-20.tar.gz", "rustsec-2027.txt"] {
            fs::write(folder.path().join(name), "").expect("written");
        }
        let newest = newest_archive(folder.path()).expect("there is one");
        assert!(newest.ends_with("rustsec-2026-08-20.tar.gz"));
        assert!(newest_archive(&folder.path().join("gone")).is_none());
    }
}
