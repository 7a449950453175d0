//! The fields of `auth`, and of secrets that other sections name.

use std::time::Duration;

use super::{Field, Format, Kind, Section};

const NAME: Kind = Kind::Text(Format::Any(253));
const CLAIM_NAME: Kind = Kind::Text(Format::Any(253));

/// Most entries of `callers`; each is looked at in turn once for each new token.
const CALLERS_MAX: usize = 1000;
/// Most issuers.
const PROVIDERS_MAX: usize = 16;

pub(crate) static AUTH: Section = Section {
    fields: &[
        Field::aws("jwt", Kind::Section(&JWT), "JSON web tokens.").required_by_aws(),
        Field::ours(
            "apiKeys",
            Kind::Section(&API_KEYS),
            "Keys of our own, made by `wicketgate keys create`.",
        ),
        Field::ours(
            "anonymous",
            Kind::choice(&["deny", "modelsOnly", "allow"]),
            "What a request without credentials may do: nothing, list models, or everything that the \
             caller with `match.anonymous` may. Wrong credentials are never taken for none.",
        )
        .default("deny"),
        Field::ours(
            "forwardCredentials",
            Kind::Flag,
            "Engines see the client's `Authorization`, `x-api-key`, `api-key` and `Cookie`.",
        )
        .default("false"),
        Field::ours(
            "forwardedCertificate",
            Kind::choice(&["ignore", "attributes", "header"]),
            "Where `wicketgate epp` finds the client's certificate as the proxy verified it: in Envoy's \
             attributes, or in `x-forwarded-client-cert`, which the proxy must then write itself.",
        )
        .default("ignore"),
        Field::ours(
            "callers",
            Kind::List { item: &Kind::Section(&CALLER), min: 0, max: CALLERS_MAX },
            "Who is behind credentials, and what they may. The first that matches counts; when there are \
             any, credentials that match none are 403. Absent: valid credentials may do everything.",
        ),
    ],
};

static JWT: Section = Section {
    fields: &[
        Field::aws("provider", Kind::Section(&PROVIDER), "An issuer of tokens; AWS has this one.")
            .required_by_aws(),
        Field::ours(
            "providers",
            Kind::List { item: &Kind::Section(&PROVIDER), min: 0, max: PROVIDERS_MAX },
            "Further issuers.",
        ),
    ],
};

static PROVIDER: Section = Section {
    fields: &[
        Field::aws("name", NAME, "Names the provider; unique.").required(),
        Field::aws("issuer", Kind::Text(Format::Https), "Must equal the `iss` claim.").required(),
        Field::aws("remoteJWKS", Kind::Section(&REMOTE_JWKS), "Signing keys, fetched.")
            .required_by_aws(),
        Field::aws(
            "audiences",
            Kind::List { item: &Kind::Text(Format::Any(1024)), min: 0, max: 8 },
            "Accepted `aud` claims. At least one of `audiences` and `requiredClaims`.",
        ),
        Field::aws(
            "requiredClaims",
            Kind::List { item: &Kind::Section(&CLAIM), min: 0, max: 16 },
            "Claims that a token must have.",
        ),
        Field::ours("jwks", Kind::Section(&JWKS), "How signing keys are found and kept."),
        Field::ours(
            "algorithms",
            Kind::List {
                item: &Kind::choice(&[
                    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA",
                ]),
                min: 1,
                max: 9,
            },
            "Signatures that are accepted, where the key allows them too. Absent: all of these.",
        ),
        Field::ours(
            "clockSkew",
            Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(600) },
            "How far the issuer's clock may be off when `exp` and `nbf` are judged.",
        )
        .default("30s"),
        Field::ours(
            "tenantClaim",
            CLAIM_NAME,
            "Claim that names the tenant, where the caller does not say it. Absent: the provider is one tenant.",
        ),
    ],
};

static REMOTE_JWKS: Section = Section {
    fields: &[Field::aws("uri", Kind::Text(Format::Https), "Where they are fetched.").required()],
};

static JWKS: Section = Section {
    fields: &[
        Field::ours(
            "file",
            Kind::Text(Format::File),
            "Signing keys from a file instead of `remoteJWKS`; read again when it changes.",
        ),
        Field::ours(
            "caFile",
            Kind::Text(Format::File),
            "PEM: who may have signed the certificate of `remoteJWKS`. Absent: the system's authorities.",
        ),
        Field::ours(
            "cache",
            Kind::Duration { min: Duration::from_secs(10), max: Duration::from_secs(24 * 3600) },
            "Age at which keys are fetched anew, where the answer's `Cache-Control` does not say it.",
        )
        .default("5m"),
        Field::ours(
            "staleFor",
            Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(7 * 24 * 3600) },
            "How long keys stay valid while they cannot be fetched.",
        )
        .default("24h"),
    ],
};

static CLAIM: Section = Section {
    fields: &[
        Field::aws(
            "name",
            CLAIM_NAME,
            "Claim; dots lead into objects where no claim has the whole name.",
        )
        .required(),
        Field::aws("valueType", Kind::choice(&["String", "StringArray"]), "Shape of the claim.")
            .default("String"),
        Field::aws(
            "values",
            Kind::List { item: &Kind::Text(Format::Any(1024)), min: 1, max: 128 },
            "Accepted values.",
        )
        .required(),
    ],
};

static API_KEYS: Section = Section {
    fields: &[
        Field::ours(
            "file",
            Kind::Text(Format::File),
            "Hashes of keys: a file as `wicketgate keys` writes it, or a folder of such files and of files \
             with one hash each. Read again when it changes.",
        )
        .required(),
        Field::ours(
            "pepperFile",
            Kind::Text(Format::File),
            "Secret that goes into each hash, so that the hashes alone tell nothing of weak keys.",
        ),
    ],
};

static CALLER: Section = Section {
    fields: &[
        Field::ours("name", NAME, "Names the caller; unique. Keys can name it.").required(),
        Field::ours("match", Kind::Section(&MATCH), "Whom it is for. Absent: keys that name it."),
        Field::ours("tenant", NAME, "Counted, limited and scheduled as one. Absent: `name`."),
        Field::ours("tenantClaim", CLAIM_NAME, "Claim of the token that names the tenant."),
        Field::ours("fairnessId", NAME, "Its flow within a band. Absent: the tenant."),
        Field::ours(
            "priorityMax",
            Kind::Priority,
            "The highest priority that a request may ask for. Absent: any.",
        ),
        Field::ours("objective", NAME, "What holds where a request names no objective."),
        Field::ours(
            "models",
            Kind::List { item: &Kind::Text(Format::Any(253)), min: 1, max: 1000 },
            "Models and adapters that exist for it; others are 404. Absent: all.",
        ),
    ],
};

static MATCH: Section = Section {
    fields: &[
        Field::ours("key", NAME, "Name of an API key."),
        Field::ours("claim", CLAIM_NAME, "Claim of a token, with `value`."),
        Field::ours(
            "value",
            Kind::Text(Format::Any(1024)),
            "What the claim is, or one of its items.",
        ),
        Field::ours("provider", NAME, "Tokens of this provider only."),
        Field::ours(
            "certificate",
            Kind::Text(Format::Any(1024)),
            "A name in the client's certificate: SAN (URI, DNS or email), or the common name where there is no SAN.",
        ),
        Field::ours("anonymous", Kind::Flag, "Requests without credentials.").default("false"),
        Field::ours("any", Kind::Flag, "All credentials that are valid; put it last.")
            .default("false"),
    ],
};

/// A secret that stands somewhere else.
pub(crate) static SECRET: Section = Section {
    fields: &[
        Field::ours(
            "file",
            Kind::Text(Format::File),
            "File with nothing but the secret; read again when it changes.",
        ),
        Field::ours("env", Kind::Text(Format::EnvName), "Variable of the environment."),
    ],
};
