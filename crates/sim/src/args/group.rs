//! `--server engine=vllm,hardware=llama-3.1-8b/a10g,count=4`.

use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use types::EngineKind;

use super::Args;
use crate::fleet::ServerSpec;
use crate::quirks::Quirks;

/// Servers that are alike. What is `None`, the other options say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    pub engine: Option<EngineKind>,
    pub hardware: Option<String>,
    pub model: Option<String>,
    pub loras: Vec<String>,
    pub count: Option<u16>,
    pub port: Option<u16>,
    pub max_loras: Option<u32>,
    pub max_num_seqs: Option<u32>,
    pub max_num_queued_reqs: Option<u32>,
    pub time_scale: Option<f64>,
    pub max_model_len: Option<u32>,
    pub keep_alive_s: Option<f64>,
    pub quirks: Quirks,
}

/// Why a text is no group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    #[error("`{0}` is not key=value")]
    Form(String),
    #[error(
        "unknown key `{0}`; known: engine, hardware, model, count, port, lora, max-loras, \
         max-num-seqs, max-num-queued-reqs, time-scale, max-model-len, keep-alive (seconds), \
         prefix-caching (on, off), block-size, version, clock-ahead (seconds), silent"
    )]
    Key(String),
    #[error("`{value}` is no {key}")]
    Value { key: &'static str, value: String },
}

impl FromStr for Group {
    type Err = GroupError;

    fn from_str(text: &str) -> Result<Self, GroupError> {
        let mut group = Self::default();
        for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
            let (key, value) =
                pair.split_once('=').ok_or_else(|| GroupError::Form(pair.to_owned()))?;
            let value = value.trim();
            match key.trim() {
                "engine" => {
                    let refused = |_| GroupError::Value { key: "engine", value: value.to_owned() };
                    group.engine = Some(engine(value).map_err(refused)?);
                }
                "hardware" => group.hardware = Some(value.to_owned()),
                "model" => group.model = Some(value.to_owned()),
                "lora" => group.loras.push(value.to_owned()),
                "count" => group.count = Some(parse("count", value)?),
                "port" => group.port = Some(parse("port", value)?),
                "max-loras" => group.max_loras = Some(parse("max-loras", value)?),
                "max-num-seqs" => group.max_num_seqs = Some(parse("max-num-seqs", value)?),
                "max-num-queued-reqs" => {
                    group.max_num_queued_reqs = Some(parse("max-num-queued-reqs", value)?);
                }
                "max-model-len" => group.max_model_len = Some(parse("max-model-len", value)?),
                "keep-alive" => group.keep_alive_s = Some(parse("keep-alive", value)?),
                "prefix-caching" => {
                    group.quirks.prefix_caching = match value {
                        "on" => true,
                        "off" => false,
                        _ => {
                            let value = value.to_owned();
                            return Err(GroupError::Value { key: "prefix-caching", value });
                        }
                    }
                }
                "block-size" => group.quirks.block_size = Some(parse("block-size", value)?),
                "version" => group.quirks.version = Some(value.to_owned()),
                "clock-ahead" => {
                    group.quirks.clock_ahead_s = Some(parse("clock-ahead", value)?);
                }
                "silent" => group.quirks.silent.push(value.to_owned()),
                "time-scale" => group.time_scale = Some(parse("time-scale", value)?),
                other => return Err(GroupError::Key(other.to_owned())),
            }
        }
        Ok(group)
    }
}

fn parse<T: FromStr>(key: &'static str, value: &str) -> Result<T, GroupError> {
    value.parse().map_err(|_| GroupError::Value { key, value: value.to_owned() })
}

/// The engines that can be simulated, by name.
pub(super) fn engine(name: &str) -> Result<EngineKind, String> {
    let known = [EngineKind::Vllm, EngineKind::Sglang, EngineKind::Tgi, EngineKind::TensorRtLlm];
    known
        .into_iter()
        .find(|kind| kind.as_str() == name)
        .ok_or_else(|| "use vllm, sglang, tgi or trtllm".to_owned())
}

impl Group {
    pub(super) fn spec(&self, args: &Args, bind: SocketAddr, seed: u64) -> ServerSpec {
        let hardware = self.hardware.as_deref().unwrap_or(&args.hardware);
        let mut spec = ServerSpec::new(self.engine.unwrap_or(args.engine), hardware);
        if let Some(model) = self.model.as_ref().or(args.model.as_ref()) {
            spec.model.clone_from(model);
        }
        let loras = if self.loras.is_empty() { &args.loras } else { &self.loras };
        ServerSpec {
            adapters: loras.clone(),
            max_loras: self.max_loras.or(args.max_loras),
            max_cpu_loras: args.max_cpu_loras,
            bind,
            time_scale: self.time_scale.unwrap_or(args.time_scale),
            seed,
            answer_tokens: args.answer_tokens,
            max_model_len: self.max_model_len,
            keep_alive: self
                .keep_alive_s
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .unwrap_or(spec.keep_alive),
            quirks: self.quirks.clone(),
            max_num_seqs: self.max_num_seqs.or(args.max_num_seqs),
            max_num_queued_reqs: self.max_num_queued_reqs.or(args.max_num_queued_reqs),
            ..spec
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn specs(args: &[&str]) -> Vec<ServerSpec> {
        Args::try_parse_from([&["sim"], args].concat()).unwrap().specs().unwrap()
    }

    #[test]
    fn groups_become_servers_on_ascending_ports() {
        let specs = specs(&[
            "--port",
            "9000",
            "--lora",
            "x",
            "--server",
            "hardware=llama-3.1-8b/h100,count=2",
            "--server",
            "engine=sglang,hardware=llama-3.1-8b/a10g,port=9100,lora=a,lora=b",
        ]);
        let ports: Vec<u16> = specs.iter().map(|spec| spec.bind.port()).collect();
        assert_eq!(ports, [9000, 9001, 9100]);
        assert_eq!(specs[0].adapters, ["x"]);
        assert_eq!(specs[2].engine, EngineKind::Sglang);
        assert_eq!(specs[2].adapters, ["a", "b"]);
        assert_eq!(specs[2].model, "llama-3.1-8b");
    }

    #[test]
    fn a_misspelt_group_is_refused() {
        for text in ["hardwere=x", "count=many", "h100", "engine=gpt"] {
            assert!(text.parse::<Group>().is_err(), "{text} was accepted");
        }
    }
}
