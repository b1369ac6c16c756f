#!/usr/bin/env python3
"""Writes tests/backends/goldens/muon.json: some steps of torch.optim.Muon on given gradients.

torch rounds the matrix to bfloat16 before its Newton-Schulz iterations. Lamina iterates in fp32, so here torch's own
function runs on a copy of its source in which the one word bfloat16 is float32; everything else is torch's.

    python tools/goldens/make_muon_goldens.py tests/backends/goldens
"""
import inspect
import json
import pathlib
import sys

import torch
import torch.optim._muon as torch_muon

SHAPES = [(12, 5), (4, 9), (6, 6), (1, 7), (7, 1)]
STEPS = 4
CASES = {
    "original": {"lr": 2e-2, "momentum": 0.95, "nesterov": True, "weight_decay": 0.1, "adjust_lr_fn": "original"},
    "match_rms_adamw": {"lr": 3e-3, "momentum": 0.95, "nesterov": True, "weight_decay": 0.1,
                        "adjust_lr_fn": "match_rms_adamw"},
    "plain_momentum": {"lr": 2e-2, "momentum": 0.8, "nesterov": False, "weight_decay": 0, "adjust_lr_fn": "original"},
}


def use_fp32():
    source = inspect.getsource(torch_muon._zeropower_via_newtonschulz)
    if source.count("torch.bfloat16") != 1:
        sys.exit("torch's Newton-Schulz is not what this script knows: look at it again")
    exec(source.replace("torch.bfloat16", "torch.float32"), torch_muon.__dict__)  # noqa: S102


def run(options, starts, gradients):
    parameters = [torch.nn.Parameter(start.clone()) for start in starts]
    optimizer = torch.optim.Muon(parameters, **options)
    for of_step in gradients:
        for parameter, gradient in zip(parameters, of_step):
            parameter.grad = gradient.clone()
        optimizer.step()
    return [parameter.detach().flatten().tolist() for parameter in parameters]


def main():
    use_fp32()
    generator = torch.Generator().manual_seed(7)

    def matrices():
        return [torch.randn(shape, generator=generator) for shape in SHAPES]

    starts = matrices()
    gradients = [matrices() for _ in range(STEPS)]
    content = {
        "torch": torch.__version__,
        "shapes": SHAPES,
        "starts": [matrix.flatten().tolist() for matrix in starts],
        "gradients": [[matrix.flatten().tolist() for matrix in of_step] for of_step in gradients],
        "cases": [{"name": name, "options": options, "weights": run(options, starts, gradients)}
                  for name, options in CASES.items()],
    }
    path = pathlib.Path(sys.argv[1]) / "muon.json"
    path.write_text(json.dumps(content) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
