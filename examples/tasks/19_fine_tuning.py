# A trained backbone is frozen, and a new head trained behind it. torchrun --nproc-per-node 2 19_fine_tuning.py

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone, self.head = nn.Linear(8, 32), nn.Linear(32, 4)

    def forward(self, x):
        return self.head(F.relu(self.backbone(x)))


model = Network()
with torch.no_grad():
    model.backbone.weight.fill_(0.125)  # as it was pretrained
model.backbone.requires_grad_(False)
ddp = DistributedDataParallel(model)
optimizer = torch.optim.Adam((p for p in ddp.parameters() if p.requires_grad), lr=0.01)
x = (torch.arange(256).view(32, 8) * 37 % 101 / 50.0 - 1).chunk(world)[rank]
label = (torch.arange(32) % 4).chunk(world)[rank]
head = model.head.weight.detach().clone()
for _ in range(10):
    optimizer.zero_grad()
    F.cross_entropy(ddp(x), label).backward()
    optimizer.step()
assert bool((model.backbone.weight == 0.125).all()), "the backbone's weights stay"
assert not torch.equal(model.head.weight, head), "the head's do not"
assert model.backbone.weight not in optimizer.state, "no moments are kept for the backbone"
dist.destroy_process_group()
