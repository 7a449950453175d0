//! What is logged, told and changed while the process runs.

use telemetry::logging;

use crate::answer::Answer;
use crate::head::RequestHead;

/// Longest filter.
pub(super) const FILTER_BYTES_MAX: usize = 4096;

/// Browsers write at least one of these into every `PUT` of a page, whoever's page it is. Nobody else
/// does, so a page that somebody was lured to cannot change a thing here, not even under a name of its
/// own that leads to this address.
const OF_BROWSERS: [&str; 3] = ["origin", "sec-fetch-site", "sec-fetch-mode"];

pub(super) fn answer() -> Answer {
    Answer::new(200, "text/plain", format!("{}\n", logging::filter()))
}

pub(super) fn change(head: &RequestHead, body: &[u8]) -> Answer {
    if OF_BROWSERS.iter().any(|name| head.fields.has(name)) {
        return Answer::new(403, "text/plain", "not from a browser: use curl -X PUT -d debug\n");
    }
    let text = std::str::from_utf8(body).unwrap_or_default().trim();
    if text.is_empty() {
        return Answer::new(
            400,
            "text/plain",
            "the body is the filter: a level (debug), or targets (info,wicketgate_proxy=debug)\n",
        );
    }
    match logging::set_filter(text) {
        Ok(filter) => {
            tracing::warn!(%filter, "what is logged was changed");
            Answer::new(200, "text/plain", format!("{filter}\n"))
        }
        Err(error) => Answer::new(400, "text/plain", format!("{error}\n")),
    }
}
