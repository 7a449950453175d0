//! What must hold for any bytes at all. Shared by the property tests and the fuzz targets.

use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use wicketgate_openai::{
    Body, BodyErrorKind, EventKind, Limits, Route, SseReader, Usage, UsageReader, is_model_name,
    scan, scan_multipart,
};

/// Our reading of a body and serde_json's: what we accept it accepts, with the same fields; what we
/// call malformed it refuses.
pub(crate) fn body_is_read_as_serde_json_does(route: Route, bytes: &[u8]) {
    let value = serde_json::from_slice::<Map<String, Value>>(bytes);
    match scan(route, bytes, &Limits::default()) {
        Ok(body) => {
            // `IgnoredAny` allows half a surrogate pair, as we do outside the fields that we read.
            assert!(serde_json::from_slice::<IgnoredAny>(bytes).is_ok());
            assert!(std::str::from_utf8(bytes).is_ok());
            match value {
                Ok(fields) => fields_agree(route, bytes, &body, &fields),
                Err(error) => assert!(error.to_string().contains("hex escape"), "{error}"),
            }
        }
        Err(error) => {
            let malformed =
                matches!(error.kind, BodyErrorKind::InvalidJson | BodyErrorKind::InvalidEncoding);
            let key_too_long =
                value.as_ref().is_ok_and(|fields| fields.keys().any(|key| key.len() > 170));
            assert!(!malformed || value.is_err() || key_too_long, "{error}");
            assert!(error.offset <= bytes.len());
        }
    }
}

fn fields_agree(route: Route, bytes: &[u8], body: &Body, fields: &Map<String, Value>) {
    let field = |name: &str| fields.get(name).filter(|value| !value.is_null());
    let model =
        field("model").map(|model| model.as_str().expect("a model that we accept is a string"));
    assert_eq!(body.model.as_ref().map(|model| model.name.as_str()), model);
    if let Some(model) = &body.model {
        assert!(is_model_name(&model.name));
        assert_eq!(parsed(&bytes[model.literal.clone()]), Value::from(model.name.as_str()));
    }
    if !matches!(route, Route::Generate | Route::GenerateStream) {
        assert_eq!(Value::from(body.stream), *field("stream").unwrap_or(&Value::Bool(false)));
        let n = [field("n"), field("best_of")].into_iter().flatten().filter_map(Value::as_f64);
        let n = n.filter(|n| *n >= 0.0).reduce(f64::max);
        assert_eq!(body.n.map(|n| n as f64), n);
    }
    if route == Route::Messages {
        let wanted = ["max_completion_tokens", "max_output_tokens", "max_tokens", "max_new_tokens"]
            .iter()
            .filter_map(|name| field(name).and_then(Value::as_f64))
            .find(|tokens| *tokens >= 0.0);
        assert_eq!(
            body.tokens_max.map(|tokens| tokens as f64),
            wanted.map(|tokens| tokens.min(u64::MAX as f64))
        );
    }
    for (range, name) in [(&body.cache_salt, "cache_salt"), (&body.user, "user")] {
        let text = field(name).filter(|value| value.is_string());
        let read = range.clone().map(|range| parsed(&bytes[range.start - 1..range.end + 1]));
        assert_eq!(read.as_ref(), text);
    }
    if route == Route::ChatCompletions {
        let wanted = ["tools", "functions", "messages"];
        let wanted: Vec<_> = wanted.iter().filter_map(|name| field(name)).collect();
        let mut read: Vec<_> = body.prompt.pieces(bytes).collect();
        assert_eq!(read.len(), wanted.len());
        // Of two fields of one rank, the one that stands first comes first.
        if field("functions").is_some()
            && field("tools").is_some()
            && prompt_value(read[0], wanted[0]) != *wanted[0]
        {
            read.swap(0, 1);
        }
        for (piece, wanted) in read.into_iter().zip(wanted) {
            assert_eq!(prompt_value(piece, wanted), *wanted);
        }
    }
}

/// A prompt range with what stood around it put back.
fn prompt_value(piece: &[u8], like: &Value) -> Value {
    let (before, after) = match like {
        Value::Array(_) => ("[", "]"),
        Value::String(_) => ("\"", "\""),
        _ => ("", ""),
    };
    serde_json::from_slice(&[before.as_bytes(), piece, after.as_bytes()].concat())
        .unwrap_or(Value::Null)
}

fn parsed(json: &[u8]) -> Value {
    serde_json::from_slice(json).expect("a range that we return is JSON")
}

/// A form is never a reason to panic, and what is accepted lies within it.
pub(crate) fn form_is_read_without_panic(content_type: &str, bytes: &[u8]) {
    if let Ok(body) = scan_multipart(content_type, bytes, &Limits::default()) {
        if let Some(model) = &body.model {
            assert_eq!(&bytes[model.literal.clone()], model.name.as_bytes());
        }
        assert!(body.prompt.ranges().iter().all(|range| range.end <= bytes.len()));
    }
}

/// All that an event stream said.
#[derive(Debug, PartialEq)]
struct Seen {
    events: u64,
    content_events: u64,
    first_event: Option<EventKind>,
    usage: Option<Usage>,
    done: bool,
    error: bool,
    at_event_boundary: bool,
}

fn seen(pieces: &[&[u8]]) -> (Seen, Option<Usage>) {
    let (mut reader, mut usage_reader) = (SseReader::new(), UsageReader::new());
    for piece in pieces {
        reader.push(piece);
        usage_reader.push(piece);
    }
    reader.finish();
    let seen = Seen {
        events: reader.events(),
        content_events: reader.content_events(),
        first_event: reader.first_event(),
        usage: reader.usage(),
        done: reader.done(),
        error: reader.error(),
        at_event_boundary: reader.at_event_boundary(),
    };
    (seen, usage_reader.usage())
}

/// However an answer is split, it says the same. `cuts`: lengths of pieces, taken in turn.
pub(crate) fn answer_is_read_the_same_for_any_split(bytes: &[u8], cuts: &[u8]) {
    let whole = seen(&[bytes]);
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(seen(&single), whole);
    let mut pieces = Vec::new();
    let mut rest = bytes;
    for cut in cuts.iter().cycle().take(if cuts.is_empty() { 0 } else { bytes.len() }) {
        let (piece, after) = rest.split_at(usize::from(*cut).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    assert_eq!(seen(&pieces), whole);
}
