"""The peer of lamina-bench-step: the same training step in PyTorch, with FSDP2 or DDP over gloo on CPU ranks.

OMP_NUM_THREADS=1 torchrun --nproc-per-node 2 tools/bench/fsdp2_peer.py --model inputs/small_llama --sequences 4 --seq_len 256
--strategy none|ddp|full|grad_op. Rank 0 prints one JSON line with the median seconds of a step. Packages: torch, transformers.
Run it and lamina-bench-step in turn on the same quiet machine; only ratios of one such run mean something.
"""
import argparse
import json
import statistics
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from transformers import AutoConfig, AutoModelForCausalLM


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="inputs/small_llama", help="folder with a config.json")
    parser.add_argument("--sequences", type=int, default=4)
    parser.add_argument("--seq_len", type=int, default=256)
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--strategy", choices=["none", "ddp", "full", "grad_op"], default="full")
    return parser.parse_args()


def wrapped(model, strategy, world):
    if strategy == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model)
    if strategy in ("full", "grad_op"):
        mesh = init_device_mesh("cpu", (world,))
        for block in model.model.layers:
            fully_shard(block, mesh=mesh, reshard_after_forward=strategy == "full")
        fully_shard(model, mesh=mesh)
    return model


def main():
    options = arguments()
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    config = AutoConfig.from_pretrained(options.model, attn_implementation="sdpa", use_cache=False)
    model = wrapped(AutoModelForCausalLM.from_config(config).float(), options.strategy, world)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    generator = torch.Generator().manual_seed(1 + rank)
    seconds = []
    for _ in range(options.steps + 2):
        tokens = torch.randint(0, config.vocab_size, (options.sequences, options.seq_len), generator=generator)
        dist.barrier()
        start = time.perf_counter()
        model(input_ids=tokens, labels=tokens).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.perf_counter() - start)
    if rank == 0:
        print(json.dumps({"world": world, "strategy": options.strategy, "threads": torch.get_num_threads(),
                          "step_s": round(statistics.median(seconds[2:]), 4)}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
