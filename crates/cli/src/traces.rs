//! Sets traces up, where the document or the environment asks for them.

use std::sync::Arc;

use anyhow::Context;
use config::Document;
use gateway::Gateway;
use otlp::{Exporter, Settings};

/// What exports; to be dropped when no request is left, so that the last ones are still sent.
pub(crate) fn begin(document: &Document, gateway: &Gateway) -> anyhow::Result<Option<Exporter>> {
    let tracing = document.spec.observability.tracing.as_ref();
    let Some(settings) = Settings::from(tracing, |name| std::env::var(name).ok())? else {
        return Ok(None);
    };
    let endpoint = settings.endpoint.clone();
    let ratio = settings.sampling.ratio;
    let ends = Arc::clone(&gateway.metrics.gateway().traces);
    let (exporter, tracer) = Exporter::start(settings, ends).context("cannot export traces")?;
    gateway.trace_with(tracer);
    tracing::info!(%endpoint, ratio, "traces: OTLP, no prompt text");
    Ok(Some(exporter))
}
