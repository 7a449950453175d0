use super::*;

/// Facts of a text pushed whole, checked to be those of every cut in two and of single bytes.
fn facts(text: &str) -> Facts {
    let read = |pieces: &[&[u8]]| {
        let mut walker = Walker::new();
        pieces.iter().for_each(|piece| walker.push(piece));
        walker.facts()
    };
    let bytes = text.as_bytes();
    let whole = read(&[bytes]);
    for at in 0..=bytes.len() {
        assert_eq!(read(&[&bytes[..at], &bytes[at..]]), whole, "cut at {at}: {text}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(read(&single), whole);
    whole
}

#[test]
fn keys_and_types_may_be_cut_anywhere() {
    let facts = facts(
        r#"{ "type" : "response.completed", "x\"": "\\", "response": {"usage": {"input_tokens": 120 , "output_tokens":34}}}"#,
    );
    assert_eq!(facts.kind, Kind::End);
    assert_eq!((facts.counts.prompt, facts.counts.completion), (Some(120), Some(34)));
}

#[test]
fn a_long_key_or_type_equals_nothing() {
    let long = "usage".repeat(20);
    assert_eq!(
        facts(&format!(r#"{{"{long}":{{"prompt_tokens":1}},"type":"{long}.delta"}}"#)).counts,
        Counts::default()
    );
}

#[test]
fn odd_nesting_is_stepped_over() {
    for text in [
        r#"{"choices":{"delta":{"content":"x"}}}"#,
        r#"{"choices":[[{"delta":{"content":"x"}}]]}"#,
        r#"{"choices":[{"delta":[{"content":"x"}]}]}"#,
        r#"{"choices":[{"delta":{"content":[]}}]}"#,
        r#"{"choices":[{"delta":{"content":{ }}}]}"#,
        r#"{"choices":[{"delta":{"role":"assistant"},"content":"x"}]}"#,
        r#"{"delta":{"content":"x"}}"#,
        r#"{"x":[{"choices":[{"delta":{"content":"x"}}]}]}"#,
        r#""content""#,
    ] {
        assert!(!facts(text).content, "{text}");
    }
}

#[test]
fn what_follows_something_odd_is_still_read() {
    for odd in [
        "1",
        "-1.5e3",
        "true",
        "null",
        r#""\"{[""#,
        r#"["}",{"]":"{"}]"#,
        "{}",
        "[]",
        r#"{"a":{"b":[]}}"#,
        r#""\\""#,
        r#""\\\"""#,
    ] {
        for key in ["x", "usage", "choices", "error_code", "type", "text"] {
            let text = format!(r#"{{"{key}":{odd},"usage":{{"prompt_tokens":3}}}}"#);
            assert_eq!(facts(&text).counts.prompt, Some(3), "{text}");
        }
    }
}
