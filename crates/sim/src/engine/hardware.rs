//! The one table of models on nodes: step constants, memory and limits, each with its source.
//!
//! Sources. *silicon*: least squares on the published closed-loop measurements that NVIDIA's
//! aiconfigurator-core 0.12.0 (Apache-2.0) distributes. *kernels*: the same package's measured
//! vLLM 0.24 operator tables, plus one host rule (1.2 ms a step, 40 µs a sequence, `tc` × 1.18,
//! `k` × 1.03). *scaled*: 70 TFLOP/s and 600 GB/s of an A10G at the efficiencies that Vidur
//! measured on an A40 (78 % of bandwidth, 68 % of peak). KV capacity: (0.92 · HBM − weights −
//! 2…8 GiB) / bytes per token, or the knee of the measured curves.
//!
//! The stated error is the fit's. Played by the scheduler, all 286 silicon points of these settings (4
//! to 128 requests in flight, answers of 128 to 8,192 tokens) come out 3.1 % off on average, row by row
//! 2.7 to 3.5 %; only 70B FP8 TP4 is 5.9 % off, up to 19 % at 64 requests. From kernels and the host
//! rule alone, silicon that was not fitted is predicted to 3.1 to 4.4 %. `tests/calibration` holds all
//! of it.

use super::StepCosts;

/// A model on a node, as one engine runs it.
#[derive(Clone, Copy, Debug)]
pub struct Hardware {
    /// `model/node`, as `--hardware` takes it.
    pub name: &'static str,
    /// Name under which the model is served unless told otherwise.
    pub model: &'static str,
    pub costs: StepCosts,
    /// Tokens whose KV fits beside the weights.
    pub kv_tokens: u32,
    /// Bytes of KV for one token.
    pub kv_bytes_per_token: u32,
    /// Longest prompt and answer together, tokens.
    pub model_len_max: u32,
    /// Tokens that one step may compute: the server's default on this GPU.
    pub batched_tokens_max: u32,
    /// Requests that may run at once: the server's default on this GPU.
    pub sequences_max: u32,
    /// Bytes of a rank-16 adapter on all linear layers.
    pub adapter_bytes: u64,
    /// Memory of one GPU, GiB; SGLang and TGI take their chunk size from it.
    pub gpu_gib: u32,
    pub source: &'static str,
    /// Error of the step time (TPOT) to state beside results.
    pub error: &'static str,
}

const fn costs(t0: f64, tw: f64, tc: f64, a: f64, k: f64, s: f64) -> StepCosts {
    StepCosts {
        overhead_ms: t0,
        weights_ms: tw,
        token_us: tc,
        prefill_pair_ns: a,
        context_token_ns: k,
        sequence_us: s,
        experts: false,
    }
}

const fn experts(costs: StepCosts) -> StepCosts {
    StepCosts { experts: true, ..costs }
}

const H100: Hardware = Hardware {
    name: "",
    model: "",
    costs: costs(0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    kv_tokens: 0,
    kv_bytes_per_token: 0,
    model_len_max: 131_072,
    batched_tokens_max: 8192,
    sequences_max: 1024,
    adapter_bytes: 0,
    gpu_gib: 80,
    source: "",
    error: "",
};

const A10G: Hardware =
    Hardware { batched_tokens_max: 2048, sequences_max: 256, gpu_gib: 24, ..H100 };

const LLAMA_8B: Hardware = Hardware {
    model: "llama-3.1-8b",
    kv_bytes_per_token: 131_072,
    adapter_bytes: 84_000_000,
    ..H100
};

const QWEN_32B: Hardware = Hardware {
    model: "qwen3-32b",
    kv_bytes_per_token: 262_144,
    model_len_max: 40_960,
    adapter_bytes: 269_000_000,
    ..H100
};

const LLAMA_70B: Hardware = Hardware {
    model: "llama-3.1-70b",
    kv_bytes_per_token: 327_680,
    adapter_bytes: 412_000_000,
    ..H100
};

const QWEN_235B: Hardware = Hardware {
    model: "qwen3-235b-a22b",
    kv_bytes_per_token: 192_512,
    model_len_max: 40_960,
    adapter_bytes: 412_000_000,
    ..H100
};

const QWEN_235B_TP8: StepCosts = experts(costs(9.32, 6.26, 49.6, 0.31, 0.16, 66.0));
const QWEN_235B_TP4: StepCosts = experts(costs(10.2, 10.1, 48.1, 0.6, 6.4, 76.0));

/// Every row. The first of a model is its usual node.
pub const TABLE: &[Hardware] = &[
    Hardware {
        name: "llama-3.1-8b/h100",
        costs: costs(1.2, 6.8, 24.0, 0.77, 42.0, 40.0),
        kv_tokens: 448_000,
        source: "kernels, vLLM, BF16, TP1",
        error: "±5 %",
        ..LLAMA_8B
    },
    Hardware {
        name: "llama-3.1-8b/h100-trtllm",
        costs: costs(0.86, 5.9, 22.6, 0.52, 47.0, 4.7),
        kv_tokens: 448_000,
        source: "silicon, 42 points, TensorRT-LLM, BF16, TP1",
        error: "1.9 %",
        ..LLAMA_8B
    },
    Hardware {
        name: "llama-3.1-8b/a10g",
        costs: costs(1.5, 33.5, 330.0, 15.0, 273.0, 40.0),
        kv_tokens: 32_000,
        model_len_max: 30_000,
        model: LLAMA_8B.model,
        kv_bytes_per_token: LLAMA_8B.kv_bytes_per_token,
        adapter_bytes: LLAMA_8B.adapter_bytes,
        source: "scaled, BF16, TP1",
        error: "±15 %",
        ..A10G
    },
    Hardware {
        name: "qwen3-32b/2xh100",
        costs: costs(1.74, 12.96, 58.1, 0.71, 40.2, 67.0),
        kv_tokens: 272_000,
        source: "silicon, 23 points, vLLM 0.12, BF16, TP2",
        error: "1.2 %",
        ..QWEN_32B
    },
    Hardware {
        name: "qwen3-32b/4xh100",
        costs: costs(9.49, 0.0, 31.2, 0.44, 25.5, 31.0),
        kv_tokens: 809_600,
        source: "silicon, 30 points, vLLM 0.12, BF16, TP4",
        error: "1.4 %",
        ..QWEN_32B
    },
    Hardware {
        name: "qwen3-32b/8xh100",
        costs: costs(7.2, 0.0, 20.6, 0.16, 11.2, 41.0),
        kv_tokens: 1_872_000,
        source: "silicon, 30 points, vLLM 0.12, BF16, TP8",
        error: "1.5 %",
        ..QWEN_32B
    },
    Hardware {
        name: "qwen3-32b/8xa10g",
        costs: costs(9.0, 17.1, 446.0, 6.0, 68.0, 60.0),
        kv_tokens: 350_400,
        model: QWEN_32B.model,
        kv_bytes_per_token: QWEN_32B.kv_bytes_per_token,
        model_len_max: QWEN_32B.model_len_max,
        adapter_bytes: QWEN_32B.adapter_bytes,
        source: "scaled, PCIe all-reduce, BF16, TP8 (g5.48xlarge)",
        error: "±35 %",
        ..A10G
    },
    Hardware {
        name: "qwen3-32b/4xa10g",
        costs: costs(5.0, 34.5, 580.0, 12.0, 136.0, 60.0),
        kv_tokens: 52_000,
        model: QWEN_32B.model,
        kv_bytes_per_token: QWEN_32B.kv_bytes_per_token,
        model_len_max: QWEN_32B.model_len_max,
        adapter_bytes: QWEN_32B.adapter_bytes,
        source: "scaled, PCIe all-reduce, BF16, TP4 (g5.12xlarge)",
        error: "±35 %",
        ..A10G
    },
    Hardware {
        name: "llama-3.1-70b/4xh100",
        costs: costs(3.8, 13.5, 72.4, 0.91, 27.0, 40.0),
        kv_tokens: 416_000,
        source: "kernels, vLLM, BF16, TP4",
        error: "±5 to 8 %",
        ..LLAMA_70B
    },
    Hardware {
        name: "llama-3.1-70b/8xh100",
        costs: costs(7.8, 3.94, 45.2, 0.42, 13.4, 40.0),
        kv_tokens: 1_072_000,
        source: "kernels, vLLM, BF16, TP8",
        error: "±5 to 8 %",
        ..LLAMA_70B
    },
    Hardware {
        name: "llama-3.1-70b-fp8/8xh100",
        costs: costs(8.74, 0.0, 31.8, 0.55, 13.4, 29.0),
        kv_tokens: 1_600_000,
        source: "silicon, 15 points, vLLM, FP8, TP8",
        error: "2.2 %",
        ..LLAMA_70B
    },
    Hardware {
        name: "llama-3.1-70b-fp8/4xh100",
        costs: costs(2.36, 8.83, 63.8, 0.9, 20.3, 84.0),
        kv_tokens: 634_000,
        source: "silicon, 15 points, vLLM, FP8, TP4; prefill attention scaled from TP8; KV computed",
        error: "2.8 % fit, 6 % run",
        ..LLAMA_70B
    },
    Hardware {
        name: "qwen3-235b-a22b-fp8/8xh100",
        costs: QWEN_235B_TP8.slower(1.5),
        kv_tokens: 944_000,
        source: "the TensorRT-LLM row × 1.5, an estimate for vLLM with EP8",
        error: "estimate",
        ..QWEN_235B
    },
    Hardware {
        name: "qwen3-235b-a22b-fp8/8xh100-trtllm",
        costs: QWEN_235B_TP8,
        kv_tokens: 944_000,
        source: "silicon, 63 points, TensorRT-LLM, FP8, TP8/EP8",
        error: "1.5 %",
        ..QWEN_235B
    },
    Hardware {
        name: "qwen3-235b-a22b-fp8/4xh100-trtllm",
        costs: QWEN_235B_TP4,
        kv_tokens: 224_000,
        source: "silicon, 63 points, TensorRT-LLM, FP8, TP4/EP4; prefill attention scaled; KV computed",
        error: "1.4 %",
        ..QWEN_235B
    },
];

impl Hardware {
    /// The row of this name.
    pub fn find(name: &str) -> Option<&'static Hardware> {
        TABLE.iter().find(|row| row.name == name)
    }
}
