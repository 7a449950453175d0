//! From flags, environment and file to one document.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use config::{AccessLogTarget, Document, EndpointSpec, Overrides, PickerConfig};
use wicketgate_kube::Latest;

/// Flags that say what to serve and where. Each is also a `WICKETGATE_…` variable.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Flags {
    /// The document (InferenceGatewayConfig, YAML or JSON); read again when it changes
    #[arg(short = 'f', long = "file", value_name = "FILE", env = "WICKETGATE_FILE")]
    pub(crate) file: Option<PathBuf>,

    /// A model server; repeatable. Its models and its engine are found out from itself
    #[arg(
        long = "endpoint",
        value_name = "URL",
        env = "WICKETGATE_ENDPOINTS",
        value_delimiter = ','
    )]
    pub(crate) endpoints: Vec<String>,

    /// Where clients connect [default: the document's, else 0.0.0.0:8080]
    #[arg(long, value_name = "ADDR", env = "WICKETGATE_LISTEN")]
    pub(crate) listen: Option<SocketAddr>,

    /// Metrics, health and decisions [default: the document's, else 127.0.0.1:9090]
    #[arg(long, value_name = "ADDR", env = "WICKETGATE_ADMIN")]
    pub(crate) admin: Option<SocketAddr>,

    /// One JSON line for each request: stdout, stderr, off, or a file [default: the document's, else stdout]
    #[arg(long, value_name = "TARGET", env = "WICKETGATE_ACCESS_LOG", value_parser = access_log)]
    pub(crate) access_log: Option<AccessLogTarget>,

    /// Something else says what to serve, so that neither a document nor an endpoint needs to.
    #[arg(skip)]
    pub(crate) may_be_empty: bool,

    /// The picker of every pool, instead of what the document says.
    #[arg(skip)]
    pub(crate) picker: Option<PickerSource>,

    /// The document of a resource in a cluster, instead of a file.
    #[arg(skip)]
    pub(crate) resource: Option<Latest>,
}

/// Where an `EndpointPickerConfig` comes from.
#[derive(Clone, Debug)]
pub(crate) enum PickerSource {
    File(PathBuf),
    Text(String),
}

impl PickerSource {
    fn load(&self) -> anyhow::Result<PickerConfig> {
        match self {
            Self::File(path) => PickerConfig::load(path)
                .map_err(|errors| anyhow::anyhow!("{}\n{errors}", path.display())),
            Self::Text(text) => PickerConfig::parse(text, "--config-text")
                .map_err(|errors| anyhow::anyhow!("--config-text\n{errors}")),
        }
    }
}

pub(crate) fn access_log(text: &str) -> Result<AccessLogTarget, String> {
    Ok(match text {
        "stdout" => AccessLogTarget::Stdout,
        "stderr" => AccessLogTarget::Stderr,
        "off" => AccessLogTarget::Off,
        "" => return Err("name stdout, stderr, off or a file".to_owned()),
        path => AccessLogTarget::File(path.into()),
    })
}

fn of_resource(latest: &Latest) -> anyhow::Result<Document> {
    match latest.borrow().as_deref() {
        Some(Ok(document)) => Ok(document.clone()),
        Some(Err(error)) => Err(anyhow::anyhow!("{error}")),
        None => anyhow::bail!("the resource was not read yet"),
    }
}

impl Flags {
    /// The document in force now: the file, if there is one, under what the flags say.
    pub(crate) fn document(&self) -> anyhow::Result<Document> {
        let mut document = match (&self.resource, &self.file) {
            (Some(latest), _) => of_resource(latest)?,
            (None, Some(file)) => {
                self.load(file).map_err(|errors| anyhow::anyhow!("{}\n{errors}", file.display()))?
            }
            (None, None) if self.endpoints.is_empty() && !self.may_be_empty => {
                anyhow::bail!(
                    "nothing to serve: name model servers (--endpoint http://HOST:PORT, repeatable), a document (-f FILE), or in a cluster an InferencePool (--pool NAME)"
                )
            }
            (None, None) => config::from_flags(&self.endpoints, self.listen, self.admin)
                .map_err(|errors| anyhow::anyhow!("{errors}"))?,
        };
        document.apply(&self.overrides()?);
        if let Some(picker) = &self.picker {
            document.use_picker(picker.load()?);
        }
        Ok(document)
    }

    fn load(&self, file: &Path) -> Result<Document, config::Errors> {
        if self.may_be_empty { config::load_beside_resources(file) } else { config::load(file) }
    }

    fn overrides(&self) -> anyhow::Result<Overrides> {
        let endpoints = self
            .endpoints
            .iter()
            .map(|url| {
                let url = url.parse().with_context(|| format!("--endpoint {url}"))?;
                Ok(EndpointSpec::new(url))
            })
            .collect::<anyhow::Result<_>>()?;
        Ok(Overrides {
            listen: self.listen,
            admin: self.admin,
            access_log: self.access_log.clone(),
            endpoints,
        })
    }
}
