#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's time for the collectives that collectives.cu measures: float, replayed from a CUDA graph where one can be captured, and the
host's time to queue one; besides, DTensor's redistribution from Shard(0) to Replicate of 16 x 16 beside the call that it makes. One
JSON line a size.

usage: torchrun --nproc-per-node=2 torch_rival.py
"""
import json
import os
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(RANK)
dist.init_process_group("nccl", device_id=torch.device("cuda", RANK))
device = torch.device("cuda", RANK)


def say(**figure):
    if RANK == 0:
        print(json.dumps({"rival": f"torch {torch.__version__}", "gpus": WORLD, **figure}), flush=True)


def median(values):
    return sorted(values)[len(values) // 2]


def graph_us(queue, count):
    """Microseconds for each of `count` that are replayed as one graph: the median of 9 blocks of 4 replays."""
    queue()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            queue()
    all = []
    for _ in range(9):
        dist.barrier()
        graph.replay()
        begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
        begin.record()
        for _ in range(4):
            graph.replay()
        end.record()
        torch.cuda.synchronize()
        all.append(begin.elapsed_time(end) * 1000 / (4 * count))
    return median(all)


def host_us(queue):
    """Microseconds of the host for each of 100 that are queued one by one: the median of 9 blocks."""
    all = []
    for _ in range(9):
        torch.cuda.synchronize()
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(100):
            queue()
        all.append((time.perf_counter() - begin) * 1e4)
        torch.cuda.synchronize()
    return median(all)


for size in (8, 400, 4096, 40960, 404000, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 1 << 30):
    n = size // 4
    whole, part = torch.zeros(n, device=device), torch.zeros(max(n // WORLD, 1), device=device)
    kinds = {"all_reduce": (2, lambda: dist.all_reduce(whole))}
    if n % WORLD == 0 and (size <= 4096 or size >= 1 << 20):
        kinds["all_gather"] = (1, lambda: dist.all_gather_into_tensor(whole, part))
        kinds["reduce_scatter"] = (1, lambda: dist.reduce_scatter_tensor(part, whole))
    for name, (crossing, queue) in kinds.items():
        us = graph_us(queue, 2 if size > 64 << 20 else 10 if size > 1 << 20 else 50)
        more = {"host_us": round(host_us(queue), 2)} if size <= 1 << 20 else {
            "bus_gbps": round(size * crossing * (WORLD - 1) / WORLD / us / 1e3, 1)}
        say(what=name, bytes=size, us=round(us, 2), **more)

mesh = init_device_mesh("cuda", (WORLD,))
with torch.no_grad():
    rows = torch.randn(16, 16, device=device)
    tensor = DTensor.from_local(rows, mesh, [Shard(0)], run_check=False)
    out = torch.empty(16 * WORLD, 16, device=device)
    say(what="DTensor: Shard(0) to Replicate", host_us=round(host_us(lambda: tensor.redistribute(mesh, [Replicate()])), 2),
        call_host_us=round(host_us(lambda: dist.all_gather_into_tensor(out, rows)), 2))
dist.destroy_process_group()
