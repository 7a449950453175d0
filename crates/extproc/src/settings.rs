//! What a stream is served with.

use std::sync::Arc;

use gateway::Gateway;

use crate::destinations::Destinations;

/// Which of the two steps this process takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Names the model in header fields, for routes to match; chooses no endpoint.
    Router,
    /// Chooses the endpoint.
    Picker,
    #[default]
    Both,
}

impl Role {
    pub fn routes(self) -> bool {
        self != Self::Picker
    }

    pub fn picks(self) -> bool {
        self != Self::Router
    }
}

/// Which paths get an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paths {
    /// Those of the inference APIs and the document's `allowedPaths`: engines leave dangerous paths
    /// open next to the useful ones.
    #[default]
    Known,
    /// Every path that the proxy's routes lead here.
    Any,
}

/// Most endpoints in one pick: as many as the picker orders.
pub const DESTINATIONS_MAX: usize = 4;

#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub role: Role,
    pub paths: Paths,
    /// Endpoints in one pick, 1 to [`DESTINATIONS_MAX`]; more than one only where the proxy can walk
    /// the list.
    pub destinations: usize,
    /// Whether `x-llm-d-model-name-rewrite` (and its former name) is obeyed. Only behind a proxy that removes a client's own: the
    /// field leads past whatever was decided by the model in the body.
    pub trust_rewrite: bool,
    /// Value of `Authorization` towards endpoints; `None` leaves the client's.
    pub endpoint_authorization: Option<Box<str>>,
    /// Memory that the process may use, if that is known.
    pub memory_bytes: Option<u64>,
}

/// What all streams share.
pub struct Picker {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) settings: Settings,
    pub(crate) destinations: Destinations,
}

impl Picker {
    pub fn new(gateway: Arc<Gateway>, settings: Settings) -> Arc<Self> {
        Arc::new(Self { gateway, settings, destinations: Destinations::default() })
    }

    /// Looks up the names of endpoints, now and from time to time. Never ends.
    pub async fn keep_resolved(self: Arc<Self>) {
        self.destinations.keep_resolved(&self.gateway).await;
    }
}
