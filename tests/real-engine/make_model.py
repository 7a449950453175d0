"""Writes the tiny model that the real-engine tests serve: a random Llama and two LoRA adapters.

Nothing is fetched: weights are random (seeded), and the tokenizer is trained on the Python standard
library's own sources. The text that comes out is noise; what the tests look at is how the engine
behaves (paths, streams, metrics, adapters), which does not depend on the weights.

Usage: python make_model.py FOLDER    (with the Python of the vLLM environment)
"""

import glob
import json
import os
import sys
import sysconfig

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

HIDDEN = 256
LAYERS = 4
HEADS = 4
KV_HEADS = 2
HEAD_DIM = 64
VOCAB = 4096
LORA_RANK = 8
ADAPTERS = {"lora-a": 1, "lora-b": 2}

SPECIAL = ["<unk>", "<s>", "</s>", "<|user|>", "<|assistant|>", "<|system|>"]
CHAT_TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>\n{{ m['content'] }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def tokenizer() -> PreTrainedTokenizerFast:
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    texts = sorted(glob.glob(sysconfig.get_paths()["stdlib"] + "/*.py"))[:80]
    bpe.train(
        texts,
        trainers.BpeTrainer(
            vocab_size=VOCAB,
            special_tokens=SPECIAL,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        pad_token="</s>",
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast


def base(folder: str) -> None:
    tok = tokenizer()
    tok.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tok),
        hidden_size=HIDDEN,
        intermediate_size=2 * HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        max_position_embeddings=8192,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)


def adapter(folder: str, seed: int) -> None:
    torch.manual_seed(seed)
    shapes = {"q_proj": (HEADS * HEAD_DIM, HIDDEN), "v_proj": (KV_HEADS * HEAD_DIM, HIDDEN)}
    tensors = {}
    for layer in range(LAYERS):
        for projection, (rows, columns) in shapes.items():
            name = f"base_model.model.model.layers.{layer}.self_attn.{projection}"
            tensors[name + ".lora_A.weight"] = torch.randn(LORA_RANK, columns) * 0.05
            tensors[name + ".lora_B.weight"] = torch.randn(rows, LORA_RANK) * 0.05
    os.makedirs(folder, exist_ok=True)
    save_file(tensors, f"{folder}/adapter_model.safetensors")
    with open(f"{folder}/adapter_config.json", "w", encoding="utf-8") as file:
        json.dump(
            {
                "peft_type": "LORA",
                "task_type": "CAUSAL_LM",
                "r": LORA_RANK,
                "lora_alpha": 2 * LORA_RANK,
                "lora_dropout": 0.0,
                "bias": "none",
                "target_modules": sorted(shapes),
                "base_model_name_or_path": "tiny-llama",
                "inference_mode": True,
            },
            file,
        )


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    target = sys.argv[1]
    base(f"{target}/tiny-llama")
    for name, seed in ADAPTERS.items():
        adapter(f"{target}/{name}", seed)


if __name__ == "__main__":
    main()
