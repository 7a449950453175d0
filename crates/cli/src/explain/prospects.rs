//! The queue and the limits that a request would meet, as text.

use gateway::{BucketView, FlowView, LimitView, MeterView};

pub(super) fn flow(view: &FlowView) -> String {
    let FlowView { band, flow, tokens, saturation, ceiling, .. } = view;
    let time = |millis: u64| format!("{:.1} s", millis as f64 / 1000.0);
    let outcome = match &*view.outcome {
        "goes" => "goes at once".to_owned(),
        "waits" => {
            let ahead = view.ahead.unwrap_or(0);
            let wait = match view.wait_ms {
                Some(millis) => format!("about {}", time(millis)),
                None => "how long is not known yet".to_owned(),
            };
            let room = if view.makes_room { "; another gives way to it" } else { "" };
            format!("waits behind {ahead}, {wait}{room}")
        }
        _ => {
            let reason = view.reason.as_deref().unwrap_or("no endpoint");
            let again = view.retry_after_ms.map(time);
            let again = again.map(|time| format!("; again in about {time}")).unwrap_or_default();
            format!("refused ({reason}): {}{again}", view.message.as_deref().unwrap_or(""))
        }
    };
    let unknown =
        if view.unknown_objective { " (its objective is not in the document)" } else { "" };
    format!(
        "\nflow: {outcome}\n      band {band}, flow {flow}{unknown}, {tokens} tokens of work; the pool is {:.0} % full, and the band \
         waits from {:.0} %",
        saturation * 100.0,
        ceiling * 100.0
    )
}

pub(super) fn limits(views: &[LimitView]) -> String {
    views.iter().map(limit).collect()
}

fn limit(view: &LimitView) -> String {
    let LimitView { rule, bucket, .. } = view;
    let shadow = if view.shadow { " (shadow)" } else { "" };
    let verdict = match &view.refuses {
        None => "passes".to_owned(),
        Some(why) => format!("refused by {}, for {:.1} s", why.kind, why.wait_ms as f64 / 1000.0),
    };
    let left: Vec<_> = bucket.meters.iter().map(meter).collect();
    format!("\nlimit {rule}{shadow}{}: {verdict}; left: {}", owner(bucket), left.join(", "))
}

fn owner(bucket: &BucketView) -> String {
    let BucketView { tenant, key, model, route, .. } = bucket;
    let parts = [("tenant", tenant), ("key", key), ("model", model), ("route", route)];
    let named =
        parts.iter().filter_map(|(what, name)| Some(format!("{what} {}", (*name).as_ref()?)));
    let named: Vec<_> = named.collect();
    if named.is_empty() { String::new() } else { format!(" of {}", named.join(", ")) }
}

fn meter(meter: &MeterView) -> String {
    let MeterView { kind, limit, remaining, .. } = meter;
    match &meter.per {
        Some(per) => format!("{remaining} of {limit} {kind} a {per}"),
        None => format!("{remaining} of {limit} at once"),
    }
}
