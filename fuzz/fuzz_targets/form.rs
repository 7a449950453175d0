//! Forms: the first line is the content type, the rest the body.

#![no_main]

#[allow(dead_code)]
#[path = "../../crates/openai/tests/common/agreement.rs"]
mod agreement;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (content_type, body) = (&input[..end], input.get(end + 1..).unwrap_or_default());
    if let Ok(content_type) = std::str::from_utf8(content_type) {
        agreement::form_is_read_without_panic(content_type, body);
    }
});
