use serde_json::{Value, json};

use super::*;

const TEXT: &str = "\
apiVersion: gateway.wicketgate.dev/v1alpha1
kind: InferenceGatewayConfig
metadata: { name: lab, namespace: serving }
spec:
  schedulers:
    - { name: chat, modelName: llama, modelSelector: { matchLabels: { app: llama } }, loraAdapters: [sql] }
    - { name: code, modelName: qwen, modelSelector: { matchLabels: { app: qwen } } }
";

/// A selector, and one that makes no sense.
const QWEN: &str = "{ matchLabels: { app: qwen } }";
const NOTHING: &str = "{ matchExpressions: [{ key: app, operator: In }] }";

const EARLY: &str = "2026-01-01T00:00:00Z";
const LATE: &str = "2026-01-02T00:00:00Z";

fn key() -> Key {
    Key { group: ApiGroup::Wicketgate, namespace: "serving".into(), name: "lab".into() }
}

/// Two pools with an endpoint each, behind two pods.
struct Case {
    text: String,
    rollout: Option<Rollout>,
    trouble: Option<Trouble>,
    failure: Option<Failure>,
    pools: Vec<Standing>,
    before: Value,
    now: &'static str,
}

impl Case {
    fn good() -> Self {
        let rollout = Rollout {
            is_observed: true,
            wanted: 2,
            updated: 2,
            all: 2,
            available: 2,
            ..Rollout::default()
        };
        Self {
            text: TEXT.to_owned(),
            rollout: Some(rollout),
            trouble: None,
            failure: None,
            pools: vec![Standing { pods: 2, endpoints: 1 }, Standing { pods: 1, endpoints: 1 }],
            before: Value::Null,
            now: EARLY,
        }
    }

    fn status(&self) -> Value {
        let parsed = config::parse(&self.text, "test");
        let whole: Value = serde_saphyr::from_str(&self.text).unwrap();
        let refusal = refusal(&key(), parsed.as_ref());
        status(&Facts {
            key: &key(),
            generation: 4,
            spec: &whole["spec"],
            document: match &refusal {
                Some(refusal) => Err(refusal),
                None => Ok(parsed.as_ref().unwrap()),
            },
            rollout: self.rollout.as_ref(),
            trouble: self.trouble.as_ref(),
            has_service: self.rollout.is_some(),
            failure: self.failure.as_ref(),
            pools: &self.pools,
            before: &self.before,
            now: self.now,
        })
    }

    /// `Status/Reason` of a gateway's condition.
    fn of(&self, kind: &str) -> String {
        words(&self.status(), kind)
    }

    /// The same of a scheduler's.
    fn of_scheduler(&self, at: usize, kind: &str) -> String {
        words(&self.status()["schedulers"][at], kind)
    }
}

fn words(part: &Value, kind: &str) -> String {
    let Some(condition) = conditions::find(part, kind) else { return "absent".to_owned() };
    let word = |key: &str| condition[key].as_str().unwrap();
    format!("{}/{}", word("status"), word("reason"))
}

#[test]
fn a_gateway_that_serves_says_so() {
    insta::assert_snapshot!(serde_saphyr::to_string(&Case::good().status()).unwrap());
}

#[test]
fn a_refused_resource_says_where_and_why() {
    let text = TEXT.replace("[sql]", "[sql, qwen]");
    insta::assert_snapshot!(
        serde_saphyr::to_string(&Case { text, ..Case::good() }.status()).unwrap()
    );
}

#[test]
fn an_empty_pool_is_not_ready() {
    let with = |pods| Case {
        pools: vec![Standing { pods: 2, endpoints: 1 }, Standing { pods, endpoints: 0 }],
        ..Case::good()
    };
    assert_eq!(with(0).of("Ready"), "False/NoReadyEndpoints");
    assert_eq!(with(0).of_scheduler(1, "BackendsReady"), "False/NoModelPods");
    assert_eq!(with(3).of_scheduler(1, "BackendsReady"), "False/NoReadyModelPods");
    assert_eq!(with(3).of_scheduler(0, "BackendsReady"), "True/Ready");
}

#[test]
fn a_gateway_whose_pods_do_not_run_is_not_programmed() {
    let none = Case { rollout: None, ..Case::good() };
    assert_eq!(none.of("GatewayProgrammed"), "False/Pending");
    assert_eq!(none.of_scheduler(0, "PoolReady"), "False/NotFound");
    assert_eq!(none.status()["schedulers"][0]["rolloutState"], "Pending");
    let trouble = Trouble { reason: "ImagePullBackOff".into(), message: "no such image".into() };
    let rollout =
        Rollout { is_observed: true, wanted: 2, updated: 2, all: 2, ..Rollout::default() };
    let broken = Case { rollout: Some(rollout), trouble: Some(trouble), ..Case::good() };
    assert_eq!(broken.of("Ready"), "False/GatewayNotProgrammed");
    assert_eq!(broken.of("BBRReady"), "False/Degraded");
    assert_eq!(broken.of_scheduler(0, "EPPReady"), "False/ImagePullBackOff");
    assert_eq!(broken.status()["schedulers"][0]["rolloutState"], "Degraded");
}

#[test]
fn a_rollout_under_way_is_progressing_and_one_past_its_deadline_degraded() {
    let rollout = Rollout {
        is_observed: true,
        wanted: 2,
        updated: 1,
        all: 3,
        available: 2,
        ..Rollout::default()
    };
    let state = |rollout| {
        Case { rollout: Some(rollout), ..Case::good() }.status()["schedulers"][0]["rolloutState"]
            .clone()
    };
    assert_eq!(state(rollout.clone()), "Progressing");
    assert_eq!(state(Rollout { is_past_deadline: true, ..rollout }), "Degraded");
}

#[test]
fn a_webhook_that_denies_is_named() {
    let message = "admission webhook \"policy.example.org\" denied the request".to_owned();
    let failure = Failure { is_denied: is_webhooks(&message), message: message.clone() };
    let denied = Case { failure: Some(failure), ..Case::good() };
    assert_eq!(denied.of("AdmissionBlocked"), "True/WebhookDenied");
    let rollout = Rollout { refused: Some(message), ..Rollout::default() };
    let pods_denied = Case { rollout: Some(rollout), ..Case::good() };
    assert_eq!(pods_denied.of("AdmissionBlocked"), "True/WebhookDenied");
    assert_eq!(Case::good().of("AdmissionBlocked"), "False/Admitted");
}

#[test]
fn refusals_have_awss_reasons() {
    let reason = |text: String| Case { text, ..Case::good() }.of("Accepted");
    assert_eq!(reason(TEXT.replace("[sql]", "[llama]")), "False/InvalidLoraAdapters");
    assert_eq!(
        reason(TEXT.replace("lab,", &format!("{},", "x".repeat(60)))),
        "False/ResourceNamingViolation"
    );
    assert_eq!(reason(TEXT.replace(QWEN, NOTHING)), "False/InvalidModelSelector");
    assert_eq!(reason(TEXT.replace("modelName: qwen", "modelName: llama")), "False/InvalidSpec");
    let text = TEXT.replace(QWEN, NOTHING);
    let bad = Case { text, ..Case::good() };
    assert_eq!(bad.of_scheduler(1, "BackendsReady"), "False/InvalidModelSelector");
    assert_eq!(bad.of_scheduler(0, "BackendsReady"), "absent");
    assert_eq!(bad.of("Ready"), "Unknown/NotAccepted");
}

#[test]
fn a_condition_keeps_its_time_until_its_status_changes() {
    let first = Case::good().status();
    let later = Case { before: first.clone(), now: LATE, ..Case::good() };
    assert_eq!(later.status(), first, "the same facts, the same text");
    let pools = vec![Standing { pods: 2, endpoints: 1 }, Standing::default()];
    let changed = Case { before: first, now: LATE, pools, ..Case::good() }.status();
    let time = |kind: &str| conditions::find(&changed, kind).unwrap()["lastTransitionTime"].clone();
    assert_eq!([time("Ready"), time("Accepted")], [json!(LATE), json!(EARLY)]);
}

#[test]
fn events_tell_what_changed_and_nothing_else() {
    let first = Case::good().status();
    let told = |before: &Value, after: &Value| -> Vec<(bool, String)> {
        notices(before, after).into_iter().map(|one| (one.is_warning, one.reason)).collect()
    };
    assert_eq!(told(&Value::Null, &first), [(false, "Accepted".into()), (false, "Ready".into())]);
    assert!(told(&first, &first).is_empty());
    let empty = Case { pools: vec![Standing::default(); 2], ..Case::good() }.status();
    assert_eq!(told(&first, &empty), [(true, "NoReadyEndpoints".into())]);
}

#[test]
fn a_document_of_awss_is_told_that_nobody_issues_its_certificate() {
    let text = TEXT.replace("spec:\n", "spec:\n  tls: {}\n");
    let status = Case { text, ..Case::good() }.status();
    let message = conditions::find(&status, "Accepted").unwrap()["message"].as_str().unwrap();
    assert!(message.contains("listener.tls"), "{message}");
}

#[test]
fn a_change_of_the_status_says_only_what_changed_and_takes_back_what_is_no_longer_so() {
    let good = Case::good().status();
    let refused =
        Case { text: TEXT.replace("[sql]", "[llama]"), before: good.clone(), ..Case::good() };
    let change = change(&good, &refused.status());
    let keys: Vec<_> = change.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["address", "conditions", "readyEndpoints", "schedulers"]);
    assert!(change["address"].is_null() && change["readyEndpoints"].is_null());
}
