//! Makes the settings from a checked tree.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use types::{EndpointAddress, ModelName, TenantName};

use super::MEMBER_LABEL;
use super::spec::{
    Global, GlobalWeights, Heartbeats, MemberPrice, MemberSpec, Mode, OutageMode, PriceWindow,
    RedisStore, Routing, Shaping, Store, TenantPolicy,
};
use crate::build::auth::secret;
use crate::build::membership::mutual_tls;
use crate::build::{View, spec};
use crate::format::time_of_day;
use crate::node::Node;
use crate::spec::{EndpointSpec, Spec};

/// `node` is the document's `spec`.
pub(super) fn specs(node: Option<&Node>) -> (Spec, Global) {
    let global = global(View::new(node));
    let mut spec = spec(node, false);
    spec.discover = global
        .members
        .iter()
        .map(|member| EndpointSpec {
            url: member.url.clone(),
            labels: BTreeMap::from([(MEMBER_LABEL.to_owned(), member.name.clone())]),
        })
        .collect();
    (spec, global)
}

fn global(view: View<'_>) -> Global {
    Global {
        region: view.get("region").text(),
        members: view.get("members").items().filter_map(member).collect(),
        routing: routing(view.get("routing")),
        member_tls: view.get("memberTls").present().map(mutual_tls),
        heartbeats: heartbeats(view.get("heartbeats")),
        store: store(view.get("store")),
        routers: view.get("routers").positive().unwrap_or(NonZeroU32::MIN),
        outage: match view.get("failureMode").word() {
            Some("closed") => OutageMode::Closed,
            Some("open") => OutageMode::Open,
            _ => OutageMode::Safe,
        },
        tenants: view.get("tenants").items().filter_map(tenant).collect(),
    }
}

fn member(view: View<'_>) -> Option<MemberSpec> {
    Some(MemberSpec {
        name: view.get("name").text()?,
        url: EndpointAddress::of_cluster(view.get("url").word()?).ok()?,
        region: view.get("region").text(),
        identity: view.get("identity").text(),
        api_key: secret(view.get("apiKey")),
        models: view.get("models").items().filter_map(View::word).map(ModelName::from).collect(),
        residency: view.get("residency").texts(),
        price: view.get("price").present().map(price),
        carbon: view.get("carbon").number(),
    })
}

fn price(view: View<'_>) -> MemberPrice {
    let window = |view: View<'_>| {
        let (input_per_million, output_per_million) = prices(view);
        Some(PriceWindow {
            from: time_of_day(view.get("from").word()?)?,
            to: time_of_day(view.get("to").word()?)?,
            input_per_million,
            output_per_million,
        })
    };
    let (input_per_million, output_per_million) = prices(view);
    MemberPrice {
        input_per_million,
        output_per_million,
        windows: view.get("windows").items().filter_map(window).collect(),
    }
}

fn prices(view: View<'_>) -> (f64, f64) {
    let number = |key| view.get(key).number().unwrap_or(0.0);
    (number("inputPerMillion"), number("outputPerMillion"))
}

fn routing(view: View<'_>) -> Routing {
    let default = Routing::default();
    let weights = view.get("weights");
    let weight = |key| weights.get(key).number().unwrap_or(0.0);
    Routing {
        mode: if view.get("mode").word() == Some("weights") { Mode::Weights } else { Mode::Cost },
        weights: weights.present().map_or(default.weights, |_| GlobalWeights {
            kv_headroom: weight("kvHeadroom"),
            queue_depth: weight("queueDepth"),
            region_proximity: weight("regionProximity"),
            error_rate: weight("errorRate"),
        }),
        ttft: view.get("slo").get("ttft").duration().unwrap_or(default.ttft),
        shaping: shaping(view.get("shaping")).unwrap_or_default(),
        ramp: view.get("ramp").duration().unwrap_or(default.ramp),
    }
}

fn shaping(view: View<'_>) -> Option<Shaping> {
    Some(match view.word()? {
        "cheapest" => Shaping::Cheapest,
        "greenest" => Shaping::Greenest,
        _ => Shaping::Fastest,
    })
}

fn tenant(view: View<'_>) -> Option<TenantPolicy> {
    Some(TenantPolicy {
        tenant: TenantName::from(view.get("tenant").word()?),
        residency: view.get("residency").texts(),
        members: view.get("members").texts(),
        shaping: shaping(view.get("shaping")),
        ttft: view.get("ttft").duration(),
        budget_per_day: view.get("budgetPerDay").number(),
    })
}

fn heartbeats(view: View<'_>) -> Heartbeats {
    let default = Heartbeats::default();
    Heartbeats {
        address: view.get("address").parsed().unwrap_or(default.address),
        tls: view.get("tls").present().map(mutual_tls),
        suspect_after: view.get("suspectAfter").duration().unwrap_or(default.suspect_after),
        dead_after: view.get("deadAfter").duration().unwrap_or(default.dead_after),
    }
}

fn store(view: View<'_>) -> Store {
    if view.get("type").word() != Some("redis") {
        return Store::Embedded;
    }
    let default = RedisStore::new(view.get("url").text().unwrap_or_default());
    Store::Redis(RedisStore {
        username: view.get("username").text(),
        password: secret(view.get("password")),
        prefix: view.get("prefix").text().unwrap_or(default.prefix),
        timeout: view.get("timeout").duration().unwrap_or(default.timeout),
        url: default.url,
    })
}
