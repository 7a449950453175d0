//! `featureGates`.

use crate::build::View;
use crate::check::join;
use crate::node::shortened;
use crate::report::Report;
use crate::suggest::closest;

/// Gates that decide something here.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gates {
    pub(super) flow_control: bool,
}

/// Those of the field, older ones included. All but the first change nothing here.
const KNOWN: [&str; 4] =
    ["flowControl", "haPopulateNonLeaderDatastore", "dataLayer", "prepareDataPlugins"];

pub(super) fn read(view: View<'_>, path: &str, report: &mut Report<'_>) -> Gates {
    let mut gates = Gates::default();
    for (index, gate) in view.get("featureGates").items().enumerate() {
        let Some(text) = gate.word() else { continue };
        let path = format!("{}[{index}]", join(path, "featureGates"));
        let (name, value) = match text.split_once('=') {
            None => (text, Some(true)),
            Some((name, value)) => (name, flag(value)),
        };
        if !KNOWN.contains(&name) {
            let message = format!("unknown feature gate `{}`", shortened(name));
            let hint = match closest(name, KNOWN.into_iter()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known: {}", KNOWN.join(", ")),
            };
            report.error_with_hint(gate.place(), &path, message, hint);
            continue;
        }
        match value {
            None => {
                let message = format!("expected `{name}=true` or `{name}=false`");
                report.error(gate.place(), &path, message);
            }
            Some(is_on) if name == "flowControl" => gates.flow_control = is_on,
            Some(_) => {}
        }
    }
    gates
}

/// As Go's `strconv.ParseBool` on a trimmed text in lower case.
fn flag(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "t" | "true" => Some(true),
        "0" | "f" | "false" => Some(false),
        _ => None,
    }
}
