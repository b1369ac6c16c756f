#!/usr/bin/env python3
"""Writes tests/goldens: what transformers and torch compute for tiny models of every family.

Usage: python3 -m venv VENV && VENV/bin/pip install -r tools/goldens/requirements.txt
       VENV/bin/python tools/goldens/make_goldens.py [OUT]        (default: tests/goldens)

A folder a model: config.json and model.safetensors as a user would have them, and
  golden.json         batches (tokens, labels; -100 is ignored), their loss sums, the optimizer's settings, prompt and greedy tokens
  golden.safetensors  logits.B (all positions of batch B), grad.NAME (of batch 0's loss sum), after.NAME (weights after the AdamW steps)
The weights are random and well scaled, so that every gradient matters and greedy choices are clear. Everything is fp32 on one
thread with eager attention; the result depends on the seeds below only.
"""

import json
import pathlib
import shutil
import sys

import torch
import transformers
from safetensors.torch import save_file
from torch.nn.functional import cross_entropy
from transformers import GPT2Config, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

VOCABULARY = 97
IGNORED = -100
BATCH_SHAPES = [(2, 23), (1, 31), (3, 1)]  # sequences, tokens
NEW_TOKENS = 64
CLEAR_MARGIN = 1e-3  # between the two largest logits of every greedy choice
# Some gradients are zero but for rounding (a key bias shifts all scores of a query alike), and the usual eps of 1e-8 would turn that
# noise into whole steps. With this one the comparison is well conditioned, and eps in the wrong place shows.
ADAMW = {"lr": 2e-3, "beta1": 0.9, "beta2": 0.95, "eps": 1e-4, "weight_decay": 0.1, "batches": [0, 1, 0]}

COMMON = dict(
    vocab_size=VOCABULARY, hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=128, bos_token_id=None, eos_token_id=None, pad_token_id=None,
)
LLAMA3_ROPE = {
    "rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}


def models():
    """Name -> (config, whether config.json is written in the schema from before transformers 5)."""
    return {
        "llama_tied": (LlamaConfig(**COMMON, tie_word_embeddings=True), False),
        "llama3_rope": (LlamaConfig(**COMMON, rope_parameters=dict(LLAMA3_ROPE), rms_norm_eps=1e-5), False),
        "llama3_rope_old": (LlamaConfig(**COMMON, rope_parameters=dict(LLAMA3_ROPE)), True),
        "llama_linear_old": (
            LlamaConfig(**COMMON, rope_parameters={"rope_type": "linear", "rope_theta": 1e4, "factor": 2.5}), True),
        "llama_biases": (LlamaConfig(**COMMON, attention_bias=True, mlp_bias=True), False),
        "smollm2": (
            LlamaConfig(**{**COMMON, "hidden_size": 36, "num_attention_heads": 9, "num_key_value_heads": 3},
                        tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 1e5}), True),
        "mistral": (MistralConfig(**COMMON, sliding_window=7), False),
        "qwen2": (Qwen2Config(**COMMON, tie_word_embeddings=True), False),
        "qwen2_windows": (
            Qwen2Config(**COMMON, use_sliding_window=True, sliding_window=5, max_window_layers=1), True),
        "qwen3": (Qwen3Config(**COMMON, head_dim=12, tie_word_embeddings=True), False),
        "gpt2": (
            GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=128, bos_token_id=None,
                       eos_token_id=None, pad_token_id=None), False),
    }


def randomise(model, generator):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() == 2:
                parameter.copy_(0.2 * noise if "wpe" not in name else 0.1 * noise)
            elif name.endswith("bias"):
                parameter.copy_(0.1 * noise)
            else:
                parameter.copy_(1 + 0.2 * noise)


def make_batches(generator):
    batches = []
    for sequences, length in BATCH_SHAPES:
        tokens = torch.randint(0, VOCABULARY, (sequences, length), generator=generator)
        labels = torch.randint(0, VOCABULARY, (sequences, length), generator=generator)
        labels[torch.rand((sequences, length), generator=generator) < 0.3] = IGNORED
        batches.append((tokens, labels))
    return batches


def logits_of(model, tokens):
    return model(input_ids=tokens, use_cache=False).logits


def loss_sum(logits, labels):
    return cross_entropy(logits.reshape(-1, VOCABULARY), labels.reshape(-1), ignore_index=IGNORED, reduction="sum")


def train(model, batches):
    """The AdamW steps on the mean loss over labelled tokens; norms and biases do not decay."""
    decay = [p for p in model.parameters() if p.dim() == 2]
    rest = [p for p in model.parameters() if p.dim() != 2]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": ADAMW["weight_decay"]}, {"params": rest, "weight_decay": 0.0}],
        lr=ADAMW["lr"], betas=(ADAMW["beta1"], ADAMW["beta2"]), eps=ADAMW["eps"], foreach=False)
    for index in ADAMW["batches"]:
        tokens, labels = batches[index]
        optimizer.zero_grad()
        (loss_sum(logits_of(model, tokens), labels) / (labels != IGNORED).sum()).backward()
        optimizer.step()


def greedy(model, prompt):
    """64 greedy tokens with transformers' own cache, or None when a choice is too close to call."""
    output = model.generate(
        prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=NEW_TOKENS,
        return_dict_in_generate=True, output_logits=True)
    for logits in output.logits:
        top = logits[0].topk(2).values
        if top[0] - top[1] < CLEAR_MARGIN:
            return None
    return output.sequences[0, prompt.shape[1]:].tolist()


def to_old_schema(config):
    """rope_parameters -> rope_theta and rope_scaling, as files from before transformers 5 have it."""
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    rope_type = rope.pop("rope_type")
    config["rope_scaling"] = None
    if rope_type == "linear":
        config["rope_scaling"] = {"type": rope_type, **rope}
    elif rope_type != "default":
        config["rope_scaling"] = {"rope_type": rope_type, **rope}
    return config


def save_model(model, folder, old_schema):
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    path = folder / "config.json"
    config = json.loads(path.read_text())
    if old_schema:
        config = to_old_schema(config)
    path.write_text(json.dumps(config, indent=1, sort_keys=True) + "\n")


def make(name, config, old_schema, out, seed):
    folder = out / name
    generator = torch.Generator().manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    randomise(model, generator)
    batches = make_batches(generator)
    prompt = torch.randint(0, VOCABULARY, (1, 9), generator=generator)
    save_model(model, folder, old_schema)
    # What is on disk is what counts: compute with it.
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    model.eval()
    tokens = greedy(model, prompt)
    if tokens is None:
        return False
    tensors, losses = {}, []
    for index, (ids, labels) in enumerate(batches):
        logits = logits_of(model, ids)
        tensors[f"logits.{index}"] = logits.detach().reshape(-1, VOCABULARY).clone()
        losses.append(loss_sum(logits, labels).item())
    loss_sum(logits_of(model, batches[0][0]), batches[0][1]).backward()
    tensors |= {f"grad.{n}": p.grad.clone() for n, p in model.named_parameters()}
    train(model, batches)
    tensors |= {f"after.{n}": p.detach().clone() for n, p in model.named_parameters()}
    save_file(tensors, folder / "golden.safetensors")
    golden = {
        "batches": [
            {"sequences": ids.shape[0], "seq_len": ids.shape[1], "tokens": ids.flatten().tolist(),
             "labels": labels.flatten().tolist(), "loss_sum": loss}
            for (ids, labels), loss in zip(batches, losses)
        ],
        "adamw": ADAMW, "prompt": prompt[0].tolist(), "greedy": tokens,
        "torch": torch.__version__.split("+")[0], "transformers": transformers.__version__,
    }
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")
    return True


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "tests" / "goldens"
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    for name, (config, old_schema) in models().items():
        shutil.rmtree(out / name, ignore_errors=True)
        (out / name).mkdir(parents=True)
        seed = next(seed for seed in range(1, 100) if make(name, config, old_schema, out, seed))
        print(f"{name}: seed {seed}")


if __name__ == "__main__":
    main()
