# A perceptron, data-parallel over four ranks, each of which brings its own rows. torchrun --nproc-per-node 4 01_perceptron.py

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(2, 32), nn.Linear(32, 2)

    def forward(self, x):
        return self.down(F.relu(self.up(x)))


model = Perceptron()
ddp = DistributedDataParallel(model)
optimizer = torch.optim.Adam(ddp.parameters(), lr=0.02)
first = last = None
for step in range(1, 201):
    k = (step * 16 + torch.arange(16)) * 4 + rank  # this rank's 16 rows
    x = torch.stack((k * 37 % 101 / 50.0 - 1, k * 61 % 103 / 51.0 - 1), dim=1)
    label = (x[:, 0] * x[:, 1] > 0).long()
    optimizer.zero_grad()
    loss = F.cross_entropy(ddp(x), label)
    loss.backward()
    optimizer.step()
    last = loss.detach().clone()
    dist.all_reduce(last)
    last = last.item() / world
    first = last if first is None else first
assert last < first / 10, "the loss has fallen to a tenth"
weights = [torch.empty_like(model.up.weight) for _ in range(world)]
dist.all_gather(weights, model.up.weight.detach())
assert all(torch.equal(w, weights[0]) for w in weights), "all ranks hold the same weights"
dist.destroy_process_group()
