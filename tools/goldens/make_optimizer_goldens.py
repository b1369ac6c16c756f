#!/usr/bin/env python3
"""Writes tests/backends/goldens/optimizers.json: some steps of torch's optimizers on given gradients.

    python tools/goldens/make_optimizer_goldens.py tests/backends/goldens
"""
import json
import pathlib
import sys

import torch

ELEMENTS, STEPS = 37, 6
CASES = {
    "adamw": (torch.optim.AdamW, {"lr": 3e-3, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}),
    "adam": (torch.optim.Adam, {"lr": 3e-3, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}),
    "sgd": (torch.optim.SGD, {"lr": 3e-2, "weight_decay": 0.1}),
    "sgd_momentum": (torch.optim.SGD, {"lr": 3e-2, "momentum": 0.9, "weight_decay": 0.1}),
    "sgd_nesterov": (torch.optim.SGD, {"lr": 3e-2, "momentum": 0.8, "nesterov": True, "weight_decay": 0.01}),
}


def run(kind, options, start, gradients):
    parameter = torch.nn.Parameter(start.clone())
    optimizer = kind([parameter], **options)
    for gradient in gradients:
        parameter.grad = gradient.clone()
        optimizer.step()
    return parameter.detach().tolist()


def run_average(start, gradients, decay):
    """AveragedModel counts its first update as the first value, so it is given the initial weights."""
    model = torch.nn.Module()
    model.weight = torch.nn.Parameter(start.clone())
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(decay))
    average.update_parameters(model)
    kind, options = CASES["sgd"]
    optimizer = kind([model.weight], **options)
    for gradient in gradients:
        model.weight.grad = gradient.clone()
        optimizer.step()
        average.update_parameters(model)
    return average.module.weight.detach().tolist()


def main():
    generator = torch.Generator().manual_seed(5)
    start = torch.randn(ELEMENTS, generator=generator)
    gradients = torch.randn(STEPS, ELEMENTS, generator=generator)
    content = {"torch": torch.__version__, "start": start.tolist(), "gradients": gradients.tolist()}
    for name, (kind, options) in CASES.items():
        content[name] = run(kind, options, start, gradients)
    content["ema"] = run_average(start, gradients, 0.9)
    path = pathlib.Path(sys.argv[1]) / "optimizers.json"
    path.write_text(json.dumps(content) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
