//! The document `GlobalInferenceGateway`, and `global` of a cluster's own.

#![allow(
    clippy::panic,
    reason = "helpers of tests panic with the reports that they did not expect"
)]

use std::num::NonZeroU32;
use std::time::Duration;

use config::{
    GlobalDocument, MEMBER_LABEL, Mode, OutageMode, PriceWindow, Shaping, Store, TenantPolicy,
};
use wicketgate_config as config;

const HEAD: &str =
    "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: GlobalInferenceGateway\nspec:\n";
const MEMBERS: &str = "  members: [{ name: a, url: 'http://a' }, { name: b, url: 'https://b' }]\n  \
                       heartbeats: { address: '127.0.0.1:9005' }\n";

fn read(rest: &str) -> GlobalDocument {
    let text = format!("{HEAD}{rest}");
    GlobalDocument::parse(&text, "global.yaml").unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

fn refused(rest: &str) -> String {
    match GlobalDocument::parse(&format!("{HEAD}{rest}"), "global.yaml") {
        Ok(document) => panic!("accepted: {:?}", document.global),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn members_are_the_routers_endpoints_and_carry_their_names() {
    let document = read(MEMBERS);
    let endpoints = &document.gateway.spec.discover;
    let urls: Vec<String> = endpoints.iter().map(|endpoint| endpoint.url.to_string()).collect();
    assert_eq!(urls, ["http://a:80", "https://b:443"]);
    assert_eq!(endpoints[1].labels[MEMBER_LABEL], "b");
}

#[test]
fn every_field_of_its_own_is_read() {
    let document = read(
        "  region: eu
  members:
    - name: a
      url: https://a:8443
      region: us
      identity: spiffe://fleet/a
      apiKey: { env: KEY }
      models: [m, sql]
      residency: [us, hipaa]
      carbon: 350
      price: { inputPerMillion: 0.2, outputPerMillion: 0.6,
               windows: [{ from: '22:00', to: '06:00', inputPerMillion: 0.1, outputPerMillion: 0.3 }] }
  routing:
    mode: weights
    weights: { kvHeadroom: 0.4, queueDepth: 0.3, regionProximity: 0.2, errorRate: 0.1 }
    slo: { ttft: 800ms }
    shaping: cheapest
    ramp: 30s
  tenants:
    - { tenant: anonymous, residency: [us], members: [a], shaping: greenest, ttft: 1s, budgetPerDay: 5.5 }
  memberTls: { caFile: ca, certFile: c, keyFile: k, serverName: gw }
  heartbeats: { address: '0.0.0.0:7', tls: { caFile: ca, certFile: c, keyFile: k }, suspectAfter: 3s, deadAfter: 5s }
  store: { type: redis, url: 'redis://r:6379/1', username: u, password: { env: P }, prefix: x, timeout: 20ms }
  routers: 3
  failureMode: closed
  rateLimits: [{ name: all, requests: { perMinute: 5 } }]
",
    );
    let global = &document.global;
    assert_eq!(global.region.as_deref(), Some("eu"));
    let member = &global.members[0];
    assert_eq!(member.identity.as_deref(), Some("spiffe://fleet/a"));
    assert_eq!(member.residency, ["us", "hipaa"]);
    assert_eq!((member.models.len(), member.carbon), (2, Some(350.0)));
    assert!(member.api_key.is_some());
    let window =
        PriceWindow { from: 1320, to: 360, input_per_million: 0.1, output_per_million: 0.3 };
    assert_eq!(member.price.as_ref().unwrap().windows, [window]);
    assert_eq!((global.routing.mode, global.routing.shaping), (Mode::Weights, Shaping::Cheapest));
    assert_eq!(global.routing.ttft, Duration::from_millis(800));
    assert_eq!(global.routing.ramp, Duration::from_secs(30));
    assert!((global.routing.weights.sum() - 1.0).abs() < 1e-9);
    let tenant = TenantPolicy {
        tenant: "anonymous".into(),
        residency: vec!["us".to_owned()],
        members: vec!["a".to_owned()],
        shaping: Some(Shaping::Greenest),
        ttft: Some(Duration::from_secs(1)),
        budget_per_day: Some(5.5),
    };
    assert_eq!(global.tenants, [tenant]);
    assert_eq!(global.member_tls.as_ref().unwrap().server_name.as_deref(), Some("gw"));
    assert_eq!(global.heartbeats.dead_after, Duration::from_secs(5));
    let Store::Redis(redis) = &global.store else { panic!("{:?}", global.store) };
    assert_eq!((redis.prefix.as_str(), redis.timeout), ("x", Duration::from_millis(20)));
    assert_eq!((global.routers, global.outage), (NonZeroU32::new(3).unwrap(), OutageMode::Closed));
    assert_eq!(document.gateway.spec.rate_limits.len(), 1);
}

#[test]
fn what_is_wrong_is_said_where_and_how_to_mend_it() {
    insta::assert_snapshot!(refused(
        "  members:
    - { name: a, url: ftp://a, price: { inputPerMillion: -1, outputPerMillion: 1 } }
    - { name: a, url: http://b }
    - { name: c, url: http://b/, priec: 1 }
    - name: d
      url: http://d
      price: { inputPerMillion: 1, outputPerMillion: 1, windows: [
        { from: '22:00', to: '06:00', inputPerMillion: 1, outputPerMillion: 1 },
        { from: '05:00', to: '7:00', inputPerMillion: 1, outputPerMillion: 1 },
        { from: '05:00', to: '08:00', inputPerMillion: 1, outputPerMillion: 1 }] }
  routing: { mode: weights, weights: { kvHeadroom: 0.5, queueDepth: 0.5, regionProximity: 0.5, errorRate: 0 } }
  heartbeats: { address: '0.0.0.0:8080', suspectAfter: 10s, deadAfter: 5s }
  store: { type: redis, url: 'redis://user:secret@r' }
  tenants:
    - { tenant: t, members: [x], residency: [mars] }
    - { tenant: t }
  schedulers: []
"
    ));
}

#[test]
fn a_document_without_members_or_weights_in_weights_mode_is_refused() {
    assert!(refused("  region: eu\n").contains("`members` is missing"));
    let text = format!("{MEMBERS}  routing: {{ mode: weights }}\n");
    assert!(refused(&text).contains("`mode: weights` needs all four weights"));
}

#[test]
fn what_does_nothing_is_a_warning() {
    let weights = "{ kvHeadroom: 1, queueDepth: 0, regionProximity: 0, errorRate: 0 }";
    let document =
        read(&format!("{MEMBERS}  routing: {{ weights: {weights} }}\n  store: {{ prefix: x }}\n"));
    let warnings: Vec<String> =
        document.gateway.warnings.iter().map(|finding| finding.message.clone()).collect();
    assert_eq!(
        warnings,
        ["the weights act with `mode: weights` only", "`prefix` acts with `type: redis` only"]
    );
}

#[test]
fn load_any_tells_the_kinds_apart_and_a_gateway_says_what_a_router_is_for() {
    let folder = std::env::temp_dir().join(format!("wicketgate-global-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("global.yaml");
    std::fs::write(&file, format!("{HEAD}{MEMBERS}")).unwrap();
    assert!(matches!(config::load_any(&file), Ok(config::AnyDocument::Global(_))));
    let errors = config::load(&file).unwrap_err().to_string();
    assert!(errors.contains("wicketgate global -f"), "{errors}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_page_has_every_field_of_its_own() {
    let page = config::global_markdown();
    for field in
        ["members", "regionProximity", "budgetPerDay", "failureMode", "deadAfter", "windows"]
    {
        assert!(page.contains(&format!("| `{field}`")), "{field}");
    }
}

fn cluster(section: &str) -> Result<config::Document, config::Errors> {
    let text = format!(
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\nspec:\n  \
         discover: [{{ url: 'http://a' }}]\n  global: {section}\n"
    );
    config::parse(&text, "test")
}

#[test]
fn a_cluster_reports_without_tls_on_the_loopback_only() {
    let membership = cluster("{ cluster: west, routers: ['127.0.0.1:9005', '[::1]:9005'] }");
    let membership = membership.unwrap().spec.global.unwrap();
    assert_eq!(membership.interval, Duration::from_secs(2));
    assert_eq!(membership.routers.len(), 2);
    let errors = cluster("{ cluster: west, routers: ['gw:9005'] }").unwrap_err().to_string();
    assert!(errors.contains("without `tls`, reports go to the loopback only"), "{errors}");
    let tls = "{ caFile: ca, certFile: c, keyFile: k }";
    assert!(cluster(&format!("{{ cluster: west, routers: ['gw:9005'], tls: {tls} }}")).is_ok());
}

#[test]
fn no_error_shows_the_password_of_a_url() {
    for rest in [
        "  store: { type: redis, url: 'redis://user:hunter2@r' }\n",
        "  store: { type: redis, url: \"redis://:hunter2@r\", prefix: 7 }\n",
        "  members: [{ name: a, url: 'ftp://user:hunter2@a' }]\n",
        "  members: [{ name: a, url: 'http://user:hunter2@a', regoin: eu }]\n",
        "  auth: { jwt: { issuer: 'http://user:hunter2@idp' } }\n",
    ] {
        let text = refused(&format!("{rest}  heartbeats: {{ address: '127.0.0.1:9005' }}\n"));
        assert!(!text.contains("hunter2"), "{text}");
        assert!(text.contains("://*"), "it should show where it is: {text}");
    }
}
