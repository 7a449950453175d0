//! What one engine is: costs, memory, limits and the flavour of its scheduler.

use std::time::Duration;

use types::EngineKind;

use super::{Hardware, StepCosts};

/// When the KV blocks of an answer are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reservation {
    /// Block by block, as vLLM and SGLang do; when none is left the last running request yields.
    OnDemand,
    /// All at admission, as TensorRT-LLM ("guaranteed no evict") and TGI do: never preempts,
    /// queues earlier.
    WholeAnswer,
}

/// LoRA room of one engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoraSpec {
    /// Adapters on the GPU at once, hence also distinct adapters in one step. 0: LoRA is off.
    pub gpu_slots: u32,
    /// Adapters kept in host memory, at least `gpu_slots`.
    pub cpu_slots: u32,
    /// Bytes of one adapter.
    pub adapter_bytes: u64,
    /// Slow-down of a step by each distinct adapter in it (0.01 to 0.035 at rank 16).
    pub step_factor: f64,
}

/// Everything that determines an engine's behaviour, apart from its seed.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineSpec {
    pub costs: StepCosts,
    /// Tokens in one KV block.
    pub block_size: u32,
    /// KV blocks in all.
    pub block_count: u32,
    /// Requests that may run at once.
    pub sequences_max: u32,
    /// Tokens that one step may compute.
    pub batched_tokens_max: u32,
    /// Longest prompt and answer together, tokens.
    pub model_len_max: u32,
    /// Longest prompt chunk of one request in a step, tokens.
    pub prefill_chunk_max: u32,
    pub prefix_caching: bool,
    pub reservation: Reservation,
    /// Most requests that may wait; the next one is refused. `None`: no limit, the default.
    pub queued_requests_max: Option<u32>,
    pub lora: LoraSpec,
    /// Time from the HTTP request to the scheduler (tokenise, hand over, first flush): 15 ms in
    /// the measurements that the step constants were checked against.
    pub api_delay: Duration,
    /// Relative standard deviation of a step's time, at least 0; 0, the default, makes every step
    /// take exactly what [`StepCosts`] says. See [`super::Jitter`].
    pub jitter: f64,
}

impl EngineSpec {
    /// The defaults of an engine on a row of the hardware table.
    ///
    /// * `gpu_slots`: LoRA adapters on the GPU at once; their room is taken from the KV cache.
    /// * `cpu_slots`: adapters kept in host memory.
    ///
    /// Sources: vLLM 0.33 (block 16), SGLang 0.5.23 (page 1, chunk by GPU memory), TGI 3
    /// (block 1, 4,096 prefill tokens), TensorRT-LLM (32 tokens a block).
    pub fn new(kind: EngineKind, hardware: &Hardware, gpu_slots: u32, cpu_slots: u32) -> Self {
        let chunk = if hardware.gpu_gib < 60 { 4096 } else { 8192 };
        let (block_size, batched_tokens_max, reservation) = match kind {
            EngineKind::Sglang => (1, chunk, Reservation::OnDemand),
            EngineKind::Tgi => (1, 4096, Reservation::WholeAnswer),
            EngineKind::TensorRtLlm => (32, hardware.batched_tokens_max, Reservation::WholeAnswer),
            EngineKind::Vllm | EngineKind::LlamaCpp | EngineKind::Unknown => {
                (16, hardware.batched_tokens_max, Reservation::OnDemand)
            }
        };
        let lora_tokens = u64::from(gpu_slots) * hardware.adapter_bytes
            / u64::from(hardware.kv_bytes_per_token.max(1));
        let lora_tokens = u32::try_from(lora_tokens).unwrap_or(u32::MAX);
        let kv_tokens = hardware.kv_tokens.saturating_sub(lora_tokens).max(hardware.kv_tokens / 8);
        Self {
            costs: hardware.costs,
            block_size,
            block_count: kv_tokens / block_size,
            sequences_max: hardware.sequences_max,
            batched_tokens_max,
            model_len_max: hardware.model_len_max.min(kv_tokens),
            prefill_chunk_max: u32::MAX,
            prefix_caching: true,
            reservation,
            queued_requests_max: None,
            lora: LoraSpec {
                gpu_slots,
                cpu_slots: cpu_slots.max(gpu_slots),
                adapter_bytes: hardware.adapter_bytes,
                step_factor: 0.02,
            },
            api_delay: Duration::from_millis(15),
            jitter: 0.0,
        }
    }

    /// Blocks that hold `tokens` tokens.
    pub fn blocks_for(&self, tokens: u32) -> u32 {
        tokens.div_ceil(self.block_size)
    }

    /// Longest prompt and answer together that can ever run, tokens.
    pub fn context_tokens_max(&self) -> u32 {
        self.model_len_max.min(self.block_count.saturating_mul(self.block_size))
    }
}
