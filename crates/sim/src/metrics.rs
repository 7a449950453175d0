//! Metrics pages, word for word as the engines write them: names, labels, float format.

mod books;
mod histogram;
mod sglang;
mod text;
mod tgi;
mod trtllm;
mod vllm;

use std::collections::HashMap;

use types::{AdapterId, EngineKind};

use crate::engine::EngineSpec;

pub(crate) use books::{Books, Finish};

/// What a page says besides the books.
pub(crate) struct Identity<'a> {
    pub(crate) engine: EngineKind,
    pub(crate) model: &'a str,
    pub(crate) spec: &'a EngineSpec,
    pub(crate) adapters: &'a HashMap<AdapterId, &'a str>,
}

/// The page of the engine's dialect.
pub(crate) fn page(identity: &Identity<'_>, books: &Books) -> String {
    match identity.engine {
        EngineKind::Sglang => sglang::page(identity, books),
        EngineKind::Tgi => tgi::page(identity, books),
        EngineKind::TensorRtLlm => trtllm::page(identity, books),
        EngineKind::Vllm | EngineKind::LlamaCpp | EngineKind::Unknown => {
            vllm::page(identity, books)
        }
    }
}
