//! Pods as endpoints: which cluster `serve` and `epp` look into.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use config::{ApiGroup, Document, Finding, Spec};
use gateway::Gateway;
use telemetry::Metrics;
use tokio::task::{AbortHandle, spawn_local};
use wicketgate_kube::gateway_api::{self, Key, Pools, Served, ServedGateway};
use wicketgate_kube::{
    Cluster, Latest, ResourceName, connect, discover, follow, is_inside_cluster,
};

/// Flags that say where pods are.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ClusterFlags {
    /// Cluster whose pods `modelSelector` finds [default: the one in which this runs, if any]
    #[arg(long, value_name = "FILE", env = "WICKETGATE_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,

    /// Namespace of the pods [default: the document's, else our pod's or the kubeconfig's]
    #[arg(
        long,
        visible_alias = "pool-namespace",
        value_name = "NAME",
        env = "WICKETGATE_NAMESPACE"
    )]
    namespace: Option<String>,

    /// The document is this InferenceGatewayConfig of the cluster; read again when it changes. ConfigMaps of its
    /// namespace add pickers (`configMapRef`) and LoRA adapters
    #[arg(
        long,
        value_name = "[NAMESPACE/]NAME",
        env = "WICKETGATE_RESOURCE",
        conflicts_with = "file"
    )]
    resource: Option<String>,

    /// API group of that resource
    #[arg(
        long,
        value_name = "GROUP",
        env = "WICKETGATE_RESOURCE_GROUP",
        default_value = "wicketgate"
    )]
    resource_group: GroupName,

    /// InferencePool to serve, with its InferenceObjectives and InferenceModelRewrites; repeatable
    #[arg(
        long = "pool",
        visible_alias = "pool-name",
        value_name = "[NAMESPACE/]NAME",
        env = "WICKETGATE_POOLS",
        value_delimiter = ','
    )]
    pools: Vec<Key>,

    /// Gateway (Gateway API) to be: its HTTPRoutes lead to InferencePools
    #[arg(
        long,
        value_name = "[NAMESPACE/]NAME",
        env = "WICKETGATE_GATEWAY",
        conflicts_with = "pools"
    )]
    gateway: Option<Key>,

    /// Where clients reach that Gateway, for its status: an IP address or a host name; repeatable
    #[arg(
        long,
        value_name = "ADDR",
        env = "WICKETGATE_GATEWAY_ADDRESSES",
        value_delimiter = ',',
        requires = "gateway"
    )]
    gateway_address: Vec<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum GroupName {
    /// gateway.wicketgate.dev
    Wicketgate,
    /// inference.sagemaker.aws.amazon.com
    Aws,
}

/// A document that comes from a resource, and what keeps it new.
pub(crate) struct Resource {
    pub(crate) latest: Latest,
    pub(crate) following: AbortHandle,
}

/// Where pods and resources are looked for.
pub(crate) struct Sight {
    cluster: Cluster,
    namespace: String,
    served: Option<Served>,
}

impl ClusterFlags {
    /// Begins to follow the resource that the flags name, if any, and waits until its first valid document is there.
    pub(crate) async fn resource(&self, metrics: &Metrics) -> anyhow::Result<Option<Resource>> {
        let Some(text) = &self.resource else { return Ok(None) };
        let cluster =
            connect(self.kubeconfig.as_deref()).await.context("cannot read --resource")?;
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (namespace.to_owned(), name),
            None => (self.namespace.clone().unwrap_or(cluster.namespace), text.as_str()),
        };
        anyhow::ensure!(
            !namespace.is_empty() && !name.is_empty() && !name.contains('/'),
            "--resource {text}: write NAME, or NAMESPACE/NAME"
        );
        let group = match self.resource_group {
            GroupName::Wicketgate => ApiGroup::Wicketgate,
            GroupName::Aws => ApiGroup::Aws,
        };
        let resource = ResourceName { group, namespace, name: name.to_owned() };
        let (mut latest, keep) = follow(cluster.client, resource, metrics.clone());
        let following = spawn_local(keep).abort_handle();
        loop {
            latest.changed().await.context("the resource is no longer followed")?;
            match latest.borrow_and_update().as_deref() {
                Some(Ok(_)) => break,
                Some(Err(error)) => {
                    tracing::error!(
                        "the resource is no valid document; waiting for another\n{error}"
                    );
                }
                None => {}
            }
        }
        Ok(Some(Resource { latest, following }))
    }

    /// Whether resources say what to serve, so that no document needs to.
    pub(crate) fn names_resources(&self) -> bool {
        !self.pools.is_empty() || self.gateway.is_some()
    }

    /// Whether this is to be a Gateway of its own.
    pub(crate) fn is_gateway(&self) -> bool {
        self.gateway.is_some()
    }

    fn served(&self, home: &str) -> Option<Served> {
        let addresses = self.gateway_address.clone();
        match &self.gateway {
            Some(key) => Some(Served::Gateway(ServedGateway::new(key.clone(), addresses, home))),
            None if self.pools.is_empty() => None,
            None => Some(Served::Pools(Pools::new(self.pools.clone(), home))),
        }
    }

    /// `None`: there is no cluster, and selectors mean nothing.
    pub(crate) async fn pods(&self, document: &Document) -> anyhow::Result<Option<Sight>> {
        if self.kubeconfig.is_none() && !is_inside_cluster() {
            anyhow::ensure!(
                !self.names_resources(),
                "--pool and --gateway name resources, but this runs in no cluster: say which one with --kubeconfig FILE"
            );
            return Ok(None);
        }
        let cluster = match connect(self.kubeconfig.as_deref()).await {
            Ok(cluster) => cluster,
            // A pod without a service account, which needs none so far.
            Err(_)
                if self.kubeconfig.is_none()
                    && !self.names_resources()
                    && !selects_pods(&document.spec) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error).context("cannot look for pods"),
        };
        let namespace = self.namespace.clone().or_else(|| document.namespace.clone());
        let namespace = namespace.unwrap_or_else(|| cluster.namespace.clone());
        let served = self.served(&namespace);
        Ok(Some(Sight { cluster, namespace, served }))
    }
}

impl Sight {
    /// Keeps the gateway's endpoints those of the pods, until dropped.
    pub(crate) async fn follow(self, gateway: Arc<Gateway>) {
        tracing::info!(
            namespace = self.namespace,
            "pods are endpoints where a `modelSelector` says so"
        );
        let client = self.cluster.client;
        let discovering = discover(client.clone(), &self.namespace, gateway.clone());
        match self.served {
            None => discovering.await,
            Some(served) => {
                tokio::join!(discovering, gateway_api::follow(client, served, gateway));
            }
        }
    }
}

/// Whether a warning that a document got as a file holds where pods are found.
pub(crate) fn holds_in_cluster(warning: &Finding) -> bool {
    !["modelSelector", "targetPort"].iter().any(|key| warning.path.ends_with(key))
}

fn selects_pods(spec: &Spec) -> bool {
    spec.schedulers.iter().any(|scheduler| scheduler.model_selector.is_some())
}
