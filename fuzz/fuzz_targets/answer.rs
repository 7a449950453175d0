//! Answers, streamed or not: how they are split must not matter. The first four bytes are the
//! lengths of the pieces.

#![no_main]

#[allow(dead_code)]
#[path = "../../crates/openai/tests/common/agreement.rs"]
mod agreement;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Some((cuts, answer)) = input.split_first_chunk::<4>() {
        agreement::answer_is_read_the_same_for_any_split(answer, cuts);
    }
});
