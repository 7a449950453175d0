//! Which LoRA adapters are on the GPU and in host memory, and what it costs to bring one in.

use std::time::Duration;

use rand::Rng;
use types::AdapterId;

use super::LoraSpec;

/// Adapters by last use, least recent first. Slots are few, so a list is the fastest set.
#[derive(Debug)]
pub(super) struct LoraSlots {
    spec: LoraSpec,
    gpu: Vec<AdapterId>,
    cpu: Vec<AdapterId>,
}

impl LoraSlots {
    pub(super) fn new(spec: LoraSpec) -> Self {
        Self { spec, gpu: Vec::new(), cpu: Vec::new() }
    }

    pub(super) fn resident(&self) -> &[AdapterId] {
        &self.gpu
    }

    /// Uses `adapter` in a step; `in_use` are the step's adapters, which must stay. Returns the
    /// time that loading takes, if it was not resident.
    pub(super) fn acquire(
        &mut self,
        adapter: AdapterId,
        in_use: &[AdapterId],
        rng: &mut impl Rng,
    ) -> Option<Duration> {
        if touch(&mut self.gpu, adapter) {
            touch(&mut self.cpu, adapter);
            return None;
        }
        if self.gpu.len() >= self.spec.gpu_slots as usize {
            let idle = self.gpu.iter().position(|resident| !in_use.contains(resident));
            self.gpu.remove(idle.unwrap_or(0));
        }
        self.gpu.push(adapter);
        let from_disk = self.fetch(adapter, rng).unwrap_or_default();
        Some(from_disk + self.copy_time())
    }

    /// Brings `adapter` into host memory; the time from disk unless it was there. From disk or
    /// hub: 0.3 to 2 s and 1 GB/s.
    pub(super) fn fetch(&mut self, adapter: AdapterId, rng: &mut impl Rng) -> Option<Duration> {
        if touch(&mut self.cpu, adapter) {
            return None;
        }
        if self.cpu.len() >= self.spec.cpu_slots.max(1) as usize {
            self.cpu.remove(0);
        }
        self.cpu.push(adapter);
        let share = f64::from(rng.next_u32()) / f64::from(u32::MAX);
        let seconds = 0.3 + 1.7 * share + self.spec.adapter_bytes as f64 / 1e9;
        Some(Duration::from_secs_f64(seconds))
    }

    pub(super) fn forget(&mut self, adapter: AdapterId) {
        self.gpu.retain(|resident| *resident != adapter);
        self.cpu.retain(|resident| *resident != adapter);
    }

    /// Host memory to GPU: 30 ms and 8 GB/s, 40 ms for rank 16 of an 8B model.
    fn copy_time(&self) -> Duration {
        Duration::from_secs_f64(0.030 + self.spec.adapter_bytes as f64 / 8e9)
    }
}

fn touch(list: &mut [AdapterId], adapter: AdapterId) -> bool {
    let Some(at) = list.iter().position(|resident| *resident == adapter) else { return false };
    list[at..].rotate_left(1);
    true
}
