#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's time for the step that gpt2.cu measures: the same model, sizes, optimizer and clipping, eager and compiled; or, with
--floor, what the kinds of operation take alone, in the form that gpt2.cu reads. One JSON line a figure.

usage: torch_rival.py [--type float32|tf32|bfloat16] [--batch 8] [--floor]
       torchrun --nproc-per-node=2 torch_rival.py --type bfloat16 --batch 16 [--shards]
tf32 is float32 whose products are TF32; bfloat16 is autocast over float32 parameters. Under torchrun a process has a GPU and a batch
of its own: DistributedDataParallel, compiled also with CUDA graphs (reduce-overhead), or with --shards fully_shard of every block,
bfloat16 by its policy.
"""
import argparse
import contextlib
import json
import os
import time

import torch
import torch.nn.functional as F
from torch import nn

START = time.time()
arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("--type", choices=("float32", "tf32", "bfloat16"), default="float32")
arguments.add_argument("--batch", type=int, default=8)
arguments.add_argument("--floor", action="store_true")
arguments.add_argument("--shards", action="store_true")
given = arguments.parse_args()
WORLD, RANK = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
if WORLD > 1:
    torch.cuda.set_device(RANK)
    torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", RANK))

LAYERS, WIDTH, HEADS, TIME, VOCABULARY = 12, 768, 12, 1024, 50304
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = given.type == "tf32"
element = torch.bfloat16 if given.type == "bfloat16" else torch.float32


def say(**figure):
    if RANK == 0:
        print(json.dumps({"rival": f"torch {torch.__version__}", "name": given.type, "gpus": WORLD, "batch": given.batch, **figure}),
              flush=True)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (y.view(b, t, HEADS, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(WIDTH, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Parameter(torch.empty(TIME, WIDTH))
        self.layers, self.norm = nn.Sequential(*[Block() for _ in range(LAYERS)]), nn.LayerNorm(WIDTH)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.007 if name.endswith(("out.weight", "down.weight")) else 0.02)

    def forward(self, ids, targets):
        x = self.norm(self.layers(self.tokens(ids) + self.positions))
        return F.cross_entropy(F.linear(x, self.tokens.weight).flatten(0, 1), targets.flatten())


def median_ms(f, warm, blocks, times):
    for _ in range(warm):
        f()
    all_ms = []
    for _ in range(blocks):
        begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
        begin.record()
        for _ in range(times):
            f()
        end.record()
        torch.cuda.synchronize()
        all_ms.append(begin.elapsed_time(end) / times)
    return sorted(all_ms)[len(all_ms) // 2]


def shared(model):
    """The model as the processes hold it together."""
    if WORLD == 1:
        return model
    if not given.shards:
        return nn.parallel.DistributedDataParallel(model, device_ids=[RANK], gradient_as_bucket_view=True)
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    low = torch.bfloat16 if given.type == "bfloat16" else None
    policy = MixedPrecisionPolicy(param_dtype=low, reduce_dtype=torch.float32)
    for block in model.layers:
        fully_shard(block, mp_policy=policy)
    return fully_shard(model, mp_policy=policy)


def step(compiled, mode=None):
    torch._dynamo.reset()
    torch.manual_seed(1)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    begin = time.time()
    model = shared(Gpt().cuda())
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    ids = torch.randint(50257, (given.batch, TIME + 1), device="cuda")
    run = torch.compile(model, mode=mode) if compiled else model
    by_policy = WORLD > 1 and given.shards
    cast = torch.autocast("cuda", torch.bfloat16) if given.type == "bfloat16" and not by_policy else contextlib.nullcontext()

    def one():
        with cast:
            loss = run(ids[:, :-1], ids[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    first_loss = one().item()
    first_s = time.time() - begin
    ms = median_ms(one, 10, 7, 10)
    say(what="gpt2_124m", shards=by_policy, compiled=compiled, mode=mode or "default", step_ms=round(ms, 3),
        tok_per_s=round(WORLD * given.batch * TIME / ms * 1e3),
        peak_MiB=round(torch.cuda.max_memory_allocated() / 2**20, 1), first_s=round(first_s, 2), first_loss=round(first_loss, 6))


def floor():
    rows = given.batch * TIME
    noise = lambda *shape: torch.randn(*shape, device="cuda", dtype=element) * 0.1
    for name, m, n, count in (("qkv", WIDTH, 3 * WIDTH, LAYERS), ("out", WIDTH, WIDTH, LAYERS), ("up", WIDTH, 4 * WIDTH, LAYERS),
                              ("down", 4 * WIDTH, WIDTH, LAYERS), ("head", WIDTH, VOCABULARY, 1)):
        x, w, g = noise(rows, m), noise(n, m), noise(rows, n)
        for way, f in (("forward", lambda: x @ w.t()), ("input gradient", lambda: g @ w), ("weight gradient", lambda: g.t() @ x)):
            say(what="floor", kind=f"product {name} {way}", ms=round(count * median_ms(f, 3, 5, 10), 4))
    q, k, v = (noise(given.batch, HEADS, TIME, WIDTH // HEADS).requires_grad_() for _ in range(3))
    attention = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)
    y = attention()
    dy = torch.randn_like(y)
    say(what="floor", kind="attention forward", ms=round(LAYERS * median_ms(attention, 3, 5, 10), 4))
    backward = lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True)
    say(what="floor", kind="attention backward", ms=round(LAYERS * median_ms(backward, 3, 5, 10), 4))


if given.floor:
    floor()
else:
    step(False)
    step(True)
    if WORLD > 1 and not given.shards:
        step(True, "reduce-overhead")
if WORLD > 1:
    torch.distributed.destroy_process_group()
