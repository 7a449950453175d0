use std::sync::{Arc, Mutex};

use super::*;

#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn logged(filter: &str, json: bool, log: impl FnOnce()) -> String {
    let page = Page::default();
    let sink = page.clone();
    let (subscriber, _) = subscriber(filter, json, move || sink.clone()).unwrap();
    tracing::subscriber::with_default(subscriber, log);
    let bytes = page.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

const HOSTILE: &str = "a\nb\r\x1b[31m\u{9b}c\u{202e}d";

#[test]
fn a_field_cannot_forge_a_line_or_reach_the_terminal() {
    for json in [false, true] {
        let page = logged("info", json, || {
            tracing::info!(shown = %HOSTILE, debugged = ?HOSTILE, text = HOSTILE, "{HOSTILE}");
        });
        assert_eq!(page.find('\n'), Some(page.len() - 1), "{page:?}");
        assert!(!page.trim_end().contains(escape::is_unsafe), "{page:?}");
        assert!(!json || serde_json::from_str::<serde_json::Value>(&page).is_ok(), "{page}");
    }
}

#[test]
fn a_json_event_has_time_level_and_fields() {
    let page = logged("info", true, || tracing::warn!(pool = "llama", "stale"));
    let event: serde_json::Value = serde_json::from_str(&page).unwrap();
    assert_eq!((&event["level"], &event["fields"]["pool"]), (&"WARN".into(), &"llama".into()));
    assert_eq!(event["timestamp"].as_str().unwrap().len(), "2026-09-18T07:05:03.042Z".len());
}

#[test]
fn the_filter_holds_back_what_it_says() {
    let page = logged("warn,loud=debug", false, || {
        tracing::info!("quiet");
        tracing::debug!(target: "loud", "heard");
    });
    assert!(page.contains("heard") && !page.contains("quiet"), "{page}");
}

#[test]
fn a_filter_that_cannot_be_read_is_an_error() {
    assert!(matches!(subscriber("=,=", false, io::sink), Err(LogError::Filter { .. })));
}

#[test]
fn the_filter_changes_while_the_process_runs() {
    for json in [false, true] {
        let page = Page::default();
        let sink = page.clone();
        let (subscriber, change) = subscriber("warn", json, move || sink.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            tracing::debug!("before");
            assert_eq!(change(Some(parse("debug").unwrap())), "debug");
            tracing::debug!("meanwhile");
            assert_eq!(change(Some(parse("warn").unwrap())), "warn");
            tracing::debug!("after");
        });
        let text = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains("meanwhile"), "{text}");
        assert!(!text.contains("before") && !text.contains("after"), "{text}");
    }
}
