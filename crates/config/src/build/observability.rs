//! `observability`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use types::PoolName;

use super::View;
use crate::spec::{
    CloudWatch, CloudWatchMode, EmfTarget, MetricNames, Observability, OtlpProtocol, PrefixAlarm,
    Price, ServerTiming, Tracing, Usage,
};

pub(super) fn observability(view: View<'_>) -> Observability {
    let default = Observability::default();
    Observability {
        metrics_enabled: view.get("metrics").get("enabled").flag().unwrap_or(true),
        metric_names: metric_names(view.get("metricNames")),
        cloud_watch: view.get("cloudWatch").present().map(cloud_watch),
        tracing: view.get("tracing").present().map(tracing),
        server_timing: match view.get("serverTiming").word() {
            Some("off") => ServerTiming::Off,
            Some("always") => ServerTiming::Always,
            _ => ServerTiming::OnRequest,
        },
        prefix_alarm: prefix_alarm(view.get("prefixAlarm")),
        usage: usage(view.get("usage")),
        currency: view.get("currency").text().unwrap_or(default.currency),
        prices: view.get("prices").items().filter_map(price).collect(),
    }
}

fn tracing(view: View<'_>) -> Tracing {
    let default = Tracing::default();
    Tracing {
        endpoint: view.get("endpoint").text(),
        protocol: match view.get("protocol").word() {
            Some("grpc") => OtlpProtocol::Grpc,
            _ => OtlpProtocol::HttpProtobuf,
        },
        sample_ratio: view.get("sampleRatio").ratio().unwrap_or(default.sample_ratio),
        follow_parent: view.get("followParent").flag().unwrap_or(default.follow_parent),
        sample_errors: view.get("sampleErrors").flag().unwrap_or(default.sample_errors),
        sample_slower_than: view.get("sampleSlowerThan").duration(),
        service_name: view.get("serviceName").text().unwrap_or(default.service_name),
        ca_file: view.get("caFile").text().map(PathBuf::from),
        timeout: view.get("timeout").duration().unwrap_or(default.timeout),
    }
}

fn prefix_alarm(view: View<'_>) -> PrefixAlarm {
    let default = PrefixAlarm::default();
    let least = view.get("lossTokensPerHourMin").integer();
    PrefixAlarm {
        enabled: view.get("enabled").flag().unwrap_or(default.enabled),
        within: view.get("within").duration().unwrap_or(default.within),
        loss_tokens_per_hour_min: least.unwrap_or(default.loss_tokens_per_hour_min),
    }
}

fn usage(view: View<'_>) -> Usage {
    let default = Usage::default();
    Usage {
        tenants_max: view.get("tenantsMax").integer().unwrap_or(default.tenants_max),
        tenant_series_max: view
            .get("tenantSeriesMax")
            .integer()
            .unwrap_or(default.tenant_series_max),
    }
}

fn price(view: View<'_>) -> Option<Price> {
    Some(Price {
        scheduler: PoolName::from(view.get("scheduler").word()?),
        gpu_hour: view.get("gpuHour").number()?,
        gpus_per_endpoint: view.get("gpusPerEndpoint").positive().unwrap_or(NonZeroU32::MIN),
    })
}

fn metric_names(view: View<'_>) -> MetricNames {
    let mut words: Vec<&str> = view.items().filter_map(View::word).collect();
    match view.word() {
        Some("both") => words.extend(["wicketgate", "field"]),
        Some(word) => words.push(word),
        None => {}
    }
    let names = MetricNames {
        wicketgate: words.contains(&"wicketgate"),
        field: words.contains(&"field"),
        genai: words.contains(&"genai"),
    };
    let none = MetricNames { wicketgate: false, field: false, genai: false };
    if names == none { MetricNames::default() } else { names }
}

fn cloud_watch(view: View<'_>) -> CloudWatch {
    CloudWatch {
        mode: match view.get("mode").word() {
            Some("api") => CloudWatchMode::Api {
                region: view.get("region").text(),
                endpoint: view.get("endpoint").text(),
            },
            _ => CloudWatchMode::Emf(target(view.get("target"))),
        },
        namespace: view.get("namespace").text().unwrap_or_else(|| "Wicketgate".to_owned()),
        dimensions: view.get("dimensions").labels(),
        interval: view.get("interval").duration().unwrap_or(Duration::from_secs(60)),
    }
}

fn target(view: View<'_>) -> EmfTarget {
    match view.word() {
        None | Some("stdout") => EmfTarget::Stdout,
        Some("stderr") => EmfTarget::Stderr,
        Some(text) => match text.strip_prefix("tcp://") {
            Some(address) => EmfTarget::Tcp(address.to_owned()),
            None => EmfTarget::File(text.into()),
        },
    }
}
