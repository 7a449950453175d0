//! Which adapters an engine has in host memory, so that a clairvoyant knows what a load will cost.

use sim::engine::LoraSpec;
use types::AdapterId;

/// Mean of what fetching an adapter from disk or hub takes beside its bytes, seconds: the engine
/// model draws 0.3 to 2.
const DISK_SECONDS: f64 = 1.15;

/// Least recently used first, as the engine model keeps them.
#[derive(Debug)]
pub(super) struct HostAdapters {
    spec: LoraSpec,
    held: Vec<AdapterId>,
}

impl HostAdapters {
    pub(super) fn new(spec: LoraSpec) -> Self {
        Self { spec, held: Vec::new() }
    }

    pub(super) fn touch(&mut self, adapter: AdapterId) {
        if let Some(at) = self.held.iter().position(|other| *other == adapter) {
            self.held.remove(at);
        } else if self.held.len() >= self.spec.cpu_slots.max(1) as usize {
            self.held.remove(0);
        }
        self.held.push(adapter);
    }

    /// Expected seconds to bring one onto the GPU that is not there.
    pub(super) fn load_seconds(&self, adapter: AdapterId) -> f64 {
        let bytes = self.spec.adapter_bytes as f64;
        let copy = 0.030 + bytes / 8e9;
        if self.held.contains(&adapter) { copy } else { copy + DISK_SECONDS + bytes / 1e9 }
    }
}
