//! What legal bodies say.

use super::*;
use crate::Dialect;

#[test]
fn the_fields_that_routing_needs_are_found() {
    let text = r#" {"model": "org\/llama", "stream": true, "n": 2, "max_tokens": 16,
        "cache_salt": "s\u0061lt", "user": "me", "stream_options": {"x": 1, "include_usage": true},
        "messages": [ {"role": "user", "content": "hi"} ] } "#;
    let body = chat(text).unwrap();
    let model = body.model.unwrap();
    assert_eq!(model.name, "org/llama");
    assert_eq!(&text[model.literal], r#""org\/llama""#);
    assert!(body.stream && body.include_usage);
    assert_eq!((body.n, body.tokens_max), (Some(2), Some(16)));
    assert_eq!(&text[body.cache_salt.unwrap()], r"s\u0061lt");
    assert_eq!(&text[body.user.unwrap()], "me");
    assert_eq!(pieces(Route::ChatCompletions, text), [r#" {"role": "user", "content": "hi"}"#]);
}

#[test]
fn a_body_that_says_nothing_is_legal() {
    for text in ["{}", " {\r\n\t} ", r#"{"model":null,"stream":null,"n":null,"max_tokens":null}"#] {
        assert_eq!(chat(text), Ok(Body::default()), "{text}");
    }
}

#[test]
fn legal_bodies_that_peers_refuse_are_accepted() {
    for text in [
        r#"{"tools":[{"type":"function","function":{"name":"f"}}]}"#,
        r#"{"seed":18446744073709551616,"x":12345678901234567890123}"#,
        r#"{"x":-0,"y":-0.0e-0,"z":1E+2,"w":1e-999,"v":0.000000000000000000000000001}"#,
        r#"{"messages":[]}"#,
        r#"{"messages":[{"role":"user","content":""}]}"#,
        r#"{"":"","x":{"model":"a","model":"b"},"Unknown":1,"MODELS":2}"#,
        r#"{"x":"\ud83d\ude00 \u0000 \" \\ \/ \b\f\n\r\t"}"#,
        r#"{"x":"cut in half \ud83d"}"#,
        r#"{"x":[],"y":{},"z":[[],{}],"é":"日本語 🦀"}"#,
    ] {
        assert!(chat(text).is_ok(), "{text}: {:?}", chat(text));
    }
}

#[test]
fn an_integer_of_308_digits_is_a_double_and_passes() {
    assert!(chat(&format!(r#"{{"x":{}}}"#, "9".repeat(308))).is_ok());
    assert!(chat(&format!(r#"{{"x":0.{}}}"#, "9".repeat(400))).is_ok());
    assert!(chat(r#"{"x":1.7976931348623157e308}"#).is_ok());
}

#[test]
fn an_escaped_key_is_the_key_it_spells() {
    let body = chat(r#"{"\u006dod\u0065l":"llama"}"#).unwrap();
    assert_eq!(body.model.unwrap().name, "llama");
}

#[test]
fn a_field_of_the_same_name_further_in_is_not_read() {
    let body = chat(r#"{"metadata":{"model":"x","stream":true},"messages":[{"model":"y"}]}"#);
    let body = body.unwrap();
    assert_eq!((body.model, body.stream), (None, false));
}

#[test]
fn the_token_limit_has_many_spellings() {
    for (route, text, wanted) in [
        (Route::ChatCompletions, r#"{"max_tokens":1,"max_completion_tokens":2}"#, Some(2)),
        (Route::ChatCompletions, r#"{"max_completion_tokens":null,"max_tokens":1}"#, Some(1)),
        (Route::Responses, r#"{"max_output_tokens":3}"#, Some(3)),
        (Route::Generate, r#"{"inputs":"x","parameters":{"max_new_tokens":4}}"#, Some(4)),
        (Route::Generate, r#"{"text":"x","sampling_params":{"max_new_tokens":5}}"#, Some(5)),
        (Route::Generate, r#"{"text":"x","sampling_params":[{"max_new_tokens":5}]}"#, None),
        (Route::Generate, r#"{"text":"x","parameters":null}"#, None),
        (Route::ChatCompletions, r#"{"max_tokens":16.0}"#, Some(16)),
        (Route::ChatCompletions, r#"{"max_tokens":1e2}"#, Some(100)),
        (Route::ChatCompletions, r#"{"max_tokens":-1}"#, None),
        (Route::ChatCompletions, r#"{"max_tokens":99999999999999999999999}"#, Some(u64::MAX)),
    ] {
        assert_eq!(read(route, text).tokens_max, wanted, "{text}");
    }
}

#[test]
fn the_larger_of_n_and_best_of_counts() {
    assert_eq!(read(Route::Completions, r#"{"n":2,"best_of":5}"#).n, Some(5));
    assert_eq!(read(Route::Generate, r#"{"text":"","sampling_params":{"n":3}}"#).n, Some(3));
}

#[test]
fn prompt_parts_come_in_the_order_in_which_templates_render_them() {
    let text = r#"{"messages":[1],"tools":[2],"functions":[3]}"#;
    assert_eq!(pieces(Route::ChatCompletions, text), ["2", "3", "1"]);
    let text = r#"{"messages":[1 ],"system":"be \"brief\"","tools":[2]}"#;
    assert_eq!(pieces(Route::Messages, text), ["2", r#"be \"brief\""#, "1"]);
    assert_eq!(pieces(Route::CountTokens, text), ["2", r#"be \"brief\""#, "1"]);
    let text = r#"{"input":"hi","instructions":"x","text":{"format":1},"tools":null}"#;
    assert_eq!(pieces(Route::Responses, text), ["x", "hi"]);
    assert_eq!(pieces(Route::Completions, r#"{"suffix":"s","prompt":[1, 2]}"#), ["1, 2", "s"]);
    assert_eq!(pieces(Route::Embeddings, r#"{"input":["a","b"]}"#), [r#""a","b""#]);
    assert_eq!(pieces(Route::Rerank, r#"{"documents":["d"],"query":"q"}"#), ["q", r#""d""#]);
    assert_eq!(pieces(Route::Score, r#"{"text_2":"b","text_1":"a"}"#), ["a", "b"]);
    assert_eq!(pieces(Route::Tokenize, r#"{"prompt":"a"}"#), ["a"]);
    assert_eq!(pieces(Route::Detokenize, r#"{"tokens":[1]}"#), ["1"]);
    assert_eq!(pieces(Route::GenerateStream, r#"{"inputs":"a"}"#), ["a"]);
    assert_eq!(pieces(Route::Generate, r#"{"input_ids":[[1],[2]]}"#), ["[1],[2]"]);
}

#[test]
fn an_array_without_elements_is_an_empty_range() {
    assert_eq!(pieces(Route::ChatCompletions, r#"{"messages":[ ]}"#), [""]);
}

#[test]
fn inline_media_is_counted_apart_from_text() {
    let media = "A".repeat(2000);
    let text = format!(
        r#"{{"x":"data:{media}","messages":[{{"content":[{{"url":"data:{media}"}},{{"data":"{media}"}},"{media}"]}}]}}"#
    );
    assert_eq!(chat(&text).unwrap().prompt.media_bytes, 2000 + 2005);
}

#[test]
fn the_body_of_generate_tells_whose_it_is() {
    let body = |text| read(Route::Generate, text);
    assert_eq!(body(r#"{"inputs":"x"}"#).engine_dialect, Some(Dialect::Tgi));
    assert_eq!(body(r#"{"text":"x","input_ids":null}"#).engine_dialect, Some(Dialect::Sglang));
    assert_eq!(body(r#"{"input_ids":[1]}"#).engine_dialect, Some(Dialect::Sglang));
    assert_eq!(body("{}").engine_dialect, None);
    assert!(body(r#"{"text":"x","stream":true}"#).stream);
    assert!(!body(r#"{"inputs":"x","stream":true}"#).stream);
    assert!(read(Route::GenerateStream, r#"{"inputs":"x"}"#).stream);
}

#[test]
fn a_hundred_thousand_token_ids_pass() {
    let ids = vec!["128000"; 100_000].join(",");
    let text = format!(r#"{{"model":"m","prompt":[{ids}]}}"#);
    assert_eq!(read(Route::Completions, &text).prompt.bytes(), ids.len());
}

#[test]
fn nesting_passes_up_to_the_limit() {
    let nested = |depth| format!(r#"{{"x":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    assert!(chat(&nested(63)).is_ok());
    assert!(chat(&nested(64)).is_err());
    let mixed = format!(r#"{{"x":{}1{}}}"#, r#"[{"a":"#.repeat(31), "}]".repeat(31));
    assert!(chat(&mixed).is_ok());
}
