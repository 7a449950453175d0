//! From the document to members and policies.

use std::collections::HashMap;
use std::sync::Arc;

use config::{Global, GlobalDocument, MemberSpec, Mode, SecretSource, Shaping, TenantPolicy};
use fleet::shaping::{Budget, Money, Period, Price, PriceSheet, PriceWindow};
use fleet::{Aim, Fleet, Label, Labels, Member, Settings, Weights};
use telemetry::Metrics;
use tokio::sync::watch;
use types::{Ratio, Timestamp};

use super::Table;
use super::seats::{Seat, Seats};
use crate::pool::Secret;

/// Why a document's members cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClustersError {
    #[error("the key of member `{member}` cannot be read from {source_name}")]
    Key {
        member: String,
        source_name: String,
        #[source]
        source: std::io::Error,
    },
    #[error("the prices of member `{member}` cannot be used: {reason}")]
    Price { member: String, reason: String },
    #[error("the weights cannot be used: {0}")]
    Weights(String),
}

/// What holds for a tenant's requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policy {
    pub(crate) labels: Labels,
    pub(crate) aim: Aim,
    pub(crate) ttft: Option<std::time::Duration>,
    pub(crate) budget: Option<Budget>,
}

/// From this share of a budget on, requests go where they are cheapest.
const SAVE_FROM: f64 = 0.8;

impl Table {
    pub(super) fn new(
        document: &GlobalDocument,
        metrics: &Metrics,
        former: Option<&Self>,
        now: Timestamp,
    ) -> Result<Self, ClustersError> {
        let global = &document.global;
        let members: Vec<Member> =
            global.members.iter().map(|spec| member(spec, global)).collect::<Result<_, _>>()?;
        let names: Vec<&str> = global.members.iter().map(|member| member.name.as_str()).collect();
        metrics.keep_fleet_members(&names);
        let seats = global.members.iter().map(|spec| {
            let known = former.and_then(|former| former.seats.by_name(&spec.name));
            // Who waits there is told by the old channel's sender.
            let lost = known.map_or_else(|| watch::Sender::new(0), |known| known.lost.clone());
            Ok(Arc::new(Seat {
                name: spec.name.as_str().into(),
                address: spec.url.clone(),
                identity: spec.identity.as_deref().unwrap_or(&spec.name).into(),
                authorization: key(spec)?,
                models: spec.models.iter().cloned().collect(),
                metrics: metrics.fleet_member(&spec.name),
                lost,
            }))
        });
        let seats = seats.collect::<Result<_, ClustersError>>()?;
        let routers = global.routers.get();
        let policies: HashMap<_, _> = global
            .tenants
            .iter()
            .map(|tenant| (tenant.tenant.clone(), policy(tenant, global, routers)))
            .collect();
        let settings = settings(global)?;
        let former = former.map(|former| &*former.fleet);
        Ok(Self {
            fleet: Arc::new(Fleet::new(settings, members, former, now)),
            seats: Seats::new(seats),
            policies,
            usual: Policy { aim: aim(global.routing.shaping), ..Policy::default() },
        })
    }
}

fn settings(global: &Global) -> Result<Settings, ClustersError> {
    let mut settings = Settings::new(global.region.as_deref().unwrap_or_default());
    let weights = &global.routing.weights;
    if global.routing.mode == Mode::Weights {
        let ratio = |weight: f64| Ratio::new(weight).unwrap_or(Ratio::ZERO);
        let weights = Weights::new(
            ratio(weights.kv_headroom),
            ratio(weights.queue_depth),
            ratio(weights.region_proximity),
            ratio(weights.error_rate),
        );
        settings.mode = fleet::Mode::Weights(
            weights.map_err(|error| ClustersError::Weights(error.to_string()))?,
        );
    }
    settings.suspect_after = global.heartbeats.suspect_after;
    settings.dead_after = global.heartbeats.dead_after;
    // Evidence from requests must not outlive the patience with silence.
    settings.evidence = settings.evidence.min(global.heartbeats.dead_after / 2);
    settings.ramp = global.routing.ramp;
    settings.ttft_target = global.routing.ttft;
    Ok(settings)
}

fn member(spec: &MemberSpec, global: &Global) -> Result<Member, ClustersError> {
    let mut member = Member::new(&spec.name, spec.region.as_deref().unwrap_or_default());
    let own = spec.residency.iter().map(|label| Label::new(label));
    let may =
        global.tenants.iter().filter(|tenant| tenant.members.contains(&spec.name)).map(open_to);
    member.labels = Labels::new(own.chain(may));
    member.carbon = spec.carbon.map(|carbon| carbon as f32);
    member.prices = spec.price.as_ref().map(|price| sheet(spec, price)).transpose()?;
    Ok(member)
}

/// The label that members have which a tenant may use. No label of a document has a control character.
fn open_to(tenant: &TenantPolicy) -> Label {
    Label::new(&format!("\u{1}{}", tenant.tenant))
}

fn sheet(spec: &MemberSpec, price: &config::MemberPrice) -> Result<PriceSheet, ClustersError> {
    let fault = |reason: String| ClustersError::Price { member: spec.name.clone(), reason };
    let money =
        |units| Money::from_units(units).ok_or_else(|| fault(format!("{units} is no price")));
    let of = |input, output| Ok(Price { input: money(input)?, output: money(output)? });
    let windows = price.windows.iter().map(|window| {
        let price = of(window.input_per_million, window.output_per_million)?;
        Ok(PriceWindow { from: window.from, to: window.to, price })
    });
    let windows = windows.collect::<Result<Vec<_>, ClustersError>>()?;
    let usual = of(price.input_per_million, price.output_per_million)?;
    PriceSheet::new(usual, windows).map_err(|error| fault(error.to_string()))
}

fn policy(tenant: &TenantPolicy, global: &Global, routers: u32) -> Policy {
    let mut labels: Vec<Label> = tenant.residency.iter().map(|label| Label::new(label)).collect();
    if !tenant.members.is_empty() {
        labels.push(open_to(tenant));
    }
    let budget = tenant.budget_per_day.and_then(|units| {
        Some(Budget {
            amount: Money::from_units(units / f64::from(routers))?,
            period: Period::Day,
            save_from: Ratio::new(SAVE_FROM).unwrap_or(Ratio::ONE),
        })
    });
    Policy {
        labels: Labels::new(labels),
        aim: aim(tenant.shaping.unwrap_or(global.routing.shaping)),
        ttft: tenant.ttft,
        budget,
    }
}

fn aim(shaping: Shaping) -> Aim {
    match shaping {
        Shaping::Fastest => Aim::Soonest,
        Shaping::Cheapest => Aim::Cheapest,
        Shaping::Greenest => Aim::Cleanest,
    }
}

/// Value of `Authorization` towards a member.
fn key(spec: &MemberSpec) -> Result<Option<Secret>, ClustersError> {
    let Some(from) = &spec.api_key else { return Ok(None) };
    let (source_name, read) = match from {
        SecretSource::File(path) => {
            (format!("the file {}", path.display()), std::fs::read_to_string(path))
        }
        SecretSource::Env(name) => {
            (format!("the variable {name}"), std::env::var(name).map_err(std::io::Error::other))
        }
    };
    let usable = |key: &str| !key.is_empty() && !key.chars().any(char::is_control);
    let read = read.map(|key| key.trim().to_owned()).and_then(|key| {
        usable(&key).then_some(key).ok_or_else(|| std::io::ErrorKind::InvalidData.into())
    });
    let key = read.map_err(|source| ClustersError::Key {
        member: spec.name.clone(),
        source_name,
        source,
    })?;
    Ok(Some(Secret(format!("Bearer {key}").into())))
}
