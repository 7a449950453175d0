//! Sets up `tracing` to write to standard error, as text for people or as JSON for machines.
//!
//! Whatever a field holds, an event stays one line and sends nothing to a terminal but letters.

use std::io::{self, Write};
use std::sync::OnceLock;

use tracing::Subscriber;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::{EnvFilter, reload};

use crate::{clock, escape};

/// Why the log could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("`{filter}` is no log filter: write a level (info) or targets (info,proxy=debug)")]
    Filter {
        filter: String,
        #[source]
        source: tracing_subscriber::filter::ParseError,
    },
    #[error("the log is set up already")]
    Twice,
}

type Handle = Box<dyn Fn(Option<EnvFilter>) -> String + Send + Sync>;

/// Changes what is logged, or only tells it. Set by [`init`].
static FILTER: OnceLock<Handle> = OnceLock::new();

/// Sets the log of this process up.
///
/// * `filter`: a level (`info`) or directives (`info,wicketgate_proxy=debug`).
///
/// # Errors
/// When `filter` cannot be read, or a log is set up already.
pub fn init(filter: &str, json: bool) -> Result<(), LogError> {
    let (subscriber, handle) = subscriber(filter, json, io::stderr)?;
    tracing::subscriber::set_global_default(subscriber).map_err(|_| LogError::Twice)?;
    FILTER.set(handle).map_err(|_| LogError::Twice)
}

/// What is logged now, as [`init`] takes it; empty before that.
pub fn filter() -> String {
    FILTER.get().map_or_else(String::new, |handle| handle(None))
}

/// Logs by another filter from now on; gives it back as it was understood.
///
/// # Errors
/// When `filter` cannot be read; then the former stays.
pub fn set_filter(filter: &str) -> Result<String, LogError> {
    let parsed = parse(filter)?;
    Ok(FILTER.get().map_or_else(String::new, |handle| handle(Some(parsed))))
}

fn parse(filter: &str) -> Result<EnvFilter, LogError> {
    let error = |source| LogError::Filter { filter: filter.to_owned(), source };
    EnvFilter::builder().parse(filter).map_err(error)
}

fn subscriber<W>(
    filter: &str,
    json: bool,
    sink: W,
) -> Result<(Box<dyn Subscriber + Send + Sync>, Handle), LogError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let builder = tracing_subscriber::fmt()
        .with_env_filter(parse(filter)?)
        .with_timer(WallTime)
        .with_ansi(false)
        // Told on standard error, which may be what cannot be written: then it would panic.
        .log_internal_errors(false)
        .with_writer(EscapingWriter(sink));
    Ok(if json {
        let builder = builder.json().with_filter_reloading();
        let handle = changes(builder.reload_handle());
        (Box::new(builder.finish()), handle)
    } else {
        let builder = builder.with_filter_reloading();
        let handle = changes(builder.reload_handle());
        (Box::new(builder.finish()), handle)
    })
}

fn changes<S: 'static>(handle: reload::Handle<EnvFilter, S>) -> Handle {
    Box::new(move |filter| {
        if let Some(filter) = filter {
            // Fails only when the subscriber is gone, and with it everything that is logged.
            let _ = handle.reload(filter);
        }
        handle.with_current(ToString::to_string).unwrap_or_default()
    })
}

struct WallTime;

impl FormatTime for WallTime {
    fn format_time(&self, w: &mut Writer<'_>) -> std::fmt::Result {
        w.write_str(&clock::rfc3339(clock::wall()))
    }
}

/// Escapes on the way out. The formatter writes one event per call, ended by a line end; any other
/// control character in it came from a field.
struct EscapingWriter<W>(W);

struct Escaping<W>(W);

impl<'w, W: MakeWriter<'w>> MakeWriter<'w> for EscapingWriter<W> {
    type Writer = Escaping<W::Writer>;

    fn make_writer(&'w self) -> Self::Writer {
        Escaping(self.0.make_writer())
    }
}

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.write_all(event).map(|()| event.len())
    }

    fn write_all(&mut self, event: &[u8]) -> io::Result<()> {
        let text = String::from_utf8_lossy(event);
        let line = text.strip_suffix('\n').unwrap_or(&text);
        if !line.contains(escape::is_unsafe) {
            return self.0.write_all(event);
        }
        let mut escaped = Vec::with_capacity(event.len() + 32);
        for c in line.chars() {
            if escape::is_unsafe(c) {
                escape::push_escaped(c, &mut escaped);
            } else {
                escaped.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        escaped.push(b'\n');
        self.0.write_all(&escaped)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests;
