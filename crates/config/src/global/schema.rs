//! Every field of the document.

use std::time::Duration;

use crate::schema::membership::MUTUAL_TLS;
use crate::schema::{
    ACCESS_LOG, ADMIN, AUTH, Field, Format, Kind, LIMITS, LISTENER, METADATA, OBSERVABILITY,
    RATE_LIMIT, RATE_LIMITS_MAX, RETRY, SECRET, Section, TIMEOUTS,
};

const NAME: Kind = Kind::Text(Format::Any(63));
const NAMES: Kind = Kind::List { item: &NAME, min: 0, max: 100 };
const MONEY: Kind = Kind::Number { min: 0.0, max: 1e9 };
const TTFT: Kind = Kind::Duration { min: Duration::from_millis(1), max: Duration::from_secs(600) };
const SHAPING: Kind = Kind::choice(&["fastest", "cheapest", "greenest"]);
/// AWS takes ten.
pub(super) const MEMBERS_MAX: usize = 100;
const TENANTS_MAX: usize = 10_000;

pub(crate) static DOCUMENT: Section = Section {
    fields: &[
        Field::ours(
            "apiVersion",
            Kind::Text(Format::Any(253)),
            "`gateway.wicketgate.dev/v1alpha1`.",
        )
        .required(),
        Field::ours("kind", Kind::Text(Format::Any(63)), "`GlobalInferenceGateway`.").required(),
        Field::ours("metadata", Kind::Section(&METADATA), "Name and labels."),
        Field::ours("spec", Kind::Section(&SPEC), "What the router shall do.").required(),
        Field::ours("status", Kind::Opaque, "Written by a controller; ignored here."),
    ],
};

static SPEC: Section = Section {
    fields: &[
        Field::ours(
            "members",
            Kind::List { item: &Kind::Section(&MEMBER), min: 1, max: MEMBERS_MAX },
            "The clusters' gateways.",
        )
        .required(),
        Field::ours("region", NAME, "Where this router is: members of the same region come first."),
        Field::ours("routing", Kind::Section(&ROUTING), "How a member is chosen."),
        Field::ours(
            "tenants",
            Kind::List { item: &Kind::Section(&TENANT), min: 0, max: TENANTS_MAX },
            "What holds for single tenants: where their requests may go, what they may cost.",
        ),
        Field::ours(
            "memberTls",
            Kind::Section(&MUTUAL_TLS),
            "Towards members with `https`: whom to trust, and the router's own certificate. Absent: the \
             system's authorities, and no certificate.",
        ),
        Field::ours("heartbeats", Kind::Section(&HEARTBEATS), "Where members report."),
        Field::ours(
            "store",
            Kind::Section(&STORE),
            "Who holds the state of `rateLimits` where there are several routers.",
        ),
        Field::ours(
            "routers",
            Kind::Integer { min: 1, max: 50 },
            "Routers that share `rateLimits`. With the embedded store each may spend its equal part at any \
             time; with Redis it is what they fall back to.",
        )
        .default("1"),
        Field::ours(
            "failureMode",
            Kind::choice(&["safe", "closed", "open"]),
            "What holds of `rateLimits` when the store does not answer and a lease has ended: the equal part \
             of each router, nothing, or everything.",
        )
        .default("safe"),
        Field::ours("listener", Kind::Section(&LISTENER), "Where clients connect."),
        Field::ours("admin", Kind::Section(&ADMIN), "Metrics, health, members; apart from clients."),
        Field::ours("auth", Kind::Section(&AUTH), "Who may send requests. Absent: everyone."),
        Field::ours("limits", Kind::Section(&LIMITS), "How much is taken from clients."),
        Field::ours(
            "rateLimits",
            Kind::List { item: &Kind::Section(&RATE_LIMIT), min: 0, max: RATE_LIMITS_MAX },
            "How many requests and tokens a tenant, key, model or route may use, over all members and all \
             routers.",
        ),
        Field::ours("timeouts", Kind::Section(&TIMEOUTS), "How long each step may take."),
        Field::ours(
            "retry",
            Kind::Section(&RETRY),
            "Repeating on one other member, before the first byte.",
        ),
        Field::ours("accessLog", Kind::Section(&ACCESS_LOG), "One line of JSON for each request."),
        Field::ours("observability", Kind::Section(&OBSERVABILITY), "Traces, what goes to CloudWatch, names of metrics."),
        Field::ours(
            "exposeDecision",
            Kind::Flag,
            "Answers tell in headers which member answered and why.",
        )
        .default("false"),
    ],
};

static MEMBER: Section = Section {
    fields: &[
        Field::ours("name", Kind::Text(Format::DnsLabel), "Stands in metrics, headers and errors.")
            .required(),
        Field::ours("url", Kind::Text(Format::ClusterUrl), "Where its gateway takes requests.")
            .required(),
        Field::ours("region", NAME, "Where it is: a member of the router's region is local."),
        Field::ours(
            "identity",
            Kind::Text(Format::Any(253)),
            "Name in the certificate of its reports: a DNS name, a URI such as `spiffe://…`, or the common \
             name. Absent: its `name`.",
        ),
        Field::ours("apiKey", Kind::Section(&SECRET), "Key that it asks for."),
        Field::ours(
            "models",
            Kind::List { item: &Kind::Text(Format::ModelName), min: 0, max: 1000 },
            "Models and adapters that it may get. Empty: all that it serves.",
        )
        .default("[]"),
        Field::ours("residency", NAMES, "Labels that `tenants[].residency` asks for.")
            .default("[]"),
        Field::ours("price", Kind::Section(&PRICE), "What its tokens cost."),
        Field::ours(
            "carbon",
            Kind::Number { min: 0.0, max: 10_000.0 },
            "Grams of CO₂ for a kilowatt-hour there.",
        ),
    ],
};

const INPUT: Field = Field::ours("inputPerMillion", MONEY, "For a million tokens of prompts.");
const OUTPUT: Field = Field::ours("outputPerMillion", MONEY, "For a million tokens of answers.");

static PRICE: Section = Section {
    fields: &[
        INPUT.required(),
        OUTPUT.required(),
        Field::ours(
            "windows",
            Kind::List { item: &Kind::Section(&PRICE_WINDOW), min: 0, max: 24 },
            "Other prices at some times of the day; the first that fits holds.",
        )
        .default("[]"),
    ],
};

static PRICE_WINDOW: Section = Section {
    fields: &[
        Field::ours("from", Kind::Text(Format::TimeOfDay), "UTC.").required(),
        Field::ours("to", Kind::Text(Format::TimeOfDay), "UTC; before `from`: on the next day.")
            .required(),
        INPUT.required(),
        OUTPUT.required(),
    ],
};

static ROUTING: Section = Section {
    fields: &[
        Field::ours(
            "mode",
            Kind::choice(&["cost", "weights"]),
            "`cost`: by the expected time to the first token. `weights`: by AWS's four signals.",
        )
        .default("cost"),
        Field::ours("weights", Kind::Section(&WEIGHTS), "For `mode: weights`: all four, in sum 1."),
        Field::ours("slo", Kind::Section(&SLO), "What is fast enough."),
        Field::ours(
            "shaping",
            SHAPING,
            "What decides among members that are fast enough by `slo`: the time, the price, or the CO₂.",
        )
        .default("fastest"),
        Field::ours(
            "ramp",
            Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(3600) },
            "A member that comes back begins with a tenth of what it can take and has all after this time.",
        )
        .default("60s"),
    ],
};

static WEIGHTS: Section = Section {
    fields: &[
        Field::ours("kvHeadroom", Kind::Share, "Free KV cache.").required(),
        Field::ours("queueDepth", Kind::Share, "Requests that wait.").required(),
        Field::ours("regionProximity", Kind::Share, "How near it is.").required(),
        Field::ours("errorRate", Kind::Share, "Errors of late.").required(),
    ],
};

static SLO: Section =
    Section { fields: &[Field::ours("ttft", TTFT, "Time to the first token.").default("2s")] };

static TENANT: Section = Section {
    fields: &[
        Field::ours("tenant", Kind::Text(Format::Any(256)), "As `auth.callers` name it.")
            .required(),
        Field::ours(
            "residency",
            NAMES,
            "Its requests go to members with each of these labels only; where there is none they are refused.",
        )
        .default("[]"),
        Field::ours("members", NAMES, "Members that it may use. Empty: all.").default("[]"),
        Field::ours("shaping", SHAPING, "In the place of `routing.shaping`."),
        Field::ours("ttft", TTFT, "In the place of `routing.slo.ttft`."),
        Field::ours(
            "budgetPerDay",
            MONEY,
            "What its requests may cost in a day (UTC), by the members' prices; 429 beyond. Counted by each \
             router for itself: its part is this divided by `routers`.",
        ),
    ],
};

static HEARTBEATS: Section = Section {
    fields: &[
        Field::ours("address", Kind::Text(Format::SocketAddress), "Where members report.")
            .default("0.0.0.0:9005"),
        Field::ours(
            "tls",
            Kind::Section(&MUTUAL_TLS),
            "Certificate of this router, and who signs the members'. Absent: reports are not encrypted, \
             which is refused except on the loopback.",
        ),
        Field::ours(
            "suspectAfter",
            Kind::Duration { min: Duration::from_millis(300), max: Duration::from_secs(60) },
            "A member that is silent for so long counts for less.",
        )
        .default("6s"),
        Field::ours(
            "deadAfter",
            Kind::Duration { min: Duration::from_millis(500), max: Duration::from_secs(120) },
            "A member that is silent for so long gets no requests, unless it answers those it has.",
        )
        .default("10s"),
    ],
};

static STORE: Section = Section {
    fields: &[
        Field::ours(
            "type",
            Kind::choice(&["embedded", "redis"]),
            "`embedded`: this router by itself. `redis`: a Redis or Valkey that all routers share.",
        )
        .default("embedded"),
        Field::ours(
            "url",
            Kind::Text(Format::Any(512)),
            "`redis://HOST:PORT/DB`, or `rediss://…` with TLS; no password in it.",
        ),
        Field::ours("username", Kind::Text(Format::Any(253)), "For its ACL."),
        Field::ours("password", Kind::Section(&SECRET), "Where its password is."),
        Field::ours("prefix", Kind::Text(Format::Any(63)), "Before every key.")
            .default("wicketgate"),
        Field::ours(
            "timeout",
            Kind::Duration { min: Duration::from_millis(5), max: Duration::from_secs(1) },
            "Longest wait for one answer. No request ever waits for it.",
        )
        .default("50ms"),
    ],
};
