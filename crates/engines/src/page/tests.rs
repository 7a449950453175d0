mod dialects;
mod hostile;
mod writing;

use types::{AdapterId, EndpointMetrics, EngineKind};

use super::*;

macro_rules! testdata {
    ($name:literal) => {
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/", $name)).as_slice()
    };
}
use testdata;

const VLLM_LOADED: &[u8] = testdata!("vllm-0.32.0-cpu-loaded-16running-32waiting-2lora.txt");

/// Reads a page of an engine that it names itself.
fn read(page: &[u8]) -> Page {
    parse(page, None).unwrap()
}

fn read_text(page: &str) -> Page {
    read(page.as_bytes())
}

fn ratio(value: f64) -> Option<Ratio> {
    Some(Ratio::new(value).unwrap())
}

fn adapters(names: &[&str]) -> Vec<AdapterId> {
    names.iter().map(|name| AdapterId::of(name)).collect()
}
