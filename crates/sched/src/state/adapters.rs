//! Which LoRA adapters an endpoint has, could take, and can serve at all.
//!
//! Engines report adapters with requests only. One that is idle stays on the GPU until a newer
//! one needs its slot, so we keep the engine's own LRU order of what it was sent or reported.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use types::{AdapterId, LoraMetrics, Timestamp};

use crate::LoraFit;

/// Adapters remembered on an engine that does not say how many fit: vLLM's usual upper setting.
const RESIDENT_DEFAULT: usize = 8;
/// Adapters remembered at most, whatever the engine claims.
const RESIDENT_MAX: usize = 256;

/// Readers load one immutable view; writers replace it.
#[derive(Debug, Default)]
pub(super) struct Adapters {
    view: ArcSwap<View>,
    writer: Mutex<()>,
}

/// How an adapter fits, by the engine's last report and by our account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fit {
    pub(super) reported: LoraFit,
    pub(super) accounted: LoraFit,
}

/// The adapters of one endpoint, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdapterCensus {
    /// On the GPU by our account, idle ones included.
    pub resident: u32,
    /// With requests that run, as the engine said last.
    pub running: u32,
    /// With requests that wait for a slot, likewise.
    pub waiting: u32,
    /// Slots on the GPU; `None`: the engine does not say.
    pub max: Option<u32>,
}

#[derive(Clone, Debug, Default)]
struct View {
    /// Sorted; `None` until told.
    served: Option<Arc<[AdapterId]>>,
    reported: Option<Arc<LoraMetrics>>,
    resident: Vec<Arc<Resident>>,
}

#[derive(Debug)]
struct Resident {
    adapter: AdapterId,
    used_at: AtomicU64,
}

impl Adapters {
    pub(super) fn record_use(&self, adapter: AdapterId, now: Timestamp) {
        if self.view.load().touch(adapter, now) {
            return;
        }
        let _guard = self.lock();
        let mut view = View::clone(&self.view.load());
        view.insert(adapter, now);
        self.view.store(Arc::new(view));
    }

    pub(super) fn record_scrape(&self, lora: Option<&LoraMetrics>, now: Timestamp) {
        let current = self.view.load();
        let all_known = lora.is_none_or(|lora| {
            // No short cut: each running adapter is to be touched.
            lora.running.iter().filter(|adapter| !current.touch(**adapter, now)).count() == 0
        });
        if all_known && current.reported.as_deref() == lora {
            return;
        }
        let _guard = self.lock();
        let mut view = View::clone(&self.view.load());
        view.reported = lora.cloned().map(Arc::new);
        for adapter in lora.into_iter().flat_map(|lora| &lora.running) {
            view.insert(*adapter, now);
        }
        view.trim();
        self.view.store(Arc::new(view));
    }

    pub(super) fn set_served(&self, served: &[AdapterId]) {
        let mut served = served.to_vec();
        served.sort_unstable();
        if self.view.load().served.as_deref() == Some(&served[..]) {
            return;
        }
        let _guard = self.lock();
        let mut view = View::clone(&self.view.load());
        view.served = Some(served.into());
        self.view.store(Arc::new(view));
    }

    pub(super) fn fit(&self, adapter: AdapterId) -> Fit {
        let view = self.view.load();
        let reported = view.reported_fit(adapter);
        Fit { reported, accounted: view.accounted_fit(adapter, reported) }
    }

    /// How many it has and could have.
    pub(super) fn census(&self) -> AdapterCensus {
        let view = self.view.load();
        let count = |adapters: &[AdapterId]| u32::try_from(adapters.len()).unwrap_or(u32::MAX);
        let reported = view.reported.as_deref();
        AdapterCensus {
            resident: u32::try_from(view.resident.len()).unwrap_or(u32::MAX),
            running: reported.map_or(0, |lora| count(&lora.running)),
            waiting: reported.map_or(0, |lora| count(&lora.waiting)),
            max: reported.map(|lora| lora.max),
        }
    }

    /// Those that count as resident.
    pub(super) fn resident(&self) -> Vec<AdapterId> {
        self.view.load().resident.iter().map(|resident| resident.adapter).collect()
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl View {
    /// The reference's formula, which knows only adapters with requests.
    fn reported_fit(&self, adapter: AdapterId) -> LoraFit {
        let Some(lora) = self.reported.as_deref() else { return LoraFit::Unknown };
        if lora.running.contains(&adapter) {
            LoraFit::Resident
        } else if lora.running.len() + lora.waiting.len() < lora.max as usize {
            LoraFit::Room
        } else if lora.waiting.contains(&adapter) {
            LoraFit::Waiting
        } else {
            LoraFit::Full
        }
    }

    fn accounted_fit(&self, adapter: AdapterId, reported: LoraFit) -> LoraFit {
        if self.served.as_ref().is_some_and(|served| served.binary_search(&adapter).is_err()) {
            LoraFit::NotServed
        } else if self.resident.iter().any(|resident| resident.adapter == adapter) {
            LoraFit::Resident
        } else {
            match reported {
                LoraFit::Unknown => LoraFit::Unknown,
                _ if self.resident.len() < self.resident_max() => LoraFit::Room,
                _ if self.is_awaited(adapter) => LoraFit::Waiting,
                _ => LoraFit::Full,
            }
        }
    }

    fn is_awaited(&self, adapter: AdapterId) -> bool {
        self.reported.as_ref().is_some_and(|lora| lora.waiting.contains(&adapter))
    }

    fn touch(&self, adapter: AdapterId, now: Timestamp) -> bool {
        let found = self.resident.iter().find(|resident| resident.adapter == adapter);
        if let Some(resident) = found {
            resident.used_at.fetch_max(now.as_nanos(), Ordering::Relaxed);
        }
        found.is_some()
    }

    fn insert(&mut self, adapter: AdapterId, now: Timestamp) {
        if !self.touch(adapter, now) {
            let used_at = AtomicU64::new(now.as_nanos());
            self.resident.push(Arc::new(Resident { adapter, used_at }));
            self.trim();
        }
    }

    /// Forgets the least recently used beyond what fits; of equals the one remembered first.
    fn trim(&mut self) {
        while self.resident.len() > self.resident_max() {
            let used_at = |resident: &Arc<Resident>| resident.used_at.load(Ordering::Relaxed);
            let oldest = (0..self.resident.len()).min_by_key(|at| used_at(&self.resident[*at]));
            let Some(oldest) = oldest else { return };
            self.resident.remove(oldest);
        }
    }

    fn resident_max(&self) -> usize {
        match self.reported.as_deref() {
            Some(lora) => (lora.max as usize).min(RESIDENT_MAX),
            None => RESIDENT_DEFAULT,
        }
    }
}
