//! From the table of fields to a structural schema.
//!
//! It refuses nothing that a file may say, with one exception: lists are bounded such that the API
//! server can estimate what its rules cost.

use config::ApiGroup;
use config::schema::{
    AWS_SCHEDULERS_MAX, Field, Format, Kind, Origin, Presence, Section, document_fields,
};
use serde_json::{Map, Value, json};

/// Schedulers of one resource of our group; a file may have more.
///
/// Each is compared with each other for the uniqueness of `modelName`, and the API server refuses a
/// definition whose rules could cost too much.
pub(super) const SCHEDULERS_MAX: usize = 256;

/// Longest text where the table has no bound of its own.
const TEXT_MAX: usize = 4096;

/// The schema of a field at the document's top.
pub(super) fn of_field(key: &str, group: ApiGroup) -> Value {
    let field = document_fields().fields.iter().find(|field| field.key == key);
    field.map_or(Value::Null, |field| of(field, group))
}

fn of(field: &Field, group: ApiGroup) -> Value {
    let mut schema = of_kind(&field.kind, group);
    let default = match group {
        ApiGroup::Aws => field.aws_default.or(field.default),
        ApiGroup::Wicketgate => field.default,
    };
    let help = match default {
        Some(default) => format!("{} Default `{default}`.", field.help),
        None => field.help.to_owned(),
    };
    schema["description"] = json!(help);
    if field.key == "schedulers" {
        schema["maxItems"] = match group {
            ApiGroup::Aws => json!(AWS_SCHEDULERS_MAX),
            ApiGroup::Wicketgate => json!(SCHEDULERS_MAX),
        };
        // Two parties can own an entry each (server-side apply), and no name comes twice.
        schema["x-kubernetes-list-type"] = json!("map");
        schema["x-kubernetes-list-map-keys"] = json!(["name"]);
    }
    schema
}

fn of_kind(kind: &Kind, group: ApiGroup) -> Value {
    match kind {
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Integer { min, max } => {
            let format = if i32::try_from(*max).is_ok() { "int32" } else { "int64" };
            json!({ "type": "integer", "format": format, "minimum": min, "maximum": max })
        }
        Kind::Share => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        Kind::Number { min, max } if *max == f64::from(f32::MAX) => {
            json!({ "type": "number", "minimum": min })
        }
        Kind::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        Kind::Bytes { .. } => number_or_text("^[0-9]+( *(B|[kK]B?|KiB?|MB?|MiB?|GB?|GiB?))?$"),
        Kind::Priority => number_or_text("^(Critical|Standard|Sheddable|-?[0-9]+)$"),
        Kind::Duration { .. } => {
            json!({ "type": "string", "pattern": "^([0-9]{1,5}(h|m|s|ms)){1,4}$" })
        }
        Kind::Text(format) => text(*format),
        Kind::Choice { words, aws_words } => {
            let words = if group == ApiGroup::Aws { aws_words } else { words };
            json!({ "type": "string", "enum": words })
        }
        Kind::Section(section) => mapping(section, group),
        Kind::List { item, min, max } => {
            let mut list =
                json!({ "type": "array", "items": of_kind(item, group), "maxItems": max });
            if *min > 0 {
                list["minItems"] = json!(min);
            }
            list
        }
        Kind::Labels => {
            json!({ "type": "object", "additionalProperties": { "type": "string" } })
        }
        // A word or a list of words: no type of a structural schema. Whoever reads the resource checks it.
        Kind::Words { .. } | Kind::Opaque => {
            json!({ "x-kubernetes-preserve-unknown-fields": true })
        }
    }
}

fn mapping(section: &Section, group: ApiGroup) -> Value {
    let fields = section
        .fields
        .iter()
        .filter(|field| group == ApiGroup::Wicketgate || field.origin == Origin::Aws);
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in fields {
        properties.insert(field.key.to_owned(), of(field, group));
        let is_required = match field.presence {
            Presence::Required => true,
            Presence::RequiredByAws => group == ApiGroup::Aws,
            Presence::Optional => false,
        };
        if is_required {
            required.push(field.key);
        }
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn number_or_text(pattern: &str) -> Value {
    json!({
        "x-kubernetes-int-or-string": true,
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
        "pattern": pattern,
    })
}

/// What an API server can check of a text; the rest is for whoever reads the resource.
fn text(format: Format) -> Value {
    const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
    let with = |max: usize, pattern: &str| json!({ "type": "string", "minLength": 1, "maxLength": max, "pattern": pattern });
    match format {
        Format::Any(max) => json!({ "type": "string", "minLength": 1, "maxLength": max }),
        Format::DnsLabel => with(63, &format!("^{LABEL}$")),
        Format::DnsName => with(253, &format!("^{LABEL}(\\.{LABEL})*$")),
        Format::Https => with(TEXT_MAX, "^https://[^/]"),
        Format::ModelName => with(256, "^[!-~]([ -~]*[!-~])?$"),
        Format::CollectorUrl => with(TEXT_MAX, "^https?://[^/?#@]"),
        Format::ClusterUrl => with(TEXT_MAX, "^[hH][tT][tT][pP][sS]?://[^/?#@]"),
        Format::TimeOfDay => with(5, "^([01][0-9]|2[0-3]):[0-5][0-9]$"),
        Format::EndpointUrl => with(TEXT_MAX, "^[hH][tT][tT][pP]://[^/?#@]"),
        Format::HttpPath => with(TEXT_MAX, "^/"),
        Format::EnvName => with(TEXT_MAX, "^[A-Za-z_][A-Za-z0-9_]*$"),
        Format::SocketAddress | Format::HostPort => with(TEXT_MAX, ":[0-9]+$"),
        Format::File | Format::LogTarget => {
            json!({ "type": "string", "minLength": 1, "maxLength": TEXT_MAX })
        }
    }
}
