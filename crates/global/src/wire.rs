//! A heartbeat on the wire.
//!
//! Protocol buffers: fields that a later version adds are passed over by an earlier one, and those that an earlier
//! one does not send read as not known. All numbers have a fixed length and are written even if they are zero, so
//! a report is as long for an idle cluster as for a busy one.

use std::time::Duration;

use fleet::shaping::{Money, Price};
use fleet::{Adapter, Heartbeat, ModelLoad, Sketch};
use prost::Message;
use types::{ModelName, Ratio};

/// Version of these messages; one router understands this and the one before.
const VERSION: u32 = 1;

/// What a cluster tells.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Beat {
    #[prost(fixed32, optional, tag = "1")]
    pub(crate) version: Option<u32>,
    #[prost(string, tag = "2")]
    pub(crate) cluster: String,
    #[prost(fixed64, optional, tag = "3")]
    epoch: Option<u64>,
    #[prost(fixed64, optional, tag = "4")]
    pub(crate) sequence: Option<u64>,
    #[prost(fixed64, optional, tag = "5")]
    uptime_us: Option<u64>,
    #[prost(fixed64, optional, tag = "6")]
    generation: Option<u64>,
    #[prost(fixed32, optional, tag = "7")]
    draining: Option<u32>,
    #[prost(float, optional, tag = "8")]
    carbon: Option<f32>,
    #[prost(fixed64, optional, tag = "9")]
    price_input: Option<u64>,
    #[prost(fixed64, optional, tag = "10")]
    price_output: Option<u64>,
    #[prost(message, repeated, tag = "11")]
    models: Vec<Model>,
}

#[derive(Clone, PartialEq, Message)]
struct Model {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    adapters: Vec<Named>,
    #[prost(fixed32, optional, tag = "3")]
    endpoints_ready: Option<u32>,
    #[prost(fixed32, optional, tag = "4")]
    in_flight_max: Option<u32>,
    #[prost(fixed32, optional, tag = "5")]
    in_flight: Option<u32>,
    #[prost(fixed32, optional, tag = "6")]
    waiting: Option<u32>,
    #[prost(fixed64, optional, tag = "7")]
    kv_capacity_tokens: Option<u64>,
    #[prost(float, optional, tag = "8")]
    kv_used: Option<f32>,
    #[prost(float, optional, tag = "9")]
    arrivals_per_second: Option<f32>,
    #[prost(float, optional, tag = "10")]
    finished_per_second: Option<f32>,
    #[prost(float, optional, tag = "11")]
    drain_per_second: Option<f32>,
    #[prost(float, optional, tag = "12")]
    prefill_tokens_per_second: Option<f32>,
    #[prost(fixed64, optional, tag = "13")]
    ttft_base_us: Option<u64>,
    #[prost(float, optional, tag = "14")]
    failed: Option<f32>,
    #[prost(float, optional, tag = "15")]
    shed: Option<f32>,
    #[prost(fixed32, optional, tag = "16")]
    context_max: Option<u32>,
    #[prost(fixed32, repeated, tag = "17")]
    prefixes: Vec<u32>,
}

#[derive(Clone, PartialEq, Message)]
struct Named {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(fixed32, optional, tag = "2")]
    is_resident: Option<u32>,
}

/// What a router says to it.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Acknowledged {
    #[prost(fixed64, optional, tag = "1")]
    pub(crate) sequence: Option<u64>,
    /// Why it was not taken.
    #[prost(string, optional, tag = "2")]
    pub(crate) refused: Option<String>,
}

/// Why a message is no heartbeat.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error("the report cannot be read")]
    Decode(#[from] prost::DecodeError),
    #[error("the report has no version: is it from another program?")]
    NoVersion,
    #[error("`{field}` of model `{model}` is no name of a model")]
    Name { model: String, field: &'static str },
    #[error("`{field}` of model `{model}` is not between 0 and 1")]
    Share { model: String, field: &'static str },
}

impl Beat {
    pub(crate) fn new(cluster: &str, heartbeat: &Heartbeat) -> Self {
        Self {
            version: Some(VERSION),
            cluster: cluster.to_owned(),
            epoch: Some(heartbeat.epoch),
            sequence: Some(heartbeat.sequence),
            uptime_us: Some(micros(heartbeat.uptime)),
            generation: Some(heartbeat.generation),
            draining: Some(heartbeat.is_draining.into()),
            carbon: heartbeat.carbon,
            price_input: heartbeat.price.map(|price| price.input.0),
            price_output: heartbeat.price.map(|price| price.output.0),
            models: heartbeat.models.iter().map(Model::new).collect(),
        }
    }

    /// Reads a message.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, WireError> {
        let beat = Self::decode(bytes)?;
        beat.version.ok_or(WireError::NoVersion)?;
        Ok(beat)
    }

    /// What it tells, checked for its form; [`Heartbeat::check`] looks at the numbers.
    pub(crate) fn heartbeat(self) -> Result<Heartbeat, WireError> {
        let price = self.price_input.zip(self.price_output);
        Ok(Heartbeat {
            epoch: self.epoch.unwrap_or_default(),
            sequence: self.sequence.unwrap_or_default(),
            uptime: Duration::from_micros(self.uptime_us.unwrap_or_default()),
            generation: self.generation.unwrap_or_default(),
            is_draining: self.draining.unwrap_or_default() != 0,
            carbon: self.carbon,
            price: price
                .map(|(input, output)| Price { input: Money(input), output: Money(output) }),
            models: self.models.into_iter().map(Model::load).collect::<Result<_, _>>()?,
        })
    }
}

impl Model {
    fn new(load: &ModelLoad) -> Self {
        let adapters = load.adapters.iter().map(|adapter| Named {
            name: adapter.name.as_str().to_owned(),
            is_resident: Some(adapter.is_resident.into()),
        });
        Self {
            name: load.name.as_str().to_owned(),
            adapters: adapters.collect(),
            endpoints_ready: Some(load.endpoints_ready),
            in_flight_max: Some(load.in_flight_max),
            in_flight: Some(load.in_flight),
            waiting: Some(load.waiting),
            kv_capacity_tokens: Some(load.kv_capacity_tokens),
            kv_used: Some(load.kv_used.get()),
            arrivals_per_second: Some(load.arrivals_per_second),
            finished_per_second: Some(load.finished_per_second),
            drain_per_second: Some(load.drain_per_second),
            prefill_tokens_per_second: Some(load.prefill_tokens_per_second),
            ttft_base_us: Some(micros(load.ttft_base)),
            failed: Some(load.failed.get()),
            shed: Some(load.shed.get()),
            context_max: Some(load.context_max),
            prefixes: load.prefixes.hashes().to_vec(),
        }
    }

    fn load(self) -> Result<ModelLoad, WireError> {
        let model = self.name;
        let name = |text: &str, field| {
            let fits = !text.is_empty()
                && text.len() <= 512
                && text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
            let error = || WireError::Name { model: shown(&model), field };
            fits.then(|| ModelName::new(text)).ok_or_else(error)
        };
        let share = |value: Option<f32>, field| {
            let ratio = Ratio::new(f64::from(value.unwrap_or_default()));
            ratio.map_err(|_| WireError::Share { model: shown(&model), field })
        };
        let adapter = |named: &Named| {
            Ok(Adapter {
                name: name(&named.name, "adapters")?,
                is_resident: named.is_resident.unwrap_or_default() != 0,
            })
        };
        Ok(ModelLoad {
            name: name(&model, "name")?,
            adapters: self.adapters.iter().map(adapter).collect::<Result<_, WireError>>()?,
            endpoints_ready: self.endpoints_ready.unwrap_or_default(),
            in_flight_max: self.in_flight_max.unwrap_or_default(),
            in_flight: self.in_flight.unwrap_or_default(),
            waiting: self.waiting.unwrap_or_default(),
            kv_capacity_tokens: self.kv_capacity_tokens.unwrap_or_default(),
            kv_used: share(self.kv_used, "kvUsed")?,
            arrivals_per_second: self.arrivals_per_second.unwrap_or_default(),
            finished_per_second: self.finished_per_second.unwrap_or_default(),
            drain_per_second: self.drain_per_second.unwrap_or_default(),
            prefill_tokens_per_second: self.prefill_tokens_per_second.unwrap_or_default(),
            ttft_base: Duration::from_micros(self.ttft_base_us.unwrap_or_default()),
            failed: share(self.failed, "failed")?,
            shed: share(self.shed, "shed")?,
            context_max: self.context_max.unwrap_or_default(),
            prefixes: Sketch::new(self.prefixes),
        })
    }
}

/// A stranger's text, fit for a log.
fn shown(text: &str) -> String {
    text.chars().take(64).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn heartbeat() -> Heartbeat {
        let mut load = ModelLoad::new("llama-3.1-8b");
        load.adapters = vec![Adapter { name: "sql".into(), is_resident: true }];
        load.in_flight = 7;
        load.kv_used = Ratio::new(0.5).unwrap();
        load.ttft_base = Duration::from_millis(25);
        load.prefixes = Sketch::new([1, 2, 3]);
        Heartbeat {
            epoch: 3,
            sequence: 4,
            uptime: Duration::from_secs(5),
            carbon: Some(120.0),
            price: Some(Price { input: Money(1), output: Money(2) }),
            models: vec![load],
            ..Heartbeat::default()
        }
    }

    fn bytes(heartbeat: &Heartbeat) -> Vec<u8> {
        Beat::new("west", heartbeat).encode_to_vec()
    }

    #[test]
    fn a_heartbeat_reads_back_as_it_was_sent() {
        let beat = Beat::read(&bytes(&heartbeat())).unwrap();
        assert_eq!(beat.cluster, "west");
        assert_eq!(beat.heartbeat().unwrap(), heartbeat());
    }

    #[test]
    fn a_busy_cluster_reports_in_as_many_bytes_as_an_idle_one() {
        let idle = Heartbeat { models: vec![ModelLoad::new("m")], ..Heartbeat::default() };
        let mut busy = idle.clone();
        (busy.sequence, busy.is_draining, busy.generation) = (u64::MAX, true, 9);
        busy.uptime = Duration::from_secs(1 << 30);
        let load = &mut busy.models[0];
        load.in_flight = u32::MAX;
        load.waiting = 1000;
        load.kv_used = Ratio::ONE;
        load.arrivals_per_second = 12345.678;
        assert_eq!(bytes(&idle).len(), bytes(&busy).len());
    }

    #[test]
    fn a_field_of_a_later_version_is_passed_over() {
        let mut later = bytes(&heartbeat());
        // Field 100, length-delimited.
        later.extend_from_slice(&[0xa2, 0x06, 0x03, b'n', b'e', b'w']);
        assert_eq!(Beat::read(&later).unwrap().heartbeat().unwrap(), heartbeat());
    }

    #[test]
    fn what_an_earlier_version_does_not_say_is_not_known() {
        let early = Beat { version: Some(0), cluster: "west".to_owned(), ..Beat::default() };
        let read = Beat::read(&early.encode_to_vec()).unwrap().heartbeat().unwrap();
        assert_eq!(read, Heartbeat::default());
        assert!(matches!(Beat::read(b""), Err(WireError::NoVersion)));
    }

    #[test]
    fn names_that_could_steer_a_terminal_are_refused() {
        let mut lie = Beat::new("west", &heartbeat());
        lie.models[0].name = "\u{1b}[2J".to_owned();
        let error = lie.heartbeat().unwrap_err().to_string();
        assert!(!error.contains('\u{1b}'), "{error}");
        let mut lie = Beat::new("west", &heartbeat());
        lie.models[0].kv_used = Some(f32::NAN);
        assert!(lie.heartbeat().is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            if let Ok(beat) = Beat::read(&bytes) {
                let _ = beat.heartbeat().map(|heartbeat| heartbeat.check());
            }
        }
    }
}
