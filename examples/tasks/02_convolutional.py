# A convolutional network with batch norm over two ranks. torchrun --nproc-per-node 2 02_convolutional.py

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")  # SyncBatchNorm needs it
rank, world = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(rank)
torch.set_default_device("cuda")
torch.manual_seed(1)
rows, side = 16, 8


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.head = nn.Linear(4 * side * side // 4, 2)

    def forward(self, x):
        return self.head(F.max_pool2d(F.relu(self.norm(self.conv(x))), 2).flatten(1))


model = nn.SyncBatchNorm.convert_sync_batchnorm(Network())
ddp = DistributedDataParallel(model)
optimizer = torch.optim.Adam(ddp.parameters(), lr=0.01)
image = torch.arange(rows).view(-1, 1, 1)
label = torch.arange(rows) % 2
y, x = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
mine = slice(rank * rows // world, (rank + 1) * rows // world)
for step in range(1, 61):
    images = torch.sin(torch.where(label.view(-1, 1, 1) == 1, x, y) * 1.5 + image + step).unsqueeze(1)
    optimizer.zero_grad()
    F.cross_entropy(ddp(images[mine]), label[mine]).backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    logits = model(images)
    assert torch.equal(logits.argmax(1), label), "each image is told right"
    images[1:] = 9  # other images beside the first
    assert torch.equal(model(images)[0], logits[0]), "an image's logits do not depend on its neighbours"
dist.destroy_process_group()
