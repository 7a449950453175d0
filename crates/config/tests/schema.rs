//! The schema table, the settings and the reference page say the same.

#![allow(
    clippy::panic,
    reason = "helpers of tests panic with the reports that they did not expect"
)]

use config::schema::{Field, Kind, Origin, Presence, Section, document_fields};
use wicketgate_config as config;

/// Writes each default of `section` out; what is required gets a value that fits.
fn write_defaults(section: &'static Section, aws: bool, indent: usize, out: &mut String) {
    for field in section.fields {
        if aws && field.origin == Origin::Ours || skipped(field.key) {
            continue;
        }
        let pad = " ".repeat(indent);
        let key = field.key;
        let default = if aws { field.aws_default.or(field.default) } else { field.default };
        match (&field.kind, default) {
            (Kind::Section(inner), _) => {
                out.push_str(&format!("{pad}{key}:\n"));
                write_defaults(inner, aws, indent + 2, out);
            }
            (Kind::List { item: Kind::Section(inner), .. }, _) if key == "schedulers" => {
                out.push_str(&format!("{pad}{key}:\n{pad}- name: a\n{pad}  modelName: m\n"));
                if aws {
                    out.push_str(&format!("{pad}  modelSelector: {{}}\n"));
                } else {
                    out.push_str(&format!("{pad}  endpoints: [{{ url: http://a }}]\n"));
                }
                write_defaults(inner, aws, indent + 2, out);
            }
            (_, Some(text)) => out.push_str(&format!("{pad}{key}: {text}\n")),
            _ => {}
        }
    }
}

/// Blocks that are absent by default, so that their defaults cannot be compared with absence, and
/// what [`minimal`] writes itself.
fn skipped(key: &str) -> bool {
    let absent = [
        "tls",
        "auth",
        "podDefaults",
        "defaultBackend",
        "configMapRef",
        "modelSelector",
        "shadow",
        "peers",
        "global",
        "flowControl",
        "cloudWatch",
        "tracing",
    ];
    absent.contains(&key) || ["apiVersion", "kind", "metadata", "status"].contains(&key)
}

fn minimal(aws: bool) -> String {
    if aws {
        "apiVersion: inference.sagemaker.aws.amazon.com/v1alpha1\nkind: InferenceGatewayConfig\n\
         metadata: { name: gateway }\n"
            .to_owned()
    } else {
        "apiVersion: gateway.wicketgate.dev/v1alpha1\nkind: InferenceGatewayConfig\n".to_owned()
    }
}

fn valid(text: &str) -> config::Spec {
    config::parse(text, "test.yaml").unwrap_or_else(|errors| panic!("{errors}\n{text}")).spec
}

#[test]
fn writing_a_default_out_changes_nothing() {
    for aws in [false, true] {
        let bare = if aws {
            "spec: { bbr: { enabled: true }, schedulers: [{ name: a, modelName: m, modelSelector: {} }] }"
        } else {
            "spec: { schedulers: [{ name: a, modelName: m, endpoints: [{ url: 'http://a' }] }] }"
        };
        let mut full = minimal(aws);
        write_defaults(document_fields(), aws, 0, &mut full);
        assert_eq!(valid(&full), valid(&(minimal(aws) + bare)), "{full}");
        assert!(full.lines().count() > if aws { 15 } else { 70 }, "{full}");
    }
}

#[test]
fn defaults_of_blocks_that_are_absent_by_default_are_those_of_the_table() {
    let spec = valid(&format!(
        "{}spec:
  discover: [{{ url: http://a }}]
  bbr: {{ defaultBackend: {{ name: b }} }}
  listener: {{ tls: {{ certFile: c, keyFile: k }} }}
  schedulers: [{{ name: a, modelName: m, endpoints: [{{ url: http://b }}], configMapRef: {{ name: c }} }}]
  allowedPaths: [{{ path: /x, scheduler: a }}]
",
        minimal(false)
    ));
    assert_eq!(
        spec.bbr.default_backend.unwrap().port.to_string(),
        default("defaultBackend", "port")
    );
    assert_eq!(spec.listener.tls.unwrap().address.to_string(), default("listener.tls", "address"));
    let config_map = spec.schedulers[0].config_map_ref.as_ref().unwrap();
    assert_eq!(config_map.key, default("configMapRef", "key"));
    assert_eq!(
        format!("[{}]", spec.allowed_paths[0].methods.join(", ")),
        default("allowedPaths[]", "methods")
    );
}

/// The table's default of `key` below the section whose path ends with `section`.
fn default(section: &str, key: &str) -> String {
    let mut found = None;
    config::schema::walk(&mut |path: &str, field: &Field| {
        if path.ends_with(&format!("{section}.{key}")) {
            found = field.default;
        }
    });
    found.unwrap_or_else(|| panic!("no default of {section}.{key}")).to_owned()
}

#[test]
fn every_setting_can_be_changed() {
    // One value for each that is not its default: if a key is in the table and nobody reads it,
    // the document stays the same.
    let base = |extra: &str| {
        valid(&format!("{}spec: {{ discover: [{{ url: 'http://a' }}], {extra} }}", minimal(false)))
    };
    let plain = base("");
    let mut tried = 0;
    config::schema::walk(&mut |path: &str, field: &Field| {
        let Some((section, key)) =
            path.strip_prefix("spec.").and_then(|path| path.rsplit_once('.'))
        else {
            return;
        };
        let flat = [
            "listener",
            "admin",
            "limits",
            "timeouts",
            "retry",
            "ejection",
            "prefixIndex",
            "scrape",
            "accessLog",
            "recording",
        ];
        if !flat.contains(&section) || matches!(field.kind, Kind::Section(_)) {
            return;
        }
        let value = match &field.kind {
            Kind::Integer { .. } => "77".to_owned(),
            Kind::Share => "0.25".to_owned(),
            Kind::Bytes { .. } if key.ends_with("BytesPerSecondMin") => "3KiB".to_owned(),
            Kind::Bytes { max, .. } if *max <= 64 << 10 => "3KiB".to_owned(),
            Kind::Bytes { max, .. } if *max <= 1 << 20 => "20KiB".to_owned(),
            Kind::Bytes { .. } => "65MiB".to_owned(),
            Kind::Duration { .. } if key == "busyInterval" => "1s".to_owned(),
            Kind::Duration { .. } => "45s".to_owned(),
            Kind::Text(_) if key == "address" => "127.0.0.1:7".to_owned(),
            _ => "off".to_owned(),
        };
        let changed = base(&format!("{section}: {{ {key}: {value} }}"));
        assert_ne!(changed, plain, "{path}: {value} changes nothing");
        tried += 1;
    });
    assert!(tried > 50, "{tried}");
}

#[test]
fn every_field_has_a_help_that_is_a_sentence() {
    config::schema::walk(&mut |path: &str, field: &Field| {
        let help = field.help;
        assert!(help.ends_with('.') && !help.contains('|') && help.len() > 5, "{path}: {help}");
        assert!(field.presence != Presence::Required || field.default.is_none(), "{path}");
    });
}

#[test]
fn the_reference_page_is_up_to_date() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let written = std::fs::read_to_string(page).unwrap_or_default();
    assert!(
        written == config::reference_markdown(),
        "run: cargo run -p wicketgate-config --example reference > docs/configuration.md"
    );
}
