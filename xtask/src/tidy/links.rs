//! Relative links in the documents must lead to a file, and their anchors to a heading.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

use anyhow::Result;

use super::{Findings, TextFile, has_extension, is_data};
use crate::workspace::Workspace;

pub(crate) fn check(workspace: &Workspace, files: &[TextFile]) -> Result<Findings> {
    let documents: HashMap<&Path, &TextFile> = files
        .iter()
        .filter(|file| has_extension(&file.path, "md") && !is_data(&file.path))
        .filter(|file| !is_fragment(&file.path))
        .map(|file| (file.path.as_path(), file))
        .collect();
    let mut findings = Findings::default();
    for file in documents.values() {
        for (line, target) in links(&file.text) {
            if let Some(problem) = problem(workspace, &documents, file, target) {
                findings
                    .errors
                    .push(format!("{}:{line}: `{target}`: {problem}", file.path.display()));
            }
        }
    }
    findings.errors.sort();
    Ok(findings)
}

/// Text that a generator puts into a document elsewhere, where its links are checked.
fn is_fragment(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "src")
}

fn problem(
    workspace: &Workspace,
    documents: &HashMap<&Path, &TextFile>,
    file: &TextFile,
    target: &str,
) -> Option<&'static str> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) =
        target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let linked = if path.is_empty() {
        file.path.clone()
    } else {
        let Some(linked) = resolve(file.path.parent().unwrap_or(Path::new("")), path) else {
            return Some("leads out of the repository");
        };
        if !workspace.root.join(&linked).exists() {
            return Some("no such file");
        }
        linked
    };
    let document = documents.get(linked.as_path())?;
    let anchor = anchor?;
    (!anchors(&document.text).contains(anchor)).then_some("no such heading")
}

/// `path` seen from `folder`, without `.` and `..`; none when it climbs over the root.
fn resolve(folder: &Path, path: &str) -> Option<PathBuf> {
    let mut resolved = PathBuf::new();
    for component in folder.join(path).components() {
        match component {
            Component::Normal(part) => resolved.push(part),
            Component::ParentDir => {
                if !resolved.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(resolved)
}

/// Targets of inline links and images outside code, with their line numbers from 1.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in prose_lines(text) {
        let mut rest = line;
        let mut in_code = false;
        while let Some(at) = rest.find(['`', ']']) {
            let is_tick = rest[at..].starts_with('`');
            rest = &rest[at + 1..];
            if is_tick {
                in_code = !in_code;
            } else if !in_code
                && let Some(target) = rest.strip_prefix('(')
                && let Some(end) = target.find(')')
            {
                let target_text = target[..end].split_whitespace().next().unwrap_or("");
                found.push((number, target_text.trim_matches(['<', '>'])));
                rest = &target[end..];
            }
        }
    }
    found
}

/// Anchors as code hosts make them: lower case, spaces to hyphens, other marks left out, a number
/// behind repeated ones.
fn anchors(text: &str) -> HashSet<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut anchors = HashSet::new();
    for (_, line) in prose_lines(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let slug: String = title
            .trim()
            .chars()
            .filter_map(|c| match c {
                ' ' => Some('-'),
                '-' | '_' => Some(c),
                _ if c.is_alphanumeric() => Some(c.to_ascii_lowercase()),
                _ => None,
            })
            .collect();
        let count = seen.entry(slug.clone()).or_insert(0);
        anchors.insert(if *count == 0 { slug } else { format!("{slug}-{count}") });
        *count += 1;
    }
    anchors
}

/// Lines outside fenced code, numbered from 1.
fn prose_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_fence = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
            return None;
        }
        (!in_fence).then_some((index + 1, line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(text: &str) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("here.md"), "").expect("written");
        let files = [
            TextFile { path: "docs/a.md".into(), text: text.to_owned() },
            TextFile { path: "here.md".into(), text: "# The `one` command, run\n".to_owned() },
        ];
        check(&Workspace { root: folder.path().to_path_buf() }, &files).expect("checked").errors
    }

    #[test]
    fn a_link_to_a_file_that_is_not_there_is_found_with_its_line() {
        assert_eq!(errors("one\n[x](../gone.md)"), ["docs/a.md:2: `../gone.md`: no such file"]);
        assert!(errors("[x](../here.md) and [y](https://example.org/z)").is_empty());
    }

    #[test]
    fn an_anchor_without_its_heading_is_found() {
        assert!(errors("[x](../here.md#the-one-command-run)").is_empty());
        assert_eq!(errors("[x](../here.md#two)").len(), 1);
        assert!(errors("# Own\n[x](#own)").is_empty());
    }

    #[test]
    fn code_is_not_searched_for_links() {
        assert!(errors("`[x](gone)`\n```\n[x](gone)\n```\n").is_empty());
    }

    #[test]
    fn a_fragment_is_checked_where_it_is_used() {
        assert!(is_fragment(Path::new("crates/config/src/reference/intro.md")));
        assert!(!is_fragment(Path::new("docs/configuration.md")));
    }

    #[test]
    fn a_link_may_not_leave_the_repository() {
        assert_eq!(
            errors("[x](../../etc)"),
            ["docs/a.md:1: `../../etc`: leads out of the repository"]
        );
    }
}
