//! `vllm:lora_requests_info`: the value is the time of the report, the report is in the labels, and
//! old reports stay on the page.

use types::{AdapterId, LoraMetrics};

use super::Anomalies;
use crate::exposition::{Labels, Sample};

/// Names read from one list; more adapters than this are not in requests at once.
const NAMES_MAX: usize = 1024;

/// The newest report so far.
#[derive(Debug, Default)]
pub(super) struct LatestLora<'a>(Option<(f64, Labels<'a>)>);

impl<'a> LatestLora<'a> {
    pub(super) fn take(&mut self, sample: &Sample<'a>, anomalies: &mut Anomalies) {
        if !sample.value.is_finite() || sample.value < 0.0 {
            anomalies.rejected_values += 1;
        } else if self.0.is_none_or(|(newest, _)| sample.value >= newest) {
            self.0 = Some((sample.value, sample.labels));
        }
    }

    pub(super) fn into_metrics(self, anomalies: &mut Anomalies) -> Option<LoraMetrics> {
        let (_, labels) = self.0?;
        let max = labels.get(b"max_lora");
        let max = max.as_deref().and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        let Some(max) = max else {
            anomalies.rejected_values += 1;
            return None;
        };
        let mut names = |label: &[u8]| adapters(labels, label, anomalies);
        Some(LoraMetrics {
            max,
            running: names(b"running_lora_adapters"),
            waiting: names(b"waiting_lora_adapters"),
        })
    }
}

/// Names between commas, each once; no name is no adapter.
fn adapters(labels: Labels<'_>, label: &[u8], anomalies: &mut Anomalies) -> Vec<AdapterId> {
    let list = labels.get(label).unwrap_or_default();
    let mut adapters = Vec::new();
    for name in list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).take(NAMES_MAX) {
        match std::str::from_utf8(name) {
            Ok("") => {}
            Ok(name) => {
                let adapter = AdapterId::of(name);
                if !adapters.contains(&adapter) {
                    adapters.push(adapter);
                }
            }
            Err(_) => anomalies.rejected_values += 1,
        }
    }
    adapters
}
