//! What is refused, why, and what the error says.

use super::*;

fn refusal(text: &str) -> BodyError {
    chat(text).err().unwrap_or_else(|| panic!("{text} was accepted"))
}

#[test]
fn what_is_not_exactly_one_json_object_is_refused() {
    use BodyErrorKind::InvalidJson;
    for text in [
        "",
        " ",
        "[]",
        "1",
        "\"x\"",
        "null",
        "{",
        "}",
        "{]",
        "[}",
        "{,}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        r#"{"a":1 "b":2}"#,
        r#"{a:1}"#,
        r#"{'a':1}"#,
        r#"{"a":1}}"#,
        r#"{"a":1}{}"#,
        r#"{"a":1} x"#,
        r#"{"a":[1,]}"#,
        r#"{"a":[,1]}"#,
        r#"{"a":[1 2]}"#,
        r#"{"a":[1}}"#,
        r#"{"a":{"b":1]}"#,
        r#"{"a":{"b"}}"#,
        r#"{"a":{1:2}}"#,
        r#"{"a":{"b":1,}}"#,
        r#"{"a":1"#,
        r#"{"a":"x"#,
        r#"{"a":"\"#,
        r#"{"a":"\u00"#,
        r#"{"a":tru}"#,
        r#"{"a":True}"#,
        r#"{"a":nul}"#,
        r#"{"a":/*c*/1}"#,
        r#"{"a":1}// c"#,
        r#"{"a":[1"#,
        r#"{"a":{"b":1"#,
        r#"{"a""#,
        r#"{"a":"#,
    ] {
        assert_eq!(refusal(text).kind, InvalidJson, "{text}");
    }
}

#[test]
fn numbers_follow_the_grammar() {
    for number in [
        "NaN",
        "Infinity",
        "-Infinity",
        "+1",
        "01",
        "-",
        "-a",
        ".5",
        "1.",
        "1.e5",
        "1e",
        "1e+",
        "0x10",
        "1_000",
        "1e999",
        "-1e999",
        "--1",
        "00",
        "1.5.5",
        "٣",
    ] {
        assert_eq!(
            refusal(&format!(r#"{{"a":{number}}}"#)).kind,
            BodyErrorKind::InvalidJson,
            "{number}"
        );
        assert_eq!(refusal(&format!(r#"{{"a":[{number}]}}"#)).kind, BodyErrorKind::InvalidJson);
    }
    assert_eq!(refusal(&format!(r#"{{"a":{}}}"#, "9".repeat(400))).code(), "invalid_json");
}

#[test]
fn strings_follow_the_grammar() {
    for inside in ["\n", "\0", "\u{1f}", r"\x41", r"\u12g4", r"\u123", r"\'", r"\U0041"] {
        let error = refusal(&format!(r#"{{"a":"{inside}"}}"#));
        assert_eq!(error.kind, BodyErrorKind::InvalidJson, "{inside:?}");
    }
    assert!(chat("{\"a\":\"\u{7f}\u{80}\u{2028}\"}").is_ok());
}

#[test]
fn only_plain_utf8_is_read() {
    let utf16: Vec<u8> = r#"{"model":"x"}"#.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let utf16_big: Vec<u8> = r#"{"model":"x"}"#.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let utf32: Vec<u8> =
        r#"{"model":"x"}"#.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    for body in [
        &utf16[..],
        &utf16_big,
        &utf32,
        b"\xef\xbb\xbf{}",
        b"\xff\xfe{\0}\0",
        b"{\"a\":\"\xff\"}",
        b"{\"a\":\"\xc0\x80\"}",
        b"{\"a\":\"\xed\xa0\x80\"}",
        b"{\"a\":\"\xe6\x97\"}",
        b"{\"\xff\":1}",
    ] {
        let error = scan(Route::ChatCompletions, body, &Limits::default()).unwrap_err();
        assert_eq!(error.kind, BodyErrorKind::InvalidEncoding, "{body:?}");
    }
    let late = scan(Route::ChatCompletions, b"{\"a\":\"ok\xff\"}", &Limits::default()).unwrap_err();
    assert_eq!(late.offset, 8);
}

#[test]
fn no_top_level_field_is_given_twice() {
    for (text, param) in [
        (r#"{"model":"a","model":"b"}"#, Some("model")),
        (r#"{"model":"a","model":"a"}"#, Some("model")),
        (r#"{"\u006dodel":"a","model":"a"}"#, Some("model")),
        (r#"{"model":"a","x":1,"\u006d\u006fdel":"b"}"#, Some("model")),
        (r#"{"seed":1,"seed":2}"#, None),
        (r#"{"":1,"":2}"#, None),
    ] {
        let error = refusal(text);
        assert_eq!((error.kind, error.param), (BodyErrorKind::DuplicateField, param), "{text}");
        assert_eq!(error.code(), "duplicate_field");
    }
}

#[test]
fn no_nested_field_that_is_read_is_given_twice() {
    let text = r#"{"stream_options":{"include_usage":true,"include_\u0075sage":false}}"#;
    assert_eq!(refusal(text).kind, BodyErrorKind::DuplicateField);
    let text = r#"{"text":"","sampling_params":{"max_new_tokens":1,"max_new_tokens":2}}"#;
    let error = scan(Route::Generate, text.as_bytes(), &Limits::default()).unwrap_err();
    assert_eq!(error.kind, BodyErrorKind::DuplicateField);
}

#[test]
fn a_known_field_in_another_letter_case_is_refused() {
    for (key, param) in [
        ("Model", "model"),
        ("MODEL", "model"),
        ("modeL", "model"),
        (r"\u004dodel", "model"),
        ("Stream", "stream"),
        ("\u{17f}tream", "stream"),
        ("max_to\u{212a}ens", "max_tokens"),
        ("Messages", "messages"),
    ] {
        let error = refusal(&format!(r#"{{"{key}":1}}"#));
        assert_eq!((error.kind, error.param), (BodyErrorKind::MisspeltField, Some(param)), "{key}");
    }
}

#[test]
fn a_model_must_be_a_name() {
    let long = "x".repeat(257);
    for value in [
        "1",
        "true",
        "[]",
        "{}",
        r#"["a"]"#,
        r#""""#,
        r#"" ""#,
        r#"" a""#,
        r#""a ""#,
        r#""a\nb""#,
        r#""a\r\nx-gateway-model-name: b""#,
        r#""a\u0000""#,
        r#""a\u007f""#,
        r#""\ud800""#,
        r#""a\ud800b""#,
        r#""é""#,
        r#""\u00e9""#,
        &format!("{long:?}"),
    ] {
        let error = refusal(&format!(r#"{{"model":{value}}}"#));
        assert_eq!(
            (error.kind, error.param),
            (BodyErrorKind::InvalidModel, Some("model")),
            "{value}"
        );
    }
    assert!(chat(&format!(r#"{{"model":"{}"}}"#, "x".repeat(256))).is_ok());
    assert!(chat(&format!(r#"{{"model":"{}"}}"#, r"\u0078".repeat(256))).is_ok());
}

#[test]
fn fields_that_are_read_have_their_type() {
    for (text, param) in [
        (r#"{"stream":1}"#, "stream"),
        (r#"{"stream":"true"}"#, "stream"),
        (r#"{"n":"2"}"#, "n"),
        (r#"{"n":1.5}"#, "n"),
        (r#"{"n":129}"#, "n"),
        (r#"{"best_of":99999999999999999999}"#, "best_of"),
        (r#"{"max_tokens":"16"}"#, "max_tokens"),
        (r#"{"max_tokens":[16]}"#, "max_tokens"),
        (r#"{"stream_options":{"include_usage":"yes"}}"#, "stream_options"),
    ] {
        let error = refusal(text);
        assert_eq!((error.kind, error.param), (BodyErrorKind::InvalidField, Some(param)), "{text}");
    }
}

#[test]
fn a_body_for_two_engines_at_once_is_refused() {
    let text = r#"{"inputs":"x","text":"y"}"#;
    let error = scan(Route::Generate, text.as_bytes(), &Limits::default()).unwrap_err();
    assert_eq!((error.kind, error.param), (BodyErrorKind::InvalidField, Some("text")));
}

#[test]
fn size_of_the_top_level_is_bounded() {
    let fields: Vec<String> = (0..257).map(|i| format!(r#""f{i}":1"#)).collect();
    assert!(chat(&format!("{{{}}}", fields[..256].join(","))).is_ok());
    assert_eq!(refusal(&format!("{{{}}}", fields.join(","))).kind, BodyErrorKind::TooManyFields);
    assert!(chat(&format!(r#"{{"{}":1}}"#, "k".repeat(1024))).is_ok());
    assert!(chat(&format!(r#"{{"{}":1}}"#, "k".repeat(1025))).is_err());
}

#[test]
fn nesting_beyond_the_limit_is_refused_however_deep() {
    for depth in [64, 65, 127, 128, 129, 1000, 100_000] {
        let text = format!(r#"{{"x":{}"#, "[".repeat(depth));
        assert_eq!(refusal(&text).kind, BodyErrorKind::TooDeep, "{depth}");
        let text = format!(r#"{{"x":{}"#, r#"{"a":"#.repeat(depth));
        assert_eq!(refusal(&text).kind, BodyErrorKind::TooDeep, "{depth}");
    }
    let deep = Limits { depth_max: u16::MAX, ..Limits::default() };
    let text = format!(r#"{{"x":{}"#, "[".repeat(1000));
    let error = scan(Route::ChatCompletions, text.as_bytes(), &deep).unwrap_err();
    assert_eq!(error.kind, BodyErrorKind::TooDeep);
    let shallow = Limits { depth_max: 0, ..Limits::default() };
    assert!(scan(Route::ChatCompletions, b"{}", &shallow).is_err());
}

#[test]
fn an_error_says_what_where_and_how_to_mend_it() {
    assert_eq!(
        refusal(r#"{"model":"a","model":"b"}"#).to_string(),
        "`model` is given twice (at byte 13): give each field once"
    );
    assert_eq!(
        refusal(r#"{"messages":[{"role":"user""#).to_string(),
        "the body is not valid JSON (at byte 27): a comma or `}` is expected here"
    );
    assert_eq!(
        refusal(r#"{"model":7}"#).to_string(),
        "`model` has a value that cannot be used (at byte 9): it must be a string"
    );
    assert_eq!(
        BodyError::missing_model().to_string(),
        "the body has no `model`: add it; GET /v1/models lists the names"
    );
    assert_eq!(BodyError::missing_model().code(), "missing_model");
}

#[test]
fn an_error_never_repeats_the_body() {
    let canary = "CANARY7";
    for text in [
        format!(r#"{{"{canary}":1,"{canary}":2}}"#),
        format!(r#"{{"model":"{canary}\n"}}"#),
        format!(r#"{{"model":["{canary}"]}}"#),
        format!(r#"{{"messages":["{canary}" "{canary}"]}}"#),
        format!(r#"{{"stream":"{canary}"}}"#),
        format!(r#"{{"a":{canary}}}"#),
        canary.to_owned(),
    ] {
        let error = refusal(&text);
        assert!(
            !error.to_string().contains(canary) && !format!("{error:?}").contains(canary),
            "{error}"
        );
    }
}
