//! The way to the API server: a pod's service account, or a kubeconfig.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

/// Longest that a connection may take; a server that is away is asked again soon.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// An API server, and the namespace in which we are at home there.
#[derive(Clone)]
pub struct Cluster {
    pub client: Client,
    /// The pod's own, or that of the kubeconfig's context.
    pub namespace: String,
}

/// Why the API server cannot even be asked.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("cannot use the service account of this pod")]
    InCluster(#[from] InClusterError),
    #[error("cannot use the kubeconfig {}", path.display())]
    Kubeconfig {
        path: PathBuf,
        #[source]
        source: Box<KubeconfigError>,
    },
    #[error("cannot make a client for the API server")]
    Client(#[source] Box<kube::Error>),
}

/// Whether this process runs in a pod that may have a service account.
pub fn is_inside_cluster() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some_and(|host| !host.is_empty())
}

/// Prepares to talk with the API server; nothing is sent yet. Must run inside a tokio runtime.
///
/// * `kubeconfig`: its current context counts; `None`: the service account of this pod.
///
/// # Errors
/// The kubeconfig or the service account is missing or makes no sense.
pub async fn connect(kubeconfig: Option<&Path>) -> Result<Cluster, ConnectError> {
    let config = match kubeconfig {
        None => Config::incluster()?,
        Some(path) => {
            let failed = |source| ConnectError::Kubeconfig {
                path: path.to_owned(),
                source: Box::new(source),
            };
            let file = Kubeconfig::read_from(path).map_err(failed)?;
            let options = KubeConfigOptions::default();
            Config::from_custom_kubeconfig(file, &options).await.map_err(failed)?
        }
    };
    cluster(config)
}

/// The same as a person who runs `kubectl`: `$KUBECONFIG` or `~/.kube/config`, and one of its contexts.
///
/// * `kubeconfig`: instead of these; `context`: instead of the current one.
///
/// # Errors
/// The kubeconfig is missing or makes no sense, or has no such context.
pub async fn connect_as_user(
    kubeconfig: Option<&Path>,
    context: Option<&str>,
) -> Result<Cluster, ConnectError> {
    let failed = |source| ConnectError::Kubeconfig {
        path: kubeconfig.unwrap_or(Path::new("of KUBECONFIG or ~/.kube/config")).to_owned(),
        source: Box::new(source),
    };
    let file = match kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let options =
        KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(file.map_err(failed)?, &options).await;
    cluster(config.map_err(failed)?)
}

fn cluster(mut config: Config) -> Result<Cluster, ConnectError> {
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    let namespace = config.default_namespace.clone();
    let client = Client::try_from(config).map_err(|error| ConnectError::Client(Box::new(error)))?;
    Ok(Cluster { client, namespace })
}
