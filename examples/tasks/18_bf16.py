# Computed in bf16, weights and moments kept in float, beside the same in float. torchrun --nproc-per-node 2 18_bf16.py

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
rows = 32


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.norm, self.head = nn.Linear(8, 32), nn.LayerNorm(32), nn.Linear(32, 4)

    def forward(self, x):
        y = self.norm(F.relu(self.body(x)))
        with torch.autocast("cpu", enabled=False):
            return self.head(y.float())


def losses(low):
    torch.manual_seed(1)
    ddp = DistributedDataParallel(Classifier())
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=0.01, weight_decay=0.01)
    x = (torch.arange(rows * 8).view(rows, 8) * 37 % 101 / 50.0 - 1).chunk(world)[rank]
    label = (torch.arange(rows) % 4).chunk(world)[rank]
    found = []
    for _ in range(40):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=low):
            loss = F.cross_entropy(ddp(x), label)
        loss.backward()
        optimizer.step()
        whole = loss.detach().clone()
        dist.all_reduce(whole)
        found.append(whole.item() / world)
    assert all(p.dtype == torch.float32 for p in ddp.parameters())
    return found


a, b = losses(False), losses(True)
assert a != b and a[-1] < a[0] / 2, "it learns, and bf16 is not float"
assert all(abs(p - q) < 0.02 * a[0] for p, q in zip(a, b)), "losses are near those of float"
dist.destroy_process_group()
