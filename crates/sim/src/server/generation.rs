//! A request between its HTTP connection and the engine.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use types::Timestamp;

use super::{Server, Shared};
use crate::engine::{RequestId, RequestSpec, SubmitError};
use crate::metrics::Finish;

/// How far the choices of one HTTP request have come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Prompt tokens that the first choice found in the prefix cache.
    pub(super) cached_tokens: u32,
    pub(super) choices: Vec<ChoiceProgress>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChoiceProgress {
    pub(super) tokens: u32,
    pub(super) finished: bool,
}

impl Progress {
    pub(super) fn finished(&self) -> bool {
        self.choices.iter().all(|choice| choice.finished)
    }
}

/// The engine's side: who waits for which request.
#[derive(Debug, Default)]
pub(super) struct Streams {
    waiting: HashMap<RequestId, Listener>,
}

#[derive(Debug)]
struct Listener {
    progress: Arc<watch::Sender<Progress>>,
    choice: usize,
    finish: Finish,
    last_token: Option<Timestamp>,
}

impl Streams {
    pub(super) fn admitted(&mut self, id: RequestId, cached_tokens: u32) {
        if let Some(listener) = self.waiting.get(&id)
            && listener.choice == 0
            && listener.last_token.is_none()
        {
            // The reader learns it with the first token.
            listener.progress.send_if_modified(|progress| {
                progress.cached_tokens = cached_tokens;
                false
            });
        }
    }

    /// One more token; returns the time since the one before.
    pub(super) fn token(&mut self, id: RequestId, now: Timestamp) -> Option<Duration> {
        let listener = self.waiting.get_mut(&id)?;
        listener.progress.send_modify(|progress| progress.choices[listener.choice].tokens += 1);
        let last = listener.last_token.replace(now)?;
        Some(now.since(last))
    }

    pub(super) fn finished(&mut self, id: RequestId) -> Finish {
        let Some(listener) = self.waiting.remove(&id) else { return Finish::Length };
        listener.progress.send_modify(|progress| progress.choices[listener.choice].finished = true);
        listener.finish
    }
}

/// The connection's side. Dropping it cancels what is not finished.
pub(super) struct Generation {
    server: Shared,
    ids: Vec<RequestId>,
    progress: watch::Receiver<Progress>,
}

/// The server process ended.
#[derive(Debug)]
pub(super) struct Died;

impl Generation {
    /// Submits one engine request for each choice. `specs` come without id and arrival.
    pub(super) fn start(
        server: &Shared,
        specs: Vec<(RequestSpec, Finish)>,
    ) -> Result<Self, SubmitError> {
        let progress =
            Progress { cached_tokens: 0, choices: vec![ChoiceProgress::default(); specs.len()] };
        let sender = Arc::new(watch::Sender::new(progress));
        let mut generation =
            Self { server: server.clone(), ids: Vec::new(), progress: sender.subscribe() };
        let now = server.clock.now();
        let mut core = server.core();
        let mut refused = None;
        for (choice, (mut spec, finish)) in specs.into_iter().enumerate() {
            core.next_id += 1;
            let id = RequestId(core.next_id);
            (spec.id, spec.arrived) = (id, now);
            if let Err(error) = core.engine.submit(spec) {
                if error == SubmitError::QueueFull {
                    core.books.rejected();
                }
                refused = Some(error);
                break;
            }
            let progress = sender.clone();
            let listener = Listener { progress, choice, finish, last_token: None };
            core.streams.waiting.insert(id, listener);
            generation.ids.push(id);
        }
        drop(core);
        if let Some(error) = refused {
            return Err(error);
        }
        server.wake.notify_one();
        Ok(generation)
    }

    pub(super) fn now(&mut self) -> Progress {
        self.progress.borrow_and_update().clone()
    }

    /// Waits for the next token or end. Cancel-safe.
    pub(super) async fn changed(&mut self) -> Result<Progress, Died> {
        self.progress.changed().await.map_err(|_| Died)?;
        Ok(self.now())
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        let server: &Server = &self.server;
        let mut core = server.core();
        let mut cancelled = false;
        for id in &self.ids {
            // Ids are not reused after a death: the streams of a dead process are gone.
            if core.streams.waiting.remove(id).is_some() && core.engine.cancel(*id) {
                core.books.aborted();
                cancelled = true;
            }
        }
        drop(core);
        if cancelled {
            server.wake.notify_one();
        }
    }
}
