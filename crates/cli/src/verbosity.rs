//! SIGUSR1: log one level more, from `info` to `debug` to `trace`. SIGUSR2: as at the start.

use telemetry::logging;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Caught from the moment this exists; their default action is to end the process.
pub(crate) struct Signals {
    more: Signal,
    reset: Signal,
}

impl Signals {
    pub(crate) fn catch() -> std::io::Result<Self> {
        Ok(Self {
            more: signal(SignalKind::user_defined1())?,
            reset: signal(SignalKind::user_defined2())?,
        })
    }
}

/// Changes what is logged at each signal. Never ends.
pub(crate) async fn on_signal(mut signals: Signals) {
    let start = logging::filter();
    loop {
        let filter = tokio::select! {
            _ = signals.more.recv() => more_than(&logging::filter()),
            _ = signals.reset.recv() => start.clone(),
        };
        match logging::set_filter(&filter) {
            Ok(filter) => tracing::warn!(%filter, "what is logged was changed by a signal"),
            Err(error) => tracing::error!(%error, "what is logged could not be changed"),
        }
    }
}

/// The filter with its general level one step up; levels of single targets stay.
fn more_than(filter: &str) -> String {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let level = |part: &str| LEVELS.iter().position(|level| part.eq_ignore_ascii_case(level));
    let parts: Vec<&str> = filter.split(',').filter(|part| !part.is_empty()).collect();
    // Of several general levels the last one holds.
    let now = parts.iter().rev().find_map(|part| level(part)).unwrap_or(0);
    let more = LEVELS[(now + 1).min(LEVELS.len() - 1)];
    let kept = parts.into_iter().filter(|part| level(part).is_none());
    kept.chain([more]).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::more_than;

    #[test]
    fn one_level_more_keeps_what_is_said_of_single_targets() {
        assert_eq!(more_than("info"), "debug");
        assert_eq!(more_than("hyper=off,warn"), "hyper=off,info");
        assert_eq!(more_than("trace"), "trace");
        assert_eq!(more_than("wicketgate=debug"), "wicketgate=debug,error");
    }
}
