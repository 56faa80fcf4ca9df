# Accuracy beside the loss, of the same forward pass. torchrun --nproc-per-node 2 13_metric.py

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)
rows, classes = 32, 3


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(2, 16), nn.Linear(16, classes)

    def forward(self, x):
        return self.down(F.relu(self.up(x)))


ddp = DistributedDataParallel(Classifier())
optimizer = torch.optim.Adam(ddp.parameters(), lr=0.02)
i = torch.arange(rows)
x = torch.stack((i.cos(), i.sin()), dim=1)
label = torch.where(x[:, 0] > 0.5, 2, (x[:, 1] > 0).long())
mine = slice(rank * rows // world, (rank + 1) * rows // world)
for step in range(40):
    optimizer.zero_grad()
    logits = ddp(x[mine])
    F.cross_entropy(logits, label[mine]).backward()
    optimizer.step()
    accuracy = (logits.argmax(1) == label[mine]).float().mean()
    dist.all_reduce(accuracy)
    accuracy /= world
    whole = [torch.empty_like(logits) for _ in range(world)]
    dist.all_gather(whole, logits.detach())
    right = sum(int(max(range(classes), key=row.__getitem__) == k) for row, k in zip(torch.cat(whole).tolist(), label.tolist()))
    assert accuracy.item() == right / rows, "the accuracy is what is counted from the logits"
assert accuracy.item() > 0.9, "it learns"
dist.destroy_process_group()
