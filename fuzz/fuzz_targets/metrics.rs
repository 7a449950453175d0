//! Metrics pages of engines, which are not trusted: nothing may panic.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|page: &[u8]| {
    let _ = wicketgate_engines::parse(page, None);
});
