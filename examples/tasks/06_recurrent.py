# A GRU from its formulas; at the end it tells the sign of the first element. torchrun --nproc-per-node 2 06_recurrent.py

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)
rows, steps, features, hidden = 32, 8, 2, 16


class GRU(nn.Module):
    def __init__(self):
        super().__init__()
        self.from_x, self.from_h = nn.Linear(features, 3 * hidden), nn.Linear(hidden, 3 * hidden)
        self.head = nn.Linear(hidden, 2)

    def cell(self, x, h):
        xr, xz, xn = self.from_x(x).chunk(3, dim=1)
        hr, hz, hn = self.from_h(h).chunk(3, dim=1)
        r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
        n = torch.tanh(xn + r * hn)
        return n + z * (h - n)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], hidden)
        for t in range(steps):
            h = self.cell(x[:, t], h)
        return self.head(h)


ddp = DistributedDataParallel(GRU())
optimizer = torch.optim.Adam(ddp.parameters(), lr=0.02)
mine = slice(rank * rows // world, (rank + 1) * rows // world)
n = rows * steps * features
for step in range(1, 151):
    x = ((step * n + torch.arange(n)) * 7919 % 199 / 99.0 - 1).view(rows, steps, features)
    label = (x[:, 0, 0] > 0).long()
    optimizer.zero_grad()
    loss = F.cross_entropy(ddp(x[mine]), label[mine])
    loss.backward()
    optimizer.step()
assert loss.item() < 0.2, "the first element's sign is kept to the end"
dist.destroy_process_group()
