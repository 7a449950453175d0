//! Traces to a collector by OTLP, over HTTP/1.1 (`http/protobuf`) or gRPC.
//!
//! A thread of its own takes requests out of the tracer's queue, makes spans of them and sends them in
//! batches. Nothing here is seen by a request: when the collector is slow or away, the queue fills and
//! what comes then is dropped and counted.

mod environment;
mod exporter;
mod settings;
mod spans;
mod tasks;
mod transport;
pub mod wire;

pub use exporter::Exporter;
pub use settings::{Protocol, Settings, SettingsError};
