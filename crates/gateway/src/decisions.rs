//! The last decisions, each as a receipt: who was there, what was said of each, who was chosen.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use sched::Receipt;
use telemetry::clock;

use crate::catalog::Target;
use crate::exchange::RequestMeta;
use crate::exchange::placement::PromptView;
use crate::explain::DecisionView;

/// Receipts that are kept.
const KEPT: usize = 256;

/// A ring of the last receipts. Its places are used again, so keeping one allocates nothing.
#[derive(Debug)]
pub(crate) struct Decisions {
    places: Vec<Mutex<Option<Decision>>>,
    next: AtomicUsize,
}

/// One receipt with the request it belongs to.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) number: usize,
    pub(crate) time: SystemTime,
    pub(crate) request_id: String,
    pub(crate) target: Target,
    pub(crate) route: openai::Route,
    pub(crate) prompt: PromptView,
    pub(crate) took: Duration,
    pub(crate) receipt: Receipt,
}

impl Default for Decisions {
    fn default() -> Self {
        Self { places: (0..KEPT).map(|_| Mutex::default()).collect(), next: AtomicUsize::new(0) }
    }
}

impl Decisions {
    /// Keeps a decision in place of the oldest; swaps the receipt's memory for that of the old one.
    pub(crate) fn record(
        &self,
        meta: &RequestMeta,
        target: &Target,
        prompt: &PromptView,
        took: Duration,
        receipt: &mut Receipt,
    ) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(place) = self.places.get(number % KEPT) else { return };
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        match place.as_mut() {
            Some(kept) => {
                kept.number = number;
                kept.time = clock::wall();
                kept.request_id.clear();
                kept.request_id.push_str(meta.id.as_str());
                kept.target.clone_from(target);
                kept.route = meta.route;
                kept.prompt = *prompt;
                kept.took = took;
                std::mem::swap(&mut kept.receipt, receipt);
            }
            None => {
                *place = Some(Decision {
                    number,
                    time: clock::wall(),
                    request_id: meta.id.as_str().to_owned(),
                    target: target.clone(),
                    route: meta.route,
                    prompt: *prompt,
                    took,
                    receipt: std::mem::take(receipt),
                });
            }
        }
    }

    /// The last decisions, newest first; with `request_id` only that request's.
    pub(crate) fn views(&self, request_id: Option<&str>, most: usize) -> Vec<DecisionView> {
        let mut views: Vec<(usize, DecisionView)> = self
            .places
            .iter()
            .filter_map(|place| {
                let place = place.lock().unwrap_or_else(PoisonError::into_inner);
                let decision = place.as_ref()?;
                request_id
                    .is_none_or(|id| id == decision.request_id)
                    .then(|| (decision.number, DecisionView::of(decision)))
            })
            .collect();
        views.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        views.truncate(most);
        views.into_iter().map(|(_, view)| view).collect()
    }
}
