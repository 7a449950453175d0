//! Idle connections, by endpoint; one pool for each thread, so it needs no lock.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::Instant;
use types::{EndpointAddress, EndpointId};

use super::connection::{ConnectError, Connection, Means};
use crate::timer::{Timer, deadline_in};

/// Most idle connections that one thread keeps to one endpoint.
const IDLE_MAX: usize = 1024;

/// Connections of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    idle: Rc<RefCell<HashMap<EndpointId, Vec<Connection>>>>,
    means: Rc<Means>,
}

impl Pool {
    pub(crate) fn new(means: Means) -> Self {
        Self { idle: Rc::default(), means: Rc::new(means) }
    }

    /// An idle connection to the endpoint that is younger than `idle_max` and still open.
    ///
    /// The last one used comes first: it is the least likely to be closed by the endpoint.
    pub(crate) fn take(&self, endpoint: EndpointId, idle_max: Duration) -> Option<Connection> {
        let mut idle = self.idle.borrow_mut();
        let connections = idle.get_mut(&endpoint)?;
        let now = Instant::now();
        while let Some(mut connection) = connections.pop() {
            if now.duration_since(connection.idle_since) < idle_max && connection.is_fresh() {
                connection.reused = true;
                return Some(connection);
            }
        }
        None
    }

    /// Opens a connection within `timeout`.
    pub(crate) async fn open(
        &self,
        address: &EndpointAddress,
        timeout: Duration,
        timer: &mut Timer,
    ) -> Result<Connection, ConnectError> {
        timer
            .within(deadline_in(timeout), Connection::open(address, &self.means))
            .await
            .unwrap_or(Err(ConnectError::Timeout))
    }

    /// Takes back a connection whose answer was read to its end.
    pub(crate) fn put(&self, endpoint: EndpointId, mut connection: Connection) {
        connection.idle_since = Instant::now();
        let mut idle = self.idle.borrow_mut();
        let connections = idle.entry(endpoint).or_default();
        if connections.len() < IDLE_MAX {
            connections.push(connection);
        }
    }

    /// Closes what was idle for longer than `idle_max`.
    pub(crate) fn sweep(&self, idle_max: Duration) {
        let now = Instant::now();
        self.idle.borrow_mut().retain(|_, connections| {
            connections.retain(|connection| now.duration_since(connection.idle_since) < idle_max);
            !connections.is_empty()
        });
    }
}
