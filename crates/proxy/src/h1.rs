//! HTTP/1.1 towards clients: a strict gate, one request at a time, nothing held that is not needed.

mod chunked;
mod connection;
mod gate;
mod inbound;
mod outbound;

pub(crate) use chunked::Chunked;
pub(crate) use connection::serve;
pub(crate) use gate::{HeadLimits, parse_length};
