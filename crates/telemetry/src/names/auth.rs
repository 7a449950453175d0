//! Who is let in.

use super::{Kind, Metric, Unit, metric};

pub static AUTH_ACCEPTED: Metric = metric(
    "wicketgate_auth_accepted_total",
    Kind::Counter,
    Unit::Count,
    &["kind"],
    "Requests that authentication let in, by what they showed; none are counted without `auth`.",
);

pub static AUTH_REFUSED: Metric = metric(
    "wicketgate_auth_refused_total",
    Kind::Counter,
    Unit::Count,
    &["reason"],
    "Requests that authentication turned away, by reason.",
);

pub static AUTH_API_KEYS: Metric = metric(
    "wicketgate_auth_api_keys",
    Kind::Gauge,
    Unit::Count,
    &[],
    "API keys in force, expired ones included.",
);

pub static AUTH_RELOADS: Metric = metric(
    "wicketgate_auth_reloads_total",
    Kind::Counter,
    Unit::Count,
    &["outcome"],
    "Changed files of keys and secrets by outcome; after a rejected one the former keys stay in force.",
);

pub static AUTH_JWKS_FETCHES: Metric = metric(
    "wicketgate_auth_jwks_fetches_total",
    Kind::Counter,
    Unit::Count,
    &["outcome"],
    "Fetches of issuers' signing keys by outcome.",
);

pub static AUTH_JWKS_AGE: Metric = metric(
    "wicketgate_auth_jwks_age_seconds",
    Kind::Gauge,
    Unit::Seconds,
    &[],
    "Time since the last good fetch of signing keys, of the issuer where it is longest ago; absent before.",
);

pub static AUTH_JWKS_FAILING: Metric = metric(
    "wicketgate_auth_jwks_failing",
    Kind::Gauge,
    Unit::Count,
    &[],
    "Issuers whose last fetch failed; their tokens are accepted until `jwks.staleFor` is over.",
);
