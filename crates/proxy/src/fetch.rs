//! Questions of our own to endpoints: metrics and model lists.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use gateway::{Fetch, FetchError, Fetched};
use types::{EndpointAddress, EndpointId};

use crate::timer::{Timer, deadline_in};
use crate::upstream::{HeadFault, Http1Body, Means, Pool, Progress, UpstreamTls, exchange};

/// Idle connections of questions are kept for as long as engines do (uvicorn: 5 s).
const IDLE_MAX: Duration = Duration::from_secs(3);

/// Gets documents from endpoints over connections of its own.
pub struct Fetcher {
    connections: Pool,
    authorization: Option<Rc<str>>,
}

impl Fetcher {
    /// * `authorization`: value of the `Authorization` header, for engines that ask for a key.
    pub fn new(authorization: Option<Rc<str>>) -> Self {
        Self { connections: Pool::default(), authorization }
    }

    /// The same for gateways of other clusters.
    pub fn far(tls: Option<UpstreamTls>) -> Self {
        Self { connections: Pool::new(Means { tls, is_far: true }), authorization: None }
    }
}

impl Fetch for Fetcher {
    async fn get(
        &self,
        address: &EndpointAddress,
        path: &str,
        authorization: Option<&str>,
        bytes_max: usize,
        timeout: Duration,
    ) -> Result<Fetched, FetchError> {
        let mut timer = Timer::default();
        let deadline = deadline_in(timeout);
        let mut whole = Timer::default();
        whole
            .within(
                deadline,
                self.get_untimed(address, path, authorization, bytes_max, timeout, &mut timer),
            )
            .await
            .unwrap_or(Err(FetchError::Timeout))
    }
}

impl Fetcher {
    async fn get_untimed(
        &self,
        address: &EndpointAddress,
        path: &str,
        authorization: Option<&str>,
        bytes_max: usize,
        timeout: Duration,
        timer: &mut Timer,
    ) -> Result<Fetched, FetchError> {
        let key = key_of(address);
        let mut head = format!(
            "GET {}{path} HTTP/1.1\r\nhost: {}\r\naccept: */*\r\nuser-agent: wicketgate\r\n",
            address.path_prefix(),
            address.authority()
        );
        if let Some(authorization) = authorization.or(self.authorization.as_deref()) {
            head.push_str(&format!("authorization: {authorization}\r\n"));
        }
        head.push_str("\r\n");
        let mut reused = self.connections.take(key, IDLE_MAX);
        loop {
            let connection = match reused.take() {
                Some(connection) => connection,
                None => self
                    .connections
                    .open(address, timeout, timer)
                    .await
                    .map_err(|_| FetchError::Connect)?,
            };
            let mut early = Vec::new();
            let parts = [head.as_bytes(), &[]];
            match exchange(
                connection,
                key,
                &self.connections,
                parts,
                deadline_in(timeout),
                timer,
                &mut early,
            )
            .await
            {
                Ok((head, body)) => {
                    let body = read_all(body, early, bytes_max).await?;
                    return Ok(Fetched { status: head.status, body });
                }
                Err(unanswered) if unanswered.stale_connection => {}
                Err(unanswered) if matches!(unanswered.fault, HeadFault::Timeout) => {
                    return Err(FetchError::Timeout);
                }
                Err(_) => return Err(FetchError::Broken),
            }
        }
    }
}

/// Connections of this pool are told apart by address; it is not shared with traffic.
fn key_of(address: &EndpointAddress) -> EndpointId {
    use std::hash::{Hash, Hasher};
    let mut hasher = std::hash::DefaultHasher::new();
    address.hash(&mut hasher);
    EndpointId((hasher.finish() >> 32) as u32)
}

async fn read_all(
    mut body: Http1Body,
    mut read: Vec<u8>,
    bytes_max: usize,
) -> Result<Bytes, FetchError> {
    loop {
        if read.len() > bytes_max {
            return Err(FetchError::TooLarge(bytes_max));
        }
        let step = std::future::poll_fn(|cx| {
            body.poll(cx, &mut |bytes: &[u8], runs: &[std::ops::Range<usize>]| {
                for run in runs {
                    read.extend_from_slice(&bytes[run.clone()]);
                }
            })
        });
        match step.await {
            Ok(Progress::Payload) => {}
            Ok(Progress::End) => return Ok(read.into()),
            Err(_) => return Err(FetchError::Broken),
        }
    }
}
