//! Reports to CloudWatch, where the document asks for them.

use std::sync::Arc;

use anyhow::Context;
use cloudwatch::{FleetLevels, MemberLevels, Report, Reporter};
use config::CloudWatchMode;
use gateway::{FleetRates, FleetView, Gateway, ModelView};
use telemetry::clock;
use telemetry::metrics::CloudWatchMetrics;

struct Source(Arc<Gateway>);

impl cloudwatch::Source for Source {
    fn report(&self) -> Report {
        let now = clock::now();
        self.0.refresh_gauges(now);
        match self.0.clusters() {
            Some(clusters) => {
                let levels = levels(&clusters.view(now), &clusters.rates());
                Report::of_fleet(clusters.metrics(), &levels, clock::wall())
            }
            None => Report::of(&self.0.metrics.gateway().cluster, clock::wall()),
        }
    }

    fn counters(&self) -> &CloudWatchMetrics {
        &self.0.metrics.gateway().cloud_watch
    }
}

fn levels(view: &FleetView, rates: &FleetRates) -> FleetLevels {
    let members = view.members.iter().map(|member| {
        let sum =
            |of: fn(&ModelView) -> u32| member.models.iter().map(of).map(f64::from).sum::<f64>();
        let capacity = sum(|model| model.in_flight_max);
        let own = rates.members.get(&member.member).cloned().unwrap_or_default();
        MemberLevels {
            name: member.member.clone(),
            is_ready: member.takes_requests,
            heartbeat_age: member.heartbeat_age_ms.map(|age| age as f64 / 1000.0),
            round_trip: member.round_trip_ms / 1000.0,
            ramp: member.ramp.into(),
            in_flight: member.in_flight.into(),
            load: (capacity > 0.0).then(|| sum(|model| model.in_flight) / capacity),
            requests: own.requests,
            failovers: own.failovers,
            spent: own.spent,
        }
    });
    FleetLevels {
        refusals: rates.refusals,
        limit_refusals: rates.limit_refusals,
        failovers: rates.failovers,
        members: members.collect(),
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
    let of = if gateway.clusters().is_some() { "fleet" } else { "cluster" };
    tracing::info!(%namespace, ?interval, by, of, "metrics go to CloudWatch");
    let reporter = Reporter::start(settings, Source(Arc::clone(gateway)))
        .context("cannot report to CloudWatch")?;
    Ok(Some(reporter))
}
