//! Reports to CloudWatch, where the document asks for them.

use std::sync::Arc;

use anyhow::Context;
use cloudwatch::{Report, Reporter, Source};
use config::CloudWatchMode;
use gateway::Gateway;
use telemetry::clock;
use telemetry::metrics::CloudWatchMetrics;

struct Cluster(Arc<Gateway>);

impl Source for Cluster {
    fn report(&self) -> Report {
        self.0.refresh_gauges(clock::now());
        Report::of(&self.0.metrics.gateway().cluster, clock::wall())
    }

    fn counters(&self) -> &CloudWatchMetrics {
        &self.0.metrics.gateway().cloud_watch
    }
}

/// `None` where nothing is to be sent. Dropping the reporter ends it.
pub(crate) fn report(gateway: &Arc<Gateway>) -> anyhow::Result<Option<Reporter>> {
    let Some(settings) = gateway.spec().observability.cloud_watch.clone() else { return Ok(None) };
    let (namespace, interval) = (&settings.namespace, settings.interval);
    let by = match &settings.mode {
        CloudWatchMode::Emf(target) => format!("embedded metric format to {target:?}"),
        CloudWatchMode::Api { .. } => "PutMetricData".to_owned(),
    };
    tracing::info!(%namespace, ?interval, by, "cluster metrics go to CloudWatch");
    let reporter = Reporter::start(settings, Cluster(Arc::clone(gateway)))
        .context("cannot report to CloudWatch")?;
    Ok(Some(reporter))
}
