//! Checks of our own that need no compilation: what a reviewer would otherwise have to look for.

mod layers;
mod length;
mod links;
mod paths;

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::report::{Outcome, Tally};
use crate::workspace::Workspace;

/// What one check found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Each fails the check: `file:line: what`.
    pub errors: Vec<String>,
    /// Each is only said.
    pub warnings: Vec<String>,
}

/// A text file of the repository.
#[derive(Debug)]
pub(crate) struct TextFile {
    /// Relative to the root.
    pub path: PathBuf,
    pub text: String,
}

type Check = fn(&Workspace, &[TextFile]) -> Result<Findings>;

/// Name as it is printed, and the check.
const CHECKS: [(&str, Check); 5] = [
    ("crates depend only up the layers", layers::check),
    ("no paths or hosts of one machine", paths::check),
    ("lock files name no registry host", paths::check_locks),
    ("links in documents resolve", links::check),
    ("files stay short", length::check),
];

pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let files = text_files(workspace)?;
    let mut outcome = Outcome::new(Tally::default());
    for (name, check) in CHECKS {
        let findings = check(workspace, &files)?;
        let passed = findings.errors.is_empty();
        println!("    {}  {name}", if passed { "ok    " } else { "FAILED" });
        for error in &findings.errors {
            println!("            {error}");
        }
        for warning in &findings.warnings {
            println!("            warning: {warning}");
        }
        outcome.tally += Tally::of(passed);
    }
    Ok(outcome)
}

fn text_files(workspace: &Workspace) -> Result<Vec<TextFile>> {
    let mut files = Vec::new();
    for path in workspace.files()? {
        // Binary files, and files that went away since git listed them, are no text.
        if let Ok(text) = std::fs::read_to_string(workspace.root.join(&path)) {
            files.push(TextFile { path, text });
        }
    }
    Ok(files)
}

/// Data that others made, kept as it came.
fn is_data(path: &Path) -> bool {
    path.components()
        .any(|part| matches!(part.as_os_str().to_str(), Some("testdata" | "data" | "seeds")))
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension == wanted)
}
