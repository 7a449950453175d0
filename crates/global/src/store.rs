//! Redis or Valkey as the authority that divides global limits.
//!
//! Every key begins with one hash tag, so that in a cluster of stores they lie together and one script sees them
//! all. Each has an end, so that limits of which nobody speaks any more leave by themselves. Times are the
//! store's, so that clocks of routers do not matter.

#[cfg(test)]
mod tests;

use std::time::Duration;

use fleet::lease::{Answer, Ask, Grant, Key};
use limits::Share;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionInfo, IntoConnectionInfo, Script};

/// Divides; the same arithmetic as [`fleet::lease::Authority`], which a test holds against it.
const SCRIPT: &str = include_str!("store/divide.lua");
const LEAVE: &str = include_str!("store/leave.lua");
/// Buckets of one call: the store serves nobody else meanwhile.
const BUCKETS_AT_ONCE: usize = 100;

/// How the store is reached.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    pub url: String,
    pub username: Option<String>,
    pub password: Option<String>,
    pub prefix: String,
    pub timeout: Duration,
}

/// Why the store gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("`store.url` is no address of a store")]
    Url(#[source] redis::RedisError),
    #[error("the store does not answer")]
    Silent(#[source] redis::RedisError),
    #[error("the store took longer than {0:?}")]
    Late(Duration),
    #[error("the store refuses")]
    Refused(#[source] redis::RedisError),
}

/// The store as one router sees it.
pub struct RedisStore {
    client: Client,
    connection: Option<MultiplexedConnection>,
    divide: Script,
    leave: Script,
    prefix: String,
    timeout: Duration,
    /// What each silent router may spend is kept back.
    reserves: bool,
}

impl RedisStore {
    /// * `reserves`: silent routers go on spending their equal part (`failureMode: safe`).
    ///
    /// # Errors
    /// The URL is none.
    pub fn new(settings: StoreSettings, reserves: bool) -> Result<Self, StoreError> {
        let info: ConnectionInfo =
            settings.url.as_str().into_connection_info().map_err(StoreError::Url)?;
        let mut redis = info.redis_settings().clone();
        if let Some(username) = &settings.username {
            redis = redis.set_username(username);
        }
        if let Some(password) = &settings.password {
            redis = redis.set_password(password);
        }
        let client = Client::open(info.set_redis_settings(redis)).map_err(StoreError::Url)?;
        Ok(Self {
            client,
            connection: None,
            divide: Script::new(SCRIPT),
            leave: Script::new(LEAVE),
            prefix: settings.prefix,
            timeout: settings.timeout,
            reserves,
        })
    }

    /// Asks for parts of limits.
    ///
    /// # Errors
    /// The store does not answer, or refuses. What was not answered is asked for again.
    pub(crate) async fn ask(&mut self, ask: &Ask<Key>) -> Result<Answer<Key>, StoreError> {
        let mut answer =
            Answer { holders: ask.holders, lasts: fleet::lease::LEASE, grants: Vec::new() };
        let mut wants = ask.wants.chunks(BUCKETS_AT_ONCE);
        // Without a want the store still learns that this router is there.
        let first = wants.next().unwrap_or_default();
        for chunk in std::iter::once(first).chain(wants) {
            let mut connection = self.connection().await?;
            let mut call = self.divide.prepare_invoke();
            call.key(self.key("whole")).key(self.key("holders"));
            for want in chunk {
                call.key(self.bucket(&want.key));
            }
            call.arg(ask.holder)
                .arg(ask.holders)
                .arg(u8::from(self.reserves))
                .arg(fleet::lease::LEASE.as_millis() as u64)
                .arg(Share::ALL.parts())
                .arg(ask.leased_for.as_millis() as u64);
            for want in chunk {
                let demand = if want.demand.is_finite() { want.demand.max(0.0) } else { 0.0 };
                call.arg(demand).arg(want.holds.parts());
            }
            let timeout = self.timeout;
            let call = call.invoke_async::<Vec<u32>>(&mut connection);
            let told = match tokio::time::timeout(timeout, call).await {
                Ok(Ok(told)) => told,
                Ok(Err(error)) => return Err(self.broken(error)),
                Err(_) => {
                    self.connection = None;
                    return Err(StoreError::Late(timeout));
                }
            };
            let (holders, shares) = told.split_first().map_or((0, &[][..]), |(h, s)| (*h, s));
            answer.holders = answer.holders.max(holders);
            answer.grants.extend(chunk.iter().zip(shares).map(|(want, share)| Grant {
                key: want.key.clone(),
                share: Share::of_parts(*share),
            }));
        }
        Ok(answer)
    }

    /// Tells that this router is no more.
    pub(crate) async fn leave(&mut self, holder: u64) -> Result<(), StoreError> {
        let mut connection = self.connection().await?;
        let mut call = self.leave.prepare_invoke();
        call.key(self.key("whole")).key(self.key("holders")).arg(holder);
        let timeout = self.timeout;
        let left = tokio::time::timeout(timeout, call.invoke_async::<()>(&mut connection)).await;
        left.map_err(|_| StoreError::Late(timeout))?.map_err(StoreError::Refused)
    }

    /// The one that stands, else a new one.
    async fn connection(&mut self) -> Result<MultiplexedConnection, StoreError> {
        if let Some(connection) = &self.connection {
            return Ok(connection.clone());
        }
        // A first connection may need more than an answer on one that stands.
        let patience = self.timeout * 4;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(patience))
            .set_response_timeout(Some(patience));
        let opening = self.client.get_multiplexed_async_connection_with_config(&config);
        let opened = tokio::time::timeout(patience, opening).await;
        let opened = opened.map_err(|_| StoreError::Late(patience))?;
        let opened = opened.map_err(StoreError::Silent)?;
        self.connection = Some(opened.clone());
        Ok(opened)
    }

    fn broken(&mut self, error: redis::RedisError) -> StoreError {
        let is_silent = error.is_io_error() || error.is_timeout() || error.is_connection_dropped();
        self.connection = None;
        if is_silent { StoreError::Silent(error) } else { StoreError::Refused(error) }
    }

    fn key(&self, name: &str) -> String {
        format!("{{{}}}:{name}", self.prefix)
    }

    /// Parts are told apart by their length, whatever characters names have.
    fn bucket(&self, (rule, bucket): &Key) -> String {
        let mut key = self.key("limit");
        let parts = [
            Some(rule.as_ref()),
            bucket.tenant.as_ref().map(|tenant| tenant.as_str()),
            bucket.key.as_deref(),
            bucket.model.as_ref().map(|model| model.as_str()),
            bucket.route,
        ];
        for part in parts {
            match part {
                Some(part) => key.push_str(&format!(":{}:{part}", part.len())),
                None => key.push_str(":-"),
            }
        }
        key
    }
}
