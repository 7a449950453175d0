//! The last decisions, each as a receipt: who was there, what was said of each, who was chosen.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use sched::Receipt;
use serde::Serialize;
use telemetry::clock;

use crate::catalog::Target;
use crate::exchange::RequestMeta;
use crate::exchange::placement::PromptView;
use crate::explain::DecisionView;
use crate::shadow::ShadowChoice;

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
    pub(crate) decided: Decided,
    pub(crate) receipt: Receipt,
}

/// What a decision was about, beside its receipt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decided {
    pub(crate) prompt: PromptView,
    pub(crate) took: Duration,
    /// Blocks of the prompt that the chosen endpoint was taken to hold.
    pub(crate) matched_blocks: u32,
    /// Expected time to the first token there, milliseconds.
    pub(crate) predicted_ms: f32,
    /// `None`: no shadow policy rated it.
    pub(crate) shadow: Option<ShadowChoice>,
}

/// One decision in a line. The names of the fields are stable.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DecisionSummary {
    /// Counts decisions; asks for the receipt.
    pub(crate) number: usize,
    pub(crate) time: String,
    pub(crate) request_id: String,
    pub(crate) model: String,
    pub(crate) pool: String,
    /// `null`: it has left since.
    pub(crate) endpoint: Option<String>,
    pub(crate) candidates: usize,
    pub(crate) prompt_tokens: u32,
    pub(crate) prompt_blocks: u32,
    pub(crate) matched_blocks: u32,
    pub(crate) predicted_ttft_ms: f32,
    pub(crate) took_us: f64,
    /// Whether the policy on trial agreed; absent where it rated nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shadow_same: Option<bool>,
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
        decided: Decided,
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
                kept.decided = decided;
                std::mem::swap(&mut kept.receipt, receipt);
            }
            None => {
                *place = Some(Decision {
                    number,
                    time: clock::wall(),
                    request_id: meta.id.as_str().to_owned(),
                    target: target.clone(),
                    route: meta.route,
                    decided,
                    receipt: std::mem::take(receipt),
                });
            }
        }
    }

    /// The last decisions, newest first; with `request_id` only that request's.
    pub(crate) fn views(&self, request_id: Option<&str>, most: usize) -> Vec<DecisionView> {
        let wanted = |decision: &Decision| request_id.is_none_or(|id| id == decision.request_id);
        self.newest(KEPT)
            .filter_map(|number| self.with(number, |d| wanted(d).then(|| DecisionView::of(d)))?)
            .take(most)
            .collect()
    }

    /// The same without what was said of each candidate: a list's worth, however large the pool.
    pub(crate) fn briefs(&self, most: usize) -> Vec<DecisionView> {
        self.newest(most).filter_map(|number| self.with(number, DecisionView::brief)).collect()
    }

    /// The last decisions in a line each, newest first.
    pub(crate) fn summaries(&self, most: usize) -> Vec<DecisionSummary> {
        self.newest(most).filter_map(|number| self.with(number, DecisionSummary::of)).collect()
    }

    /// Looks at the decision with this number, if it is still kept.
    pub(crate) fn with<T>(&self, number: usize, look: impl FnOnce(&Decision) -> T) -> Option<T> {
        let place = self.places.get(number % KEPT)?;
        let place = place.lock().unwrap_or_else(PoisonError::into_inner);
        place.as_ref().filter(|decision| decision.number == number).map(look)
    }

    /// Numbers of the last decisions, newest first.
    fn newest(&self, most: usize) -> impl Iterator<Item = usize> {
        let next = self.next.load(Ordering::Relaxed);
        (next.saturating_sub(most.min(KEPT))..next).rev()
    }
}

impl DecisionSummary {
    fn of(decision: &Decision) -> Self {
        let Decision { target, decided, receipt, .. } = decision;
        let chosen = receipt.order.first().and_then(|endpoint| target.pool.member(*endpoint));
        Self {
            number: decision.number,
            time: clock::rfc3339(decision.time),
            request_id: decision.request_id.clone(),
            model: target.name.as_str().to_owned(),
            pool: target.pool.name.as_str().to_owned(),
            endpoint: chosen.map(|chosen| chosen.member.authority.clone()),
            candidates: receipt.candidates.len(),
            prompt_tokens: decided.prompt.tokens,
            prompt_blocks: decided.prompt.blocks,
            matched_blocks: decided.matched_blocks,
            predicted_ttft_ms: (decided.predicted_ms * 10.0).round() / 10.0,
            took_us: decided.took.as_nanos() as f64 / 1000.0,
            shadow_same: decided.shadow.map(|choice| choice.is_same),
        }
    }
}
