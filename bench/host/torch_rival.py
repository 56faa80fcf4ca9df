#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The example's training step on the host beside PyTorch's, in turns, float32, on two cores: bench_host_step (step.cpp beside this) of
several meshes and PyTorch eager and compiled on one thread and on two. One JSON line for each figure of each round, then the medians
and the ratios that docs/performance.md states, each the median of the rounds' own ratios.

usage: torch_rival.py PATH_OF_bench_host_step [--rounds 7] [--steps 10] [--cores 0,1]
"""
import argparse
import json
import os
import statistics
import subprocess
import time

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("program")
arguments.add_argument("--rounds", type=int, default=7)
arguments.add_argument("--steps", type=int, default=10)
arguments.add_argument("--cores", default="0,1", help="two cores, as taskset -c names them; siblings of one core are one core")
given = arguments.parse_args()
os.sched_setaffinity(0, {int(c) for c in given.cores.split(",")})

import torch  # noqa: E402  (behind the affinity, which its threads inherit)
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

LAYERS, WIDTH, HEADS, TIME, BATCH, BYTES = 4, 128, 4, 128, 16, 256


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        n = self.norm1(x)
        q, k, v = (w(n).view(BATCH, TIME, HEADS, -1).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.wo(y.transpose(1, 2).reshape(BATCH, TIME, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.bytes, self.positions = nn.Embedding(BYTES, WIDTH), nn.Parameter(torch.empty(TIME, WIDTH))
        self.layers, self.norm = nn.Sequential(*[Block() for _ in range(LAYERS)]), nn.LayerNorm(WIDTH)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.007 if name.endswith(("wo.weight", "down.weight")) else 0.02)

    def forward(self, ids, targets):
        x = self.norm(self.layers(self.bytes(ids) + self.positions))
        return F.cross_entropy(F.linear(x, self.bytes.weight).flatten(0, 1), targets.flatten())


class Rival:
    def __init__(self, threads, compiled):
        self.threads, self.name = threads, f"torch {'compiled' if compiled else 'eager'}, {threads} thread{'s' * (threads > 1)}"
        torch.set_num_threads(threads)
        torch.manual_seed(1)
        self.model = Gpt()
        self.loss = torch.compile(self.model) if compiled else self.model
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        at = torch.arange(BATCH * TIME)
        self.ids, self.next = (at * 7919 % 251).view(BATCH, TIME), ((at + 1) * 7919 % 251).view(BATCH, TIME)
        for _ in range(3):
            self.step()

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.ids, self.next).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()

    def tokens_per_s(self, steps):
        torch.set_num_threads(self.threads)
        self.step()
        took = []
        for _ in range(steps):
            begin = time.perf_counter()
            self.step()
            took.append(time.perf_counter() - begin)
        return BATCH * TIME / statistics.median(took)


class Ours:
    def __init__(self, dp, tp, threads):
        self.words = [given.program, str(dp), str(tp), str(threads)]
        self.name = f"shardwise {dp}x{tp}, {threads} thread{'s' * (threads > 1)} a rank"

    def tokens_per_s(self, steps):
        return json.loads(subprocess.run([*self.words, str(steps)], check=True, capture_output=True, text=True).stdout)["tokens_per_s"]


def main():
    compared = {"1": Ours(1, 1, 1), "1, 2 threads": Ours(1, 1, 2), "2x1": Ours(2, 1, 1), "2x2": Ours(2, 2, 1),
                "eager 1": Rival(1, False), "eager 2": Rival(2, False), "compiled 1": Rival(1, True), "compiled 2": Rival(2, True)}
    seen = {key: [] for key in compared}
    for turn in range(given.rounds):
        for key, side in compared.items():
            seen[key].append(side.tokens_per_s(given.steps))
            print(json.dumps({"round": turn, "what": side.name, "tokens_per_s": round(seen[key][-1])}), flush=True)
    for key, side in compared.items():
        print(json.dumps({"what": side.name, "median_tokens_per_s": round(statistics.median(seen[key]))}))
    best = max(("1, 2 threads", "2x1", "2x2"), key=lambda key: statistics.median(seen[key]))
    for name, x, y in (("one rank, one thread, of PyTorch eager on one thread", "1", "eager 1"),
                       ("one rank, one thread, of PyTorch compiled on one thread", "1", "compiled 1"),
                       (f"the best for two cores ({compared[best].name}) of PyTorch compiled on two threads", best, "compiled 2"),
                       (f"the best for two cores ({compared[best].name}) of PyTorch eager on two threads", best, "eager 2"),
                       ("2x2 of PyTorch eager on two threads", "2x2", "eager 2")):
        print(json.dumps({"ratio": name, "median": round(statistics.median(a / b for a, b in zip(seen[x], seen[y])), 3)}))
    print(json.dumps({"torch": torch.__version__, "cores": given.cores}))


if __name__ == "__main__":
    main()
