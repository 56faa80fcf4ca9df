#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's time for the steps that step.cu measures, same models and sizes: one JSON line a figure, medians of 30 steps.

usage: torchrun --nproc-per-node=N torch_rival.py
"""
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(rank)
device = torch.device("cuda", rank)
dist.init_process_group("nccl", device_id=device)
mesh = init_device_mesh("cuda", (world,), mesh_dim_names=("tp",))


def median_us(step, warm=10, steps=30):
    for _ in range(warm):
        step()
    times = []
    for _ in range(steps):
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
        begin.record()
        step()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return round(sorted(times)[len(times) // 2], 1)


def say(**figure):
    if rank == 0:
        print(json.dumps({"rival": f"torch {torch.__version__}", "gpus": world, **figure}), flush=True)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1, self.net2 = nn.Linear(10, 16), nn.Linear(16, 10)

    def forward(self, x):
        return self.net2(torch.relu(self.net1(x)))


def two_mlps(compiled):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = nn.Sequential(Mlp(), Mlp()).to(device)
    plan = {f"{i}.{n}": s for i in (0, 1) for n, s in (("net1", ColwiseParallel()), ("net2", RowwiseParallel()))}
    model = parallelize_module(model, mesh, plan)
    run = torch.compile(model, fullgraph=True) if compiled else model
    x = torch.rand(20, 10, device=device)

    def step():
        run(x).sum().backward()
        model.zero_grad(set_to_none=True)

    say(what="tp_two_mlps_forward_backward", compiled=compiled, step_us=median_us(step))


def stack(layers, width, compiled):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = nn.Sequential(*[m for _ in range(layers) for m in (nn.Linear(width, width), nn.ReLU())]).to(device)
    model = DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-6, fused=True, capturable=True)
    run = torch.compile(model) if compiled else model
    x = torch.randn(100, width, device=device)

    def step():
        run(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    say(what=f"ddp_{layers}x{width}_adam", compiled=compiled, step_us=median_us(step))


for compiled in (False, True):
    two_mlps(compiled)
    stack(10, 100, compiled)
    stack(5, 4096, compiled)
dist.destroy_process_group()
