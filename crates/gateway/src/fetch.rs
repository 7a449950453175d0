//! What the gateway asks of endpoints on its own behalf, without knowing how it is carried.

use std::time::Duration;

use bytes::Bytes;
use types::EndpointAddress;

/// An answer to a question of ours.
#[derive(Clone, Debug)]
pub struct Fetched {
    pub status: u16,
    pub body: Bytes,
}

/// Why there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    #[error("cannot connect")]
    Connect,
    #[error("no answer in time")]
    Timeout,
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the answer is broken")]
    Broken,
}

/// Gets small documents from endpoints: metrics and model lists.
pub trait Fetch: 'static {
    /// Answers within `timeout` with at most `bytes_max` bytes of body.
    ///
    /// * `authorization`: the endpoint's own; `None`: the one that holds for all.
    fn get(
        &self,
        address: &EndpointAddress,
        path: &str,
        authorization: Option<&str>,
        bytes_max: usize,
        timeout: Duration,
    ) -> impl Future<Output = Result<Fetched, FetchError>>;
}
