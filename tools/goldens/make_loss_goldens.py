#!/usr/bin/env python3
"""Writes what torch computes for label smoothing and z-loss, next to the tests that read it.

    python tools/goldens/make_loss_goldens.py          (packages: requirements.txt beside this script)

tests/backends/goldens/losses.json: logits, labels, and for several (label_smoothing, z_loss) the loss of each row and the
gradient of their sum. tests/model/goldens/training_loss.json and .safetensors: loss sum and gradients of a whole model,
tests/goldens/llama_tied on its batch 0. Logits are float32, as is the model; rows and their gradients are computed in float64.
"""
import json
import pathlib

import torch
from safetensors.torch import save_file
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM

IGNORED = -100
ROWS, VOCABULARY = 6, 37
CASES = [(0.0, 0.0), (0.1, 0.0), (0.0, 1e-2), (0.1, 1e-4), (0.9, 0.5)]
MODEL, MODEL_CASE = "llama_tied", (0.1, 1e-2)
TESTS = pathlib.Path(__file__).resolve().parents[2] / "tests"


def losses(logits, labels, smoothing, z):
    """Of each row; 0 where ignored."""
    plain = cross_entropy(logits, labels, ignore_index=IGNORED, reduction="none", label_smoothing=smoothing)
    return plain + torch.where(labels == IGNORED, 0.0, z * torch.logsumexp(logits, -1) ** 2)


def rows():
    generator = torch.Generator().manual_seed(3)
    logits = 3 * torch.randn(ROWS, VOCABULARY, generator=generator)
    labels = torch.randint(0, VOCABULARY, (ROWS,), generator=generator)
    labels[[1, 4]] = IGNORED
    cases = []
    for smoothing, z in CASES:
        exact = logits.double().requires_grad_()
        each = losses(exact, labels, smoothing, z)
        each.sum().backward()
        cases.append({"label_smoothing": smoothing, "z_loss": z, "losses": each.tolist(),
                      "gradients": exact.grad.float().flatten().tolist()})
    return {"torch": torch.__version__.split("+")[0], "rows": ROWS, "vocabulary": VOCABULARY,
            "logits": logits.flatten().tolist(), "labels": labels.tolist(), "cases": cases}


def whole_model():
    folder = TESTS / "goldens" / MODEL
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    batch = json.loads((folder / "golden.json").read_text(encoding="utf-8"))["batches"][0]
    shape = (batch["sequences"], batch["seq_len"])
    logits = model(input_ids=torch.tensor(batch["tokens"]).reshape(shape), use_cache=False).logits
    total = losses(logits.reshape(-1, logits.shape[-1]), torch.tensor(batch["labels"]), *MODEL_CASE).sum()
    total.backward()
    about = {"model": MODEL, "label_smoothing": MODEL_CASE[0], "z_loss": MODEL_CASE[1], "loss_sum": total.item()}
    return about, {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


def main():
    torch.set_num_threads(1)
    (TESTS / "backends/goldens/losses.json").write_text(json.dumps(rows()) + "\n", encoding="utf-8")
    out = TESTS / "model" / "goldens"
    out.mkdir(exist_ok=True)
    about, gradients = whole_model()
    (out / "training_loss.json").write_text(json.dumps(about) + "\n", encoding="utf-8")
    save_file(gradients, out / "training_loss.safetensors")


if __name__ == "__main__":
    main()
