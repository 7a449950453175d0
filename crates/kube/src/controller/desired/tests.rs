use serde_json::Value;

use super::*;

const SMALL: &str = "\
apiVersion: gateway.wicketgate.dev/v1alpha1
kind: InferenceGatewayConfig
metadata: { name: lab, namespace: serving }
spec:
  schedulers: [{ name: chat, modelName: llama, modelSelector: { matchLabels: { app: llama } } }]
";

/// Every part of `spec` that bears on objects.
const LARGE: &str = "\
apiVersion: gateway.wicketgate.dev/v1alpha1
kind: InferenceGatewayConfig
metadata: { name: lab, namespace: serving }
spec:
  bbr: { enabled: true, replicas: 5 }
  listener: { tls: { address: '0.0.0.0:8443', certFile: /tls/tls.crt, keyFile: /tls/tls.key } }
  timeouts: { drain: 60s, drainDelay: 5s }
  podDefaults:
    resources: { limits: { memory: 2Gi } }
    nodeSelector: { disk: ssd }
    tolerations: [{ key: dedicated, operator: Exists }]
    affinity: { nodeAffinity: {} }
    labels: { team: llm, app.kubernetes.io/name: stolen }
    annotations: { note: hello }
    env: [{ name: A, value: '1' }]
    envFrom: [{ secretRef: { name: keys } }]
    volumes: [{ name: tls, secret: { secretName: lab-tls } }]
    volumeMounts: [{ name: tls, mountPath: /tls, readOnly: true }]
  schedulers:
    - name: chat
      modelName: llama
      modelSelector: { matchLabels: { app: llama } }
      env: [{ name: A, value: '2' }, { name: B, value: '3' }]
";

fn made(text: &str) -> Vec<(Kind, Value)> {
    let document = config::parse(text, "test").unwrap_or_else(|errors| panic!("{errors}"));
    let whole: Value = serde_saphyr::from_str(text).unwrap();
    let key = Key { group: document.api_group, namespace: "serving".into(), name: "lab".into() };
    let wish = Wish { key: &key, uid: "uid-1", document: &document, spec: &whole["spec"] };
    objects(wish, &Images { image: "wicketgate:test".into(), pull_policy: "IfNotPresent".into() })
}

fn yaml(objects: &[(Kind, Value)]) -> String {
    let texts: Vec<_> =
        objects.iter().map(|(_, object)| serde_saphyr::to_string(object).unwrap()).collect();
    texts.join("---\n")
}

fn deployment(text: &str) -> Value {
    made(text).into_iter().find(|(kind, _)| *kind == Kind::Deployment).unwrap().1
}

#[test]
fn a_small_gateway_is_made_of_these_objects() {
    insta::assert_snapshot!(yaml(&made(SMALL)));
}

#[test]
fn a_gateway_with_everything_is_made_of_these_objects() {
    insta::assert_snapshot!(yaml(&made(LARGE)));
}

#[test]
fn pods_are_replaced_for_what_is_read_at_the_start_and_for_nothing_else() {
    let live = SMALL.replace("modelName: llama", "modelName: other");
    assert_eq!(deployment(SMALL), deployment(&live), "a gateway reads this again by itself");
    let read_once = format!("{SMALL}  prefixIndex: {{ blockTokens: 64 }}\n");
    assert_ne!(deployment(SMALL), deployment(&read_once));
}

#[test]
fn what_tells_pods_apart_cannot_be_overridden() {
    let deployment = deployment(LARGE);
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!(labels["app.kubernetes.io/name"], "wicketgate");
    assert_eq!(labels["team"], "llm");
}

#[test]
fn a_pod_has_time_for_its_drain() {
    let grace = |text| {
        deployment(text)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"].clone()
    };
    assert_eq!([grace(SMALL), grace(LARGE)], [615, 70]);
}

#[test]
fn names_that_no_service_can_have_are_told() {
    let key = |name: &str| Key {
        group: ApiGroup::Wicketgate,
        namespace: "serving".into(),
        name: name.into(),
    };
    assert_eq!(naming_violation(&key("lab")), None);
    for name in ["1lab", "a.b", &"x".repeat(60)] {
        assert!(naming_violation(&key(name)).is_some(), "{name}");
    }
}
