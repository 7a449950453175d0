//! What moves the connections of one batch, to be ended with it.
//!
//! The exporter's runtime runs only while a batch is under way. A task that was merely told to end would
//! hold its connection open until the next batch, which may never come.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::rt::Executor;
use tokio::task::JoinSet;

/// Cheap to clone; clones share the tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    /// Ends all of them, and waits until their connections are closed.
    pub(crate) async fn end(&self) {
        let mut tasks = std::mem::take(&mut *self.lock());
        tasks.shutdown().await;
    }

    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        // A panic cannot leave a set half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> Executor<F> for Tasks
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, task: F) {
        // How a connection ended is told by the request on it.
        self.lock().spawn(async move {
            task.await;
        });
    }
}
