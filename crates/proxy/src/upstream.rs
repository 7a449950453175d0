//! Connections to endpoints: opened, kept, reused, and read with distrust.

mod connection;
mod h2c;
mod http1;
mod pool;
mod response;
mod tls;

pub(crate) use connection::{ConnectError, Connection, Means};
pub(crate) use h2c::{Failed as H2cFailed, H2cBody, H2cPool, LocalExecutor, fields_of};
pub(crate) use http1::{Http1Body, exchange};
pub(crate) use pool::Pool;
pub(crate) use response::{BodyFault, HeadFault, Progress, ResponseHead};
pub use tls::UpstreamTls;
