//! Bodies: our reading against serde_json's. The first byte chooses the route.

#![no_main]

#[allow(dead_code)]
#[path = "../../crates/openai/tests/common/agreement.rs"]
mod agreement;

use libfuzzer_sys::fuzz_target;
use wicketgate_openai::Route;

fuzz_target!(|input: &[u8]| {
    if let Some((choice, body)) = input.split_first() {
        let route = Route::ALL[usize::from(*choice) % Route::ALL.len()];
        agreement::body_is_read_as_serde_json_does(route, body);
    }
});
