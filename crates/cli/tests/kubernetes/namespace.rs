//! A namespace for each test, and pods in it.

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace as Object, Pod};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
    TypeMeta,
};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::control_plane::{Access, ControlPlane};
use crate::gateway::PATIENCE;

/// Pause between two looks at something that cannot be waited for.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

#[derive(Clone)]
pub(crate) struct Namespace {
    pub(crate) name: String,
    pub(crate) client: Client,
    pub(crate) kubeconfig: PathBuf,
}

impl Namespace {
    pub(crate) async fn new(plane: &ControlPlane) -> Self {
        let client = plane.client().await;
        let object = serde_json::from_value(json!({ "metadata": { "generateName": "test-" } }));
        let namespaces: Api<Object> = Api::all(client.clone());
        let made = namespaces.create(&PostParams::default(), &object.unwrap()).await.unwrap();
        let name = made.metadata.name.unwrap();
        let kubeconfig = plane.kubeconfig(Access::default(), &name);
        Self { name, client, kubeconfig }
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// A pod that nobody runs; it is what `status` says.
    pub(crate) async fn make_pod(&self, name: &str, app: &str, status: Value) -> Pod {
        let pod = json!({
            "metadata": { "name": name, "labels": { "app": app } },
            // A pod without a node would be gone at once when it is deleted.
            "spec": { "nodeName": "node", "containers": [{ "name": "engine", "image": "engine" }] },
        });
        let pod = serde_json::from_value(pod).unwrap();
        self.pods().create(&PostParams::default(), &pod).await.unwrap();
        self.set_status(name, status).await
    }

    pub(crate) async fn set_status(&self, name: &str, status: Value) -> Pod {
        let patch = Patch::Merge(json!({ "status": status }));
        self.pods().patch_status(name, &PatchParams::default(), &patch).await.unwrap()
    }

    /// Objects of the kind that `object` is of.
    fn like(&self, object: &Value) -> Api<DynamicObject> {
        let types: TypeMeta = serde_json::from_value(object.clone()).unwrap();
        let kind = GroupVersionKind::try_from(&types).unwrap();
        Api::namespaced_with(self.client.clone(), &self.name, &ApiResource::from_gvk(&kind))
    }

    /// An object as it is now.
    pub(crate) async fn read(&self, object: &Value) -> Value {
        let name = object["metadata"]["name"].as_str().unwrap();
        serde_json::to_value(self.like(object).get(name).await.unwrap()).unwrap()
    }

    pub(crate) async fn delete(&self, object: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap();
        self.like(object).delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// The same for kinds that belong to no namespace.
    pub(crate) async fn apply_to_cluster(&self, object: Value) {
        let types: TypeMeta = serde_json::from_value(object.clone()).unwrap();
        let kind = GroupVersionKind::try_from(&types).unwrap();
        let api: Api<DynamicObject> =
            Api::all_with(self.client.clone(), &ApiResource::from_gvk(&kind));
        let name = object["metadata"]["name"].as_str().unwrap();
        let parameters = PatchParams::apply("tests").force();
        api.patch(name, &parameters, &Patch::Apply(&object)).await.unwrap();
    }

    /// What `kubectl apply --server-side` does, for objects of kinds that the server knows.
    pub(crate) async fn apply(&self, object: Value) {
        let api = self.like(&object);
        let name = object["metadata"]["name"].as_str().unwrap();
        let parameters = PatchParams::apply("tests").force();
        api.patch(name, &parameters, &Patch::Apply(&object)).await.unwrap();
    }

    /// Tells a pod to end; it stays until [`Self::remove_pod`] or its kubelet removes it.
    pub(crate) async fn end_pod(&self, name: &str) {
        self.pods().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn remove_pod(&self, name: &str) {
        let at_once = DeleteParams::default().grace_period(0);
        self.pods().delete(name, &at_once).await.unwrap();
    }
}

/// The status of a pod at this address.
pub(crate) fn status(ip: &str, is_ready: bool) -> Value {
    let ready = if is_ready { "True" } else { "False" };
    json!({
        "phase": "Running",
        "podIP": ip,
        "podIPs": [{ "ip": ip }],
        "conditions": [{ "type": "Ready", "status": ready }],
    })
}

/// Looks until it is so.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds().await {
        assert!(Instant::now() < end, "it never came to be: {what}");
        sleep(LOOK_AGAIN).await;
    }
}
