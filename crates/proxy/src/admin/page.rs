//! The live page: its files, which are part of the binary, and what a browser may do with them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use crate::answer::Answer;

/// Nothing but our own files, and no text that becomes script or style: a model's name that is markup
/// stays a name.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! sources {
    ($($file:literal,)+) => { [$(($file, include_str!(concat!("../../page/", $file))),)+] };
}

/// Name and text, in the order of the cascade.
static STYLES: [(&str, &str); 3] = sources!["base.css", "fleet.css", "panels.css",];

/// Name and text; who imports stands behind what it imports.
static MODULES: [(&str, &str); 11] = sources![
    "dom.js",
    "feed.js",
    "bands.js",
    "charts.js",
    "decisions.js",
    "receipt.js",
    "endpoint.js",
    "fleet.js",
    "members.js",
    "tenants.js",
    "main.js",
];

struct File {
    path: &'static str,
    kind: &'static str,
    content: String,
}

/// What is served. Styles and modules are one file each: a browser asks for six at a time at most, and the
/// first view waits for the last.
static FILES: LazyLock<[File; 4]> = LazyLock::new(|| {
    let file = |path, kind, content| File { path, kind, content };
    [
        file("/", HTML, include_str!("../../page/index.html").to_owned()),
        file("/page/icon.svg", SVG, include_str!("../../page/icon.svg").to_owned()),
        file("/page/page.css", CSS, STYLES.map(|(_, text)| text).concat()),
        file("/page/page.js", SCRIPT, MODULES.map(|(_, text)| joined(text)).concat()),
    ]
});

/// A module's text as part of one module: what it imports stands before it.
fn joined(module: &str) -> String {
    let lines = module.lines().filter(|line| !line.starts_with("import "));
    lines.map(|line| format!("{}\n", line.strip_prefix("export ").unwrap_or(line))).collect()
}

/// Names all files together: they change together, with the binary.
static ETAG: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = DefaultHasher::new();
    for file in FILES.iter() {
        file.content.hash(&mut hasher);
    }
    format!("\"{:016x}\"", hasher.finish())
});

/// A file of the page.
///
/// * `known`: the `If-None-Match` of who asks.
pub(super) fn file(path: &str, known: Option<&str>) -> Option<Answer> {
    let file = FILES.iter().find(|file| file.path == path)?;
    let mut answer = if known == Some(ETAG.as_str()) {
        Answer::new(304, file.kind, "")
    } else {
        Answer::new(200, file.kind, file.content.as_bytes())
    };
    answer.field("etag", &ETAG);
    answer.field("cache-control", "no-cache");
    answer.field("content-security-policy", POLICY);
    answer.field("cross-origin-opener-policy", "same-origin");
    answer.field("x-frame-options", "DENY");
    answer.field("referrer-policy", "no-referrer");
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &str) -> &'static str {
        &FILES.iter().find(|file| file.path == path).expect("a file of the page").content
    }

    #[test]
    fn the_page_names_no_file_that_is_not_there_and_nothing_from_elsewhere() {
        let html = text("/");
        for attribute in ["src=\"", "href=\""] {
            for named in html.split(attribute).skip(1) {
                let named = named.split('"').next().expect("the attribute ends");
                let is_ours = FILES.iter().any(|file| file.path == named);
                assert!(named.starts_with('#') || named == "/debug/live" || is_ours, "{named}");
            }
        }
        assert!(!text("/page/page.css").contains("@import"));
    }

    #[test]
    fn modules_that_are_one_file_find_what_they_import_and_share_no_name() {
        let mut names = std::collections::HashSet::new();
        let mut before = Vec::new();
        for (file, text) in &MODULES {
            for line in text.lines() {
                if line.starts_with("import ") {
                    // On one line, and under the names that they have: both go when files are joined.
                    let from = line.split('"').nth(1).expect("a module in quotes");
                    assert!(before.contains(&from.trim_start_matches("./")), "{file}: {line}");
                    assert!(line.ends_with(';') && !line.contains(" as "), "{file}: {line}");
                }
                let line = line.strip_prefix("export ").unwrap_or(line);
                let line = line.strip_prefix("async ").unwrap_or(line);
                let declared = ["const ", "let ", "class ", "function "];
                let declared = declared.iter().find_map(|word| line.strip_prefix(word));
                if let Some(declared) = declared {
                    let of_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
                    let name = declared.split(|c| !of_name(c)).next().unwrap_or("");
                    assert!(!name.is_empty(), "{file}: {line}");
                    assert!(names.insert(name), "{file}: `{name}` is declared elsewhere too");
                }
            }
            before.push(*file);
        }
        let script = text("/page/page.js");
        assert!(
            !script.lines().any(|line| line.starts_with("import") || line.starts_with("export"))
        );
    }

    #[test]
    fn no_text_becomes_markup_style_or_script() {
        for file in FILES.iter() {
            for sink in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                " style=\"",
                " onclick",
            ] {
                assert!(!file.content.contains(sink), "{}: {sink}", file.path);
            }
        }
    }

    #[test]
    fn whoever_has_the_files_already_is_sent_none() {
        assert_eq!(file("/", None).map(|answer| answer.status), Some(200));
        assert_eq!(file("/", Some(&ETAG)).map(|answer| answer.status), Some(304));
        assert!(file("/page/../admin.rs", None).is_none());
    }
}
