//! Who may send requests, and what they may: AWS's `auth` block with ours around it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use types::{ModelName, ObjectiveName, Priority, TenantName};

/// How requests prove who sends them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Auth {
    /// AWS's one provider first, then the others. Names are unique.
    pub providers: Vec<JwtProvider>,
    pub api_keys: Option<ApiKeys>,
    pub anonymous: Anonymous,
    /// Whether engines see what clients authenticate with.
    pub forward_credentials: bool,
    pub forwarded_certificate: ForwardedCertificate,
    /// In document order; the first that matches counts.
    pub callers: Vec<CallerSpec>,
}

/// What a request without credentials may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Anonymous {
    #[default]
    Deny,
    /// See which models there are.
    ModelsOnly,
    Allow,
}

/// Where a proxy tells the certificate that its client showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedCertificate {
    #[default]
    Ignore,
    /// Envoy's attributes `connection.*_peer_certificate`.
    Attributes,
    /// `x-forwarded-client-cert`.
    Header,
}

/// An OpenID Connect provider and what its tokens must say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwtProvider {
    pub name: String,
    /// Compared with the `iss` claim; `https://…`.
    pub issuer: String,
    pub jwks: Jwks,
    /// Accepted `aud` values, at most 8. Never empty together with `required_claims`.
    pub audiences: Vec<String>,
    /// At most 16; when there are any, a token that fails one is refused.
    pub required_claims: Vec<RequiredClaim>,
    /// Accepted signatures by their JOSE names, never symmetric ones. Empty: all that are known.
    pub algorithms: Vec<String>,
    pub clock_skew: Duration,
    pub tenant_claim: Option<String>,
}

/// Where signing keys are, and how long they hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jwks {
    pub source: JwksSource,
    /// Age at which they are fetched anew, unless the answer says it.
    pub cache: Duration,
    /// How long they stay valid after the last good fetch.
    pub stale_for: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum JwksSource {
    /// * `uri`: `https://…`.
    /// * `ca_file`: PEM; `None`: the system's authorities.
    Remote {
        uri: String,
        ca_file: Option<PathBuf>,
    },
    File(PathBuf),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredClaim {
    pub name: String,
    pub value_type: ClaimType,
    /// 1 to 128 accepted values of 1 to 1024 characters.
    pub values: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClaimType {
    #[default]
    String,
    StringArray,
}

/// Keys of our own, hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKeys {
    /// A file, or a folder of files.
    pub file: PathBuf,
    pub pepper_file: Option<PathBuf>,
}

/// Who is behind credentials, and what they may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerSpec {
    pub name: String,
    pub matches: CallerMatch,
    pub tenant: Option<TenantName>,
    pub tenant_claim: Option<String>,
    pub fairness_id: Option<String>,
    /// `None`: no ceiling.
    pub priority_max: Option<Priority>,
    pub objective: Option<ObjectiveName>,
    /// `None`: all.
    pub models: Option<BTreeSet<ModelName>>,
}

/// Which credentials are a caller's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CallerMatch {
    /// Keys that name the caller, and nothing else.
    #[default]
    Named,
    Key(String),
    Claim {
        provider: Option<String>,
        name: String,
        value: String,
    },
    Provider(String),
    Certificate(String),
    Anonymous,
    /// All credentials that are valid.
    Any,
}

/// Where a secret stands; the document never holds one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SecretSource {
    File(PathBuf),
    Env(String),
}

impl Default for Jwks {
    fn default() -> Self {
        Self {
            source: JwksSource::File(PathBuf::new()),
            cache: Duration::from_secs(300),
            stale_for: Duration::from_secs(24 * 3600),
        }
    }
}
