//! The reference page of the document.

use super::schema::DOCUMENT;
use crate::reference::chapter;

/// The page `docs/global-config.md`. To bring it up to date: `cargo xtask docs`.
pub fn global_markdown() -> String {
    let mut page = include_str!("page/intro.md").to_owned();
    chapter(&mut page, "The document", "", &DOCUMENT);
    page
}
