//! Pods as endpoints: which cluster `serve` and `epp` look into.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use config::{Document, Finding, Spec};
use gateway::Gateway;
use wicketgate_kube::{Cluster, connect, discover, is_inside_cluster};

/// Flags that say where pods are.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ClusterFlags {
    /// Cluster whose pods `modelSelector` finds [default: the one in which this runs, if any]
    #[arg(long, value_name = "FILE", env = "WICKETGATE_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,

    /// Namespace of the pods [default: the document's, else our pod's or the kubeconfig's]
    #[arg(long, value_name = "NAME", env = "WICKETGATE_NAMESPACE")]
    namespace: Option<String>,
}

/// Where pods are looked for.
pub(crate) struct Pods {
    cluster: Cluster,
    namespace: String,
}

impl ClusterFlags {
    /// `None`: there is no cluster, and selectors mean nothing.
    pub(crate) async fn pods(&self, document: &Document) -> anyhow::Result<Option<Pods>> {
        if self.kubeconfig.is_none() && !is_inside_cluster() {
            return Ok(None);
        }
        let cluster = match connect(self.kubeconfig.as_deref()).await {
            Ok(cluster) => cluster,
            // A pod without a service account, which needs none so far.
            Err(_) if self.kubeconfig.is_none() && !selects_pods(&document.spec) => {
                return Ok(None);
            }
            Err(error) => return Err(error).context("cannot look for pods"),
        };
        let namespace = self.namespace.clone().or_else(|| document.namespace.clone());
        let namespace = namespace.unwrap_or_else(|| cluster.namespace.clone());
        Ok(Some(Pods { cluster, namespace }))
    }
}

impl Pods {
    /// Keeps the gateway's endpoints those of the pods, until dropped.
    pub(crate) async fn follow(self, gateway: Arc<Gateway>) {
        tracing::info!(
            namespace = self.namespace,
            "pods are endpoints where a `modelSelector` says so"
        );
        discover(self.cluster.client, &self.namespace, gateway).await;
    }
}

/// Whether a warning that a document got as a file holds where pods are found.
pub(crate) fn holds_in_cluster(warning: &Finding) -> bool {
    !["modelSelector", "targetPort"].iter().any(|key| warning.path.ends_with(key))
}

fn selects_pods(spec: &Spec) -> bool {
    spec.schedulers.iter().any(|scheduler| scheduler.model_selector.is_some())
}
