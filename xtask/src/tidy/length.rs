//! Long source files are said, not refused: a file should hold one idea.

use anyhow::Result;

use super::{Findings, TextFile, has_extension};
use crate::workspace::Workspace;

const LINES_MAX: usize = 500;

pub(crate) fn check(_: &Workspace, files: &[TextFile]) -> Result<Findings> {
    let mut findings = Findings::default();
    for file in files.iter().filter(|file| has_extension(&file.path, "rs")) {
        let lines = file.text.lines().count();
        if lines > LINES_MAX {
            findings
                .warnings
                .push(format!("{}: {lines} lines (more than {LINES_MAX})", file.path.display()));
        }
    }
    Ok(findings)
}
