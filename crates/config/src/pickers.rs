//! `schedulers[].pickerConfig`: a picker's document, in a file of its own or within the gateway's.

use std::path::Path;

use crate::build::View;
use crate::node::Value;
use crate::picker_config::PickerConfig;
use crate::report::Report;
use crate::spec::Spec;

/// Fills in what the schedulers of `spec` name.
///
/// * `view`: the document's `spec`.
/// * `folder`: where files are looked for; `None`: there are none.
pub(crate) fn read(
    view: View<'_>,
    folder: Option<&Path>,
    spec: &mut Spec,
    report: &mut Report<'_>,
) {
    for (index, scheduler) in spec.schedulers.iter_mut().enumerate() {
        let view = view.get("schedulers").item(index).get("pickerConfig");
        let path = format!("spec.schedulers[{index}].pickerConfig");
        let (file, inline) = (view.get("file"), view.get("inline"));
        scheduler.picker_config = match (file.word(), inline.node()) {
            (None, None) => {
                // A misspelt key was reported already.
                let is_empty = matches!(view.node().map(|node| &node.value), Some(Value::Map(map)) if map.is_empty());
                if is_empty {
                    let hint = "add `file: PATH`, or the document itself below `inline`";
                    report.error_with_hint(view.place(), &path, "there is no document", hint);
                }
                None
            }
            (Some(_), Some(_)) => {
                let message = "`file` and `inline` are mutually exclusive";
                report.error_with_hint(file.place(), &path, message, "keep one of them");
                None
            }
            (None, Some(node)) => PickerConfig::inline(node, &format!("{path}.inline"), report),
            (Some(name), None) => match folder {
                None => {
                    report.error_with_hint(
                        file.place(),
                        &format!("{path}.file"),
                        "only a document that is a file itself can name another file",
                        "put the picker's document below `inline`",
                    );
                    None
                }
                Some(folder) => match PickerConfig::load(&folder.join(name)) {
                    Ok(mut config) => {
                        report.adopt(std::mem::take(&mut config.warnings));
                        Some(config)
                    }
                    Err(errors) => {
                        report.adopt(errors);
                        None
                    }
                },
            },
        };
    }
}
