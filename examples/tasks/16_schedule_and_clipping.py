# A rate that warms up and falls by a cosine; gradients whose norm is clipped. torchrun --nproc-per-node 2 16_schedule_and_clipping.py

import math

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_
from torch.optim.lr_scheduler import LambdaLR

dist.init_process_group("gloo")
torch.manual_seed(1)


def rate(step):
    return 0.1 * (step + 1) / 11 if step < 10 else 0.01 + 0.09 * (1 + math.cos(math.pi * min(step - 10, 40) / 40)) / 2


assert rate(5) < rate(9) and abs(rate(10) - 0.1) < 1e-12, "it warms up"
assert abs(rate(30) - 0.055) < 1e-12 and abs(rate(50) - 0.01) < 1e-12, "and falls by a cosine"
model = nn.Linear(6, 4, bias=False)
ddp = DistributedDataParallel(model)
optimizer = torch.optim.SGD(ddp.parameters(), lr=1)
scheduler = LambdaLR(optimizer, rate)
for step in range(50):
    before = model.weight.detach().clone()
    optimizer.zero_grad()
    (ddp(torch.ones(4, 6)).sum() * 200).backward()
    norm = clip_grad_norm_(ddp.parameters(), 1)
    lr = scheduler.get_last_lr()[0]
    optimizer.step()
    scheduler.step()
    moved = (model.weight.detach() - before).norm().item()
    assert norm > 1 and abs(moved - lr) < 1e-5, "a step goes as far as rate and clipping allow"
dist.destroy_process_group()
