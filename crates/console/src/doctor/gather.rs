//! Asking: the gateway, then every endpoint, a bounded number of them at a time.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gateway::{EndpointSettingsView, EndpointView, PoolSettingsView, SettingsView};
use serde::Deserialize;
use types::EndpointAddress;

use super::facts::{EndpointFacts, Facts, GatewayFacts, Process, Seen};
use super::look::Look;
use crate::admin::{Admin, AdminError};
use crate::scrape::Page;

/// Endpoints that are looked at together.
const TOGETHER: usize = 64;
/// Of the gateway's page everything but the many series of endpoints.
const WANTED: [&str; 6] = [
    "wicketgate_re",
    "wicketgate_streams_",
    "wicketgate_pool_saturation_ratio",
    "wicketgate_config_",
    "wicketgate_certificate_",
    "wicketgate_access_log_",
];

/// How endpoints are asked.
#[derive(Clone, Debug)]
pub(super) struct Probing {
    pub(super) key: Option<String>,
    /// Longest wait for an idle connection to be closed; zero: do not look.
    pub(super) patience: Duration,
}

#[derive(Deserialize)]
struct Endpoints {
    endpoints: Vec<EndpointView>,
}

#[derive(Deserialize)]
struct Settings {
    #[serde(flatten)]
    settings: SettingsView,
    #[serde(default)]
    process: Process,
}

/// A running gateway and the endpoints that it knows.
pub(super) fn online(admin: &Admin, probing: &Probing) -> Result<Facts, AdminError> {
    let before = Page::read(&admin.get("/metrics")?, &WANTED);
    let Endpoints { endpoints: views } = admin.json("/debug/endpoints")?;
    let told: Option<Settings> = admin.json_if_there("/debug/settings")?;
    let ready = admin.ask("/readyz")?;
    let mut gateway = GatewayFacts {
        admin: admin.authority(),
        is_ready: ready.status == 200,
        readiness: String::from_utf8_lossy(&ready.body).trim().to_owned(),
        tells_settings: told.is_some(),
        is_open: !admin.has_token() || admin.anonymous().get("/metrics").is_ok(),
        before,
        ..GatewayFacts::default()
    };
    let settings = match told {
        Some(told) => {
            gateway.process = told.process;
            told.settings
        }
        None => guessed(&views),
    };
    let mut facts =
        Facts { endpoints: endpoints(&settings, probing), settings, ..Facts::default() };
    gateway.after = Page::read(&admin.get("/metrics")?, &WANTED);
    let Endpoints { endpoints: views } = admin.json("/debug/endpoints")?;
    let views: HashMap<(String, String), EndpointView> =
        views.into_iter().map(|view| ((view.pool.clone(), view.endpoint.clone()), view)).collect();
    for endpoint in &mut facts.endpoints {
        let pool = facts.settings.pools.get(endpoint.pool).map_or("", |pool| &pool.pool);
        endpoint.view = views.get(&(pool.to_owned(), endpoint.endpoint.clone())).cloned();
    }
    facts.gateway = Some(gateway);
    Ok(facts)
}

/// The endpoints of a document. Those without a model are sorted into pools by what they serve.
pub(super) fn offline(mut settings: SettingsView, probing: &Probing) -> Facts {
    let mut endpoints = endpoints(&settings, probing);
    let nameless = settings.pools.iter().position(|pool| pool.model.is_empty());
    if let Some(nameless) = nameless {
        for endpoint in endpoints.iter_mut().filter(|endpoint| endpoint.pool == nameless) {
            let base = endpoint.models().into_iter().flatten().find(|model| model.parent.is_none());
            let Some(model) = base.map(|model| model.id.clone()) else { continue };
            endpoint.pool =
                settings.pools.iter().position(|pool| pool.model == model).unwrap_or_else(|| {
                    let scorers = settings.pools[nameless].scorers.clone();
                    let pool = PoolSettingsView {
                        pool: model.clone(),
                        model,
                        scorers,
                        ..PoolSettingsView::default()
                    };
                    settings.pools.push(pool);
                    settings.pools.len() - 1
                });
        }
    }
    Facts { gateway: None, settings, endpoints }
}

/// What a gateway that does not tell its settings must have.
fn guessed(views: &[EndpointView]) -> SettingsView {
    let mut settings = SettingsView::default();
    for view in views {
        let place =
            settings.pools.iter().position(|pool| pool.pool == view.pool).unwrap_or_else(|| {
                let pool =
                    PoolSettingsView { pool: view.pool.clone(), ..PoolSettingsView::default() };
                settings.pools.push(pool);
                settings.pools.len() - 1
            });
        settings.pools[place].endpoints.push(EndpointSettingsView {
            endpoint: view.endpoint.clone(),
            url: format!("http://{}", view.endpoint),
            metrics_path: "/metrics".to_owned(),
        });
    }
    settings
}

/// Looks at every endpoint, once even if it stands in several pools.
fn endpoints(settings: &SettingsView, probing: &Probing) -> Vec<EndpointFacts> {
    let mut urls: Vec<(&EndpointSettingsView, bool)> = Vec::new();
    let mut known = std::collections::HashSet::new();
    for pool in &settings.pools {
        for endpoint in &pool.endpoints {
            if known.insert(&endpoint.url) {
                urls.push((endpoint, pool.h2c));
            }
        }
    }
    let seen: Vec<Mutex<Seen>> = urls.iter().map(|_| Mutex::default()).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..TOGETHER.min(urls.len()) {
            scope.spawn(|| {
                while let Some((at, (endpoint, h2c))) = Some(next.fetch_add(1, Ordering::Relaxed))
                    .and_then(|at| Some((at, urls.get(at)?)))
                {
                    let found = look(endpoint, *h2c, settings, probing);
                    if let Some(place) = seen.get(at) {
                        *place.lock().unwrap_or_else(PoisonError::into_inner) = found;
                    }
                }
            });
        }
    });
    let by_url: HashMap<&str, Seen> = urls
        .iter()
        .zip(seen)
        .map(|((endpoint, _), seen)| {
            (endpoint.url.as_str(), seen.into_inner().unwrap_or_else(PoisonError::into_inner))
        })
        .collect();
    let of_pool = |(place, pool): (usize, &PoolSettingsView)| {
        let facts = |endpoint: &EndpointSettingsView| EndpointFacts {
            pool: place,
            endpoint: endpoint.endpoint.clone(),
            view: None,
            seen: by_url.get(endpoint.url.as_str()).cloned().unwrap_or_default(),
        };
        pool.endpoints.iter().map(facts).collect::<Vec<_>>()
    };
    settings.pools.iter().enumerate().flat_map(of_pool).collect()
}

fn look(
    endpoint: &EndpointSettingsView,
    h2c: bool,
    settings: &SettingsView,
    probing: &Probing,
) -> Seen {
    let address = match EndpointAddress::from_str(&endpoint.url) {
        Ok(address) => address,
        Err(error) => return Seen { unreachable: Some(error.to_string()), ..Seen::default() },
    };
    let idle = Duration::from_millis(settings.endpoint_idle_ms);
    let look = Look {
        key: probing.key.as_deref(),
        metrics_path: &endpoint.metrics_path,
        // A busy engine may answer late; the gateway's own limit judges that, not we.
        timeout: Duration::from_millis(settings.scrape_timeout_ms).max(Duration::from_secs(5)),
        idle: (!h2c && !idle.is_zero()).then_some(idle),
        patience: probing.patience,
    };
    look.at(&address)
}
