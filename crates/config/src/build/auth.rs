//! `auth`, and secrets that other sections name.

use std::path::PathBuf;

use types::{ModelName, ObjectiveName, TenantName};

use super::View;
use crate::spec::{
    Anonymous, ApiKeys, Auth, CallerMatch, CallerSpec, ClaimType, ForwardedCertificate, Jwks,
    JwksSource, JwtProvider, RequiredClaim, SecretSource,
};

pub(super) fn auth(view: View<'_>) -> Auth {
    let jwt = view.get("jwt");
    let first = jwt.get("provider").present();
    Auth {
        providers: first.into_iter().chain(jwt.get("providers").items()).map(provider).collect(),
        api_keys: view.get("apiKeys").present().map(api_keys),
        anonymous: match view.get("anonymous").word() {
            Some("allow") => Anonymous::Allow,
            Some("modelsOnly") => Anonymous::ModelsOnly,
            _ => Anonymous::Deny,
        },
        forward_credentials: view.get("forwardCredentials").flag().unwrap_or(false),
        forwarded_certificate: match view.get("forwardedCertificate").word() {
            Some("attributes") => ForwardedCertificate::Attributes,
            Some("header") => ForwardedCertificate::Header,
            _ => ForwardedCertificate::Ignore,
        },
        callers: view.get("callers").items().map(caller).collect(),
    }
}

fn provider(view: View<'_>) -> JwtProvider {
    let jwks = view.get("jwks");
    let default = Jwks::default();
    let source = match jwks.get("file").word() {
        Some(file) => JwksSource::File(PathBuf::from(file)),
        None => JwksSource::Remote {
            uri: view.get("remoteJWKS").get("uri").text().unwrap_or_default(),
            ca_file: jwks.get("caFile").word().map(PathBuf::from),
        },
    };
    JwtProvider {
        name: view.get("name").text().unwrap_or_default(),
        issuer: view.get("issuer").text().unwrap_or_default(),
        jwks: Jwks {
            source,
            cache: jwks.get("cache").duration().unwrap_or(default.cache),
            stale_for: jwks.get("staleFor").duration().unwrap_or(default.stale_for),
        },
        audiences: view.get("audiences").texts(),
        required_claims: view.get("requiredClaims").items().map(claim).collect(),
        algorithms: view.get("algorithms").texts(),
        clock_skew: view.get("clockSkew").duration().unwrap_or(CLOCK_SKEW),
        tenant_claim: view.get("tenantClaim").text(),
    }
}

const CLOCK_SKEW: std::time::Duration = std::time::Duration::from_secs(30);

fn claim(view: View<'_>) -> RequiredClaim {
    RequiredClaim {
        name: view.get("name").text().unwrap_or_default(),
        value_type: match view.get("valueType").word() {
            Some("StringArray") => ClaimType::StringArray,
            _ => ClaimType::String,
        },
        values: view.get("values").texts(),
    }
}

fn api_keys(view: View<'_>) -> ApiKeys {
    ApiKeys {
        file: PathBuf::from(view.get("file").word().unwrap_or_default()),
        pepper_file: view.get("pepperFile").word().map(PathBuf::from),
    }
}

fn caller(view: View<'_>) -> CallerSpec {
    let models = view.get("models");
    CallerSpec {
        name: view.get("name").text().unwrap_or_default(),
        matches: matches(view.get("match")),
        tenant: view.get("tenant").word().map(TenantName::from),
        tenant_claim: view.get("tenantClaim").text(),
        fairness_id: view.get("fairnessId").text(),
        priority_max: view.get("priorityMax").priority(),
        objective: view.get("objective").word().map(ObjectiveName::from),
        models: models
            .present()
            .map(|models| models.items().filter_map(View::word).map(ModelName::from).collect()),
    }
}

/// The rules see to it that only one kind is written.
fn matches(view: View<'_>) -> CallerMatch {
    if let Some(key) = view.get("key").text() {
        return CallerMatch::Key(key);
    }
    if let (Some(name), Some(value)) = (view.get("claim").text(), view.get("value").text()) {
        return CallerMatch::Claim { provider: view.get("provider").text(), name, value };
    }
    if let Some(certificate) = view.get("certificate").text() {
        return CallerMatch::Certificate(certificate);
    }
    if view.get("anonymous").flag() == Some(true) {
        return CallerMatch::Anonymous;
    }
    if view.get("any").flag() == Some(true) {
        return CallerMatch::Any;
    }
    view.get("provider").text().map_or(CallerMatch::Named, CallerMatch::Provider)
}

pub(crate) fn secret(view: View<'_>) -> Option<SecretSource> {
    let file = view.get("file").word().map(|file| SecretSource::File(PathBuf::from(file)));
    file.or_else(|| view.get("env").text().map(SecretSource::Env))
}
