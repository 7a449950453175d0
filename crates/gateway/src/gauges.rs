//! Brings the gauges up to date that mirror other state.

use std::collections::HashSet;

use sched::Candidate;
use telemetry::EndpointGauges;
use telemetry::metrics::labels::{EndpointState, Label, Signal};
use telemetry::metrics::{By, Gauge, Names};
use types::Timestamp;

use crate::{Gateway, Member};

impl Gateway {
    /// The page of metrics, with the names that the document in force wants. Takes milliseconds where
    /// endpoints are many: not for a thread that serves.
    pub fn metrics_page(&self, now: Timestamp) -> String {
        self.refresh_gauges(now);
        self.metrics.encode_with(self.metric_names())
    }

    /// The same in OpenMetrics text, with exemplars.
    pub fn metrics_page_open(&self, now: Timestamp) -> String {
        self.refresh_gauges(now);
        self.metrics.encode_open(self.metric_names())
    }

    fn metric_names(&self) -> Names {
        let config::MetricNames { wicketgate, field, genai } =
            self.spec().observability.metric_names;
        Names { wicketgate, field, genai }
    }

    /// Shows when the certificate that clients get ends; one that cannot be read shows nothing.
    ///
    /// * `der`: the leaf.
    pub fn show_certificate(&self, der: &[u8]) {
        let end = identity::Certificate::end_of(der).ok();
        self.metrics.gateway().certificate_expiry.set(end.map(|seconds| seconds as f64));
    }

    /// Brings the gauges that mirror other state up to date. To be called before they are read.
    pub fn refresh_gauges(&self, now: Timestamp) {
        self.refresh_rate_limits(now);
        if let Some(clusters) = self.clusters() {
            clusters.refresh_gauges(now);
        }
        self.refresh_key_gauges();
        let mut cluster = Cluster::default();
        for pool in &self.catalog().pools {
            let mut counts = [0; EndpointState::ALL.len()];
            let mut saturation = 0.0;
            for member in &pool.members {
                let candidate = member.member.state.observe(None, now);
                let state = self.standing(&candidate);
                let full = pool.settings.saturation.endpoint(&candidate).min(1.0);
                counts[state.index()] += 1;
                saturation += f64::from(full);
                show(&member.gauges, &member.member, &candidate, now);
                cluster.count(&candidate, state, pool.settings.saturation.room(&candidate));
                member.gauges.up.set(i64::from(state == EndpointState::Ready));
                member.gauges.saturation.set(f64::from(full));
            }
            set_counts(&pool.metrics.endpoints, counts);
            if let Some(admission) = &pool.admission {
                admission.refresh_gauges();
            }
            let members = pool.members.len();
            // How full members are, they say themselves.
            let known = members > 0 && self.clusters().is_none();
            pool.metrics.saturation.set(known.then(|| saturation / members as f64));
        }
        let shown = &self.metrics.gateway().cluster;
        set_counts(&shown.endpoints, cluster.counts);
        shown
            .kv_usage
            .set((cluster.kv_known > 0).then(|| cluster.kv_usage / f64::from(cluster.kv_known)));
        shown.headroom_requests.set(cluster.room);
        shown.capacity_requests.set(cluster.room + cluster.present);
    }
}

/// Sums over all endpoints, each once.
#[derive(Default)]
struct Cluster {
    seen: HashSet<types::EndpointId>,
    counts: [i64; EndpointState::ALL.len()],
    kv_usage: f64,
    kv_known: u32,
    room: f64,
    present: f64,
}

impl Cluster {
    fn count(&mut self, candidate: &Candidate, state: EndpointState, room: u32) {
        if !self.seen.insert(candidate.endpoint) {
            return;
        }
        self.counts[state.index()] += 1;
        if let Some(usage) = candidate.scraped.kv_usage.filter(|_| !candidate.stale) {
            self.kv_usage += f64::from(usage);
            self.kv_known += 1;
        }
        // Of one that does not report nobody knows what it takes.
        if candidate.is_in_order() && !candidate.stale && candidate.age.is_some() {
            self.room += f64::from(room);
            self.present += f64::from(candidate.waiting + candidate.running);
        }
    }
}

fn show(gauges: &EndpointGauges, member: &Member, candidate: &Candidate, now: Timestamp) {
    let seconds = |age: std::time::Duration| age.as_secs_f64();
    // Each gateway tells its own, so that they add up over all of them.
    gauges.in_flight.set(i64::from(member.state.in_flight()));
    let tokens = member.state.prefill_tokens();
    gauges.prefill_tokens.set(i64::try_from(tokens).unwrap_or(i64::MAX));
    let adapters = member.state.adapter_census();
    let speaks_of_them = adapters.max.is_some() || adapters.resident > 0;
    gauges.resident_adapters.set(speaks_of_them.then(|| f64::from(adapters.resident)));
    gauges.prefill_speed.set(member.seen.prefill_speed());
    let speed = &candidate.speed;
    let step = f64::from(speed.step_ms) / 1000.0;
    gauges.step.set((speed.step_samples > 0.0).then_some(step));
    gauges.scrape_age.set(candidate.age.map(seconds));
    gauges.signal_age.of(Signal::Metrics).set(candidate.age.map(seconds));
    gauges.signal_age.of(Signal::Models).set(member.listed.age(now).map(seconds));
    gauges.signal_age.of(Signal::Answers).set(member.answered.age(now).map(seconds));
}

fn set_counts(gauges: &By<EndpointState, Gauge>, counts: [i64; EndpointState::ALL.len()]) {
    for (state, count) in EndpointState::ALL.iter().zip(counts) {
        gauges.of(*state).set(count);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{at, body, exchange, pool_of, scrape};

    #[test]
    fn an_endpoint_shows_what_it_was_sent_and_how_old_each_signal_is() {
        let gateway = pool_of(1);
        scrape(&gateway, 0, 0, 0.5);
        let mut request = exchange(&gateway);
        request.place(&body("llama"), None, at(1)).unwrap();
        request.attempt(at(1)).unwrap();
        request.answered(200, None, at(2));
        let page = gateway.metrics_page(at(5));
        let of = |name: &str, labels: &str| {
            let series =
                format!("wicketgate_{name}{{pool=\"chat\",endpoint=\"10.0.0.1:8000\"{labels}}} ");
            let line = page.lines().find_map(|line| line.strip_prefix(&*series));
            line.and_then(|value| value.parse::<f64>().ok())
        };
        assert_eq!(of("endpoint_in_flight_requests", ""), Some(1.0));
        assert!(of("endpoint_prefill_tokens", "").unwrap() > 0.0);
        let age =
            |signal: &str| of("endpoint_signal_age_seconds", &format!(",signal=\"{signal}\""));
        assert_eq!((age("metrics"), age("answers"), age("models")), (Some(5.0), Some(3.0), None));
        assert_eq!(of("endpoint_resident_adapters", ""), None);
    }

    #[test]
    fn the_cluster_counts_each_endpoint_once_and_its_capacity_is_headroom_and_load() {
        let gateway = pool_of(3);
        scrape(&gateway, 0, 0, 0.25);
        scrape(&gateway, 1, 40, 0.75);
        gateway.refresh_gauges(at(1));
        let shown = &gateway.metrics.gateway().cluster;
        assert_eq!(shown.kv_usage.get(), Some(0.5));
        // 255 of the batch and 32 of the queue on the first; the second is full, of the third nothing is known.
        assert_eq!(shown.headroom_requests.get(), Some(287.0));
        let load = shown.capacity_requests.get().unwrap() - 287.0;
        assert_eq!(load, 1.0 + 41.0);
    }
}
