//! Properties that hold for any input; the fuzz targets search the same ones for longer.

#[path = "common/agreement.rs"]
mod agreement;

use proptest::prelude::*;
use serde_json::{Value, json};
use wicketgate_openai::{Limits, Route, scan};

fn route() -> impl Strategy<Value = Route> {
    prop::sample::select(Route::ALL.to_vec())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..200_u32).prop_map(Value::from),
        prop::collection::vec(0..200_000_u32, 0..5).prop_map(Value::from),
        any::<f64>()
            .prop_filter("JSON has finite numbers only", |n| n.is_finite())
            .prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        "[a-z/\\-.]{1,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..4)
                .prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    let known = [
        "model",
        "stream",
        "stream_options",
        "include_usage",
        "max_tokens",
        "max_completion_tokens",
        "n",
        "best_of",
        "cache_salt",
        "user",
        "messages",
        "tools",
        "functions",
        "prompt",
        "input",
        "inputs",
        "text",
        "parameters",
        "sampling_params",
        "max_new_tokens",
        "system",
        "Model",
    ];
    prop_oneof![4 => prop::sample::select(known.to_vec()).prop_map(String::from), 1 => ".{0,6}"]
}

/// A field with a value of the right type, so that bodies are accepted often enough.
fn good_field() -> impl Strategy<Value = (String, Value)> {
    let words = |names: &'static [&'static str]| prop::sample::select(names.to_vec());
    let count = prop_oneof![
        (0..100_u32).prop_map(Value::from),
        Just(Value::Null),
        Just(json!(-1)),
        Just(json!(16.0)),
    ];
    let flag = prop_oneof![any::<bool>().prop_map(Value::from), Just(Value::Null)];
    prop_oneof![
        "[ -~]{1,8}"
            .prop_map(|name| ("model".to_owned(), Value::from(name.trim().to_owned() + "x"))),
        (words(&["max_tokens", "max_completion_tokens", "max_new_tokens", "n", "best_of"]), count)
            .prop_map(|(key, count)| (key.to_owned(), count)),
        flag.clone().prop_map(|flag| ("stream".to_owned(), flag)),
        flag.prop_map(|flag| ("stream_options".to_owned(), json!({"include_usage": flag}))),
        (words(&["user", "cache_salt"]), ".{0,8}")
            .prop_map(|(key, text)| (key.to_owned(), Value::from(text))),
        (
            words(&["messages", "tools", "functions", "prompt", "input", "text", "extra", "seed"]),
            value()
        )
            .prop_map(|(key, value)| (key.to_owned(), value)),
    ]
}

/// JSON text as somebody might write it: fields in any order and number, escapes, white space.
fn text() -> impl Strategy<Value = String> {
    let field = prop_oneof![12 => good_field(), 1 => (key(), value())];
    let field = (field, any::<bool>(), prop::sample::select(vec!["", " ", "\n\t", "\r\n  "]));
    prop::collection::vec(field, 0..6).prop_map(|fields| {
        let fields: Vec<String> = fields
            .into_iter()
            .map(|((key, value), escape, space)| {
                let key = match key.chars().next() {
                    Some(first) if escape && u32::from(first) < 0x10000 => {
                        let rest = Value::from(&key[first.len_utf8()..]).to_string();
                        format!("\"\\u{:04x}{}", u32::from(first), &rest[1..])
                    }
                    _ => Value::from(key).to_string(),
                };
                format!("{space}{key}{space}:{space}{value}{space}")
            })
            .collect();
        format!("{{{}}}", fields.join(","))
    })
}

/// `text` with a few bytes replaced, removed or inserted.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        prop::sample::select(b"\"\\{}[]:,0-9.eE+u tfn\n\x00\xff".to_vec()),
        any::<u8>()
    ];
    let edits = prop::collection::vec((any::<prop::sample::Index>(), byte, 0..3_u8), 0..4);
    (text(), edits).prop_map(|(text, edits)| {
        let mut bytes = text.into_bytes();
        for (at, byte, edit) in edits {
            let at = at.index(bytes.len().max(1));
            match edit {
                0 if at < bytes.len() => bytes[at] = byte,
                1 if at < bytes.len() => drop(bytes.remove(at)),
                _ => bytes.insert(at.min(bytes.len()), byte),
            }
        }
        bytes
    })
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "data: ",
        "data:",
        "data",
        "event: ",
        "event:error",
        ": ping",
        "id: 1",
        "\n",
        "\n\n",
        "\r",
        "\r\n",
        "\r\n\r\n",
        " ",
        "[DONE]",
        "\u{feff}",
        "\"",
        "\\",
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "null",
        "-1",
        "12",
        "1.5",
        "\"usage\":{",
        "\"prompt_tokens\":",
        "\"completion_tokens\":",
        "\"prompt_tokens_details\":{",
        "\"cached_tokens\":",
        "\"choices\":[{\"delta\":{",
        "\"content\":\"",
        "\"text\":\"x\"",
        "\"type\":\"",
        "message_stop\"",
        "response.completed\"",
        "\"response\":{",
        "\"message\":{",
        "\"error\":{",
        "\"token\":{",
        "\"generated_text\":\"",
        "\"details\":{\"generated_tokens\":3}",
        "\"meta_info\":{",
        "é",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}\r\n\r\n",
    ]);
    let bytes = prop_oneof![
        9 => piece.prop_map(|piece| piece.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ];
    prop::collection::vec(bytes, 0..40).prop_map(|pieces| pieces.concat())
}

#[derive(Clone, Copy, Debug)]
enum Style {
    JavaScript,
    Python,
    Indented,
}

/// A chat as a client library would serialise it.
fn serialised(turns: &[Value], style: Style) -> String {
    let body = json!({"model": "m", "messages": turns, "stream": true});
    match style {
        Style::JavaScript => body.to_string(),
        Style::Indented => serde_json::to_string_pretty(&body).expect("a value always serialises"),
        Style::Python => {
            let turns: Vec<String> =
                turns.iter().map(|turn| turn.to_string().replace(':', ": ")).collect();
            format!(r#"{{"model": "m", "messages": [{}], "stream": true}}"#, turns.join(", "))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_body_is_read_as_serde_json_reads_it(route in route(), text in text()) {
        agreement::body_is_read_as_serde_json_does(route, text.as_bytes());
    }

    #[test]
    fn a_damaged_body_is_read_as_serde_json_reads_it(route in route(), body in damaged()) {
        agreement::body_is_read_as_serde_json_does(route, &body);
    }

    #[test]
    fn a_truncated_body_is_never_accepted(text in text(), at in any::<prop::sample::Index>()) {
        let cut = &text.as_bytes()[..at.index(text.len())];
        prop_assert!(scan(Route::ChatCompletions, cut, &Limits::default()).is_err());
    }

    #[test]
    fn an_earlier_turn_of_a_chat_is_a_byte_prefix_of_a_later_one(
        turns in prop::collection::vec(("user|assistant", ".{0,40}"), 1..8),
        earlier in any::<prop::sample::Index>(),
        style in prop::sample::select(vec![Style::JavaScript, Style::Python, Style::Indented]),
    ) {
        let turns: Vec<Value> =
            turns.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect();
        let read = |turns: &[Value]| {
            let text = serialised(turns, style);
            let body = scan(Route::ChatCompletions, text.as_bytes(), &Limits::default()).unwrap();
            text[body.prompt.ranges()[0].clone()].to_owned()
        };
        let earlier = read(&turns[..=earlier.index(turns.len())]);
        let later = read(&turns);
        prop_assert!(later.starts_with(&earlier), "{later:?} does not begin with {earlier:?}");
    }

    #[test]
    fn an_answer_is_read_the_same_for_any_split(stream in stream(), cuts in prop::collection::vec(0..40_u8, 0..6)) {
        agreement::answer_is_read_the_same_for_any_split(&stream, &cuts);
    }

    #[test]
    fn no_form_makes_us_panic(bytes in prop::collection::vec(
        prop::sample::select(vec![
            "--b", "\r\n", "\r\n\r\n", "--", "\n", "Content-Disposition: form-data; ", "name=\"model\"", "name=model",
            "; filename=\"x\"", "\"", "\\", ";", "=", "whisper", "é", ": ", "\r\n--b\r\n", "\r\n--b--",
        ]),
        0..20,
    )) {
        agreement::form_is_read_without_panic("multipart/form-data; boundary=b", bytes.concat().as_bytes());
        agreement::form_is_read_without_panic(&bytes.concat(), b"--b--");
    }
}
