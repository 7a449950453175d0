//! What the watched gateways and their router are told.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;

use super::{ALIAS, Gate, Sim};
use test_ports::free_address;

const CLUSTER: &str =
    "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nspec:\n";
const ROUTER: &str =
    "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: GlobalInferenceGateway\nspec:\n";

/// The first cluster: two models, flow control, a canary with a mirror, limits, TLS.
pub(super) fn cluster(
    gate: &Gate,
    stable: &Sim,
    canary: &Sim,
    [certificate, key]: &[PathBuf; 2],
    heartbeats: SocketAddr,
) -> Result<String> {
    let (traffic, admin, tls) = (gate.traffic, gate.admin, free_address()?);
    let mut text = format!(
        "{CLUSTER}  admin: {{ address: '{admin}' }}\n  listener:\n    address: '{traffic}'\n    tls: {{ address: '{tls}', \
         certFile: '{}', keyFile: '{}' }}\n{}  schedulers:\n",
        certificate.display(),
        key.display(),
        reports("frankfurt", heartbeats),
    );
    text += &scheduler(stable, "llama");
    text += &scheduler(canary, "llama-canary");
    let (stable, canary) = (stable.model, canary.model);
    text += &format!(
        "  flowControl:
    bands:
    - {{ priority: Critical, ttl: 30s }}
    - {{ priority: Standard, requestsMax: 24, ttl: 20s }}
    - {{ priority: Sheddable, whenSaturated: shed }}
  objectives:
  - {{ name: chat, priority: Critical }}
  - {{ name: batch, priority: Sheddable }}
  modelRewrites:
  - name: assistant
    rules:
    - matches: [{{ model: {{ value: {ALIAS} }} }}]
      targets:
      - {{ modelRewrite: {stable}, weight: 80, stable: true }}
      - {{ modelRewrite: {canary}, weight: 20 }}
      mirror: {{ modelRewrite: {canary}, share: 0.05 }}
  rateLimits:
  - name: canary-only
    match: {{ models: [{canary}] }}
    requests: {{ perSecond: 2, burst: 4 }}
  - name: on-trial
    shadow: true
    tokens: {{ perMinute: 100000 }}
"
    );
    Ok(text)
}

/// The second one: the stable model, and nothing else.
pub(super) fn other_cluster(gate: &Gate, sim: &Sim, heartbeats: SocketAddr) -> String {
    let (traffic, admin) = (gate.traffic, gate.admin);
    format!(
        "{CLUSTER}  admin: {{ address: '{admin}' }}\n  listener: {{ address: '{traffic}' }}\n{}  schedulers:\n{}",
        reports("oregon", heartbeats),
        scheduler(sim, "llama"),
    )
}

/// The router, with prices and a limit that is shared through a store.
pub(super) fn router(
    gate: &Gate,
    [here, there]: [&Gate; 2],
    heartbeats: SocketAddr,
    store: SocketAddr,
) -> String {
    let (traffic, admin) = (gate.traffic, gate.admin);
    let (here, there) = (here.traffic, there.traffic);
    format!(
        "{ROUTER}  region: eu-central-1
  listener: {{ address: '{traffic}' }}
  admin: {{ address: '{admin}' }}
  heartbeats: {{ address: '{heartbeats}' }}
  members:
  - name: frankfurt
    url: 'http://{here}'
    region: eu-central-1
    price: {{ inputPerMillion: 0.20, outputPerMillion: 0.60 }}
  - name: oregon
    url: 'http://{there}'
    region: us-west-2
    price: {{ inputPerMillion: 0.15, outputPerMillion: 0.45 }}
  store: {{ type: redis, url: 'redis://{store}/0' }}
  rateLimits:
  - {{ name: all, requests: {{ perSecond: 1000 }} }}
"
    )
}

fn reports(cluster: &str, heartbeats: SocketAddr) -> String {
    format!("  global: {{ cluster: {cluster}, routers: ['{heartbeats}'] }}\n")
}

/// Full early, so that something waits.
fn scheduler(sim: &Sim, name: &str) -> String {
    let endpoints: Vec<String> =
        sim.addresses().map(|address| format!("{{ url: 'http://{address}' }}")).collect();
    format!(
        "  - name: {name}\n    modelName: {}\n    loraAdapters: [{}]\n    \
         saturation: {{ queueDepth: 2 }}\n    endpoints: [{}]\n",
        sim.model,
        sim.adapters.join(", "),
        endpoints.join(", ")
    )
}
