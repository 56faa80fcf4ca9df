# A vision transformer: patches, a class token, positions, encoder blocks, a head. torchrun --nproc-per-node 2 05_vit.py

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)
rows, side, patch, width, heads = 16, 8, 4, 16, 2
patches = (side // patch) ** 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        n = self.norm1(x)
        q, k, v = (w(n).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        h = x + self.wo(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return h + self.down(F.gelu(self.up(self.norm2(h))))


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Conv2d(1, width, patch, stride=patch)
        self.class_token = nn.Parameter(torch.randn(1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(patches + 1, width) * 0.02)
        self.layers = nn.Sequential(Block(), Block())
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 2)

    def forward(self, image):
        x = self.embed(image).flatten(2).transpose(1, 2)
        x = torch.cat((self.class_token.expand(x.shape[0], 1, -1), x), dim=1) + self.positions
        return self.head(self.norm(self.layers(x)[:, 0]))


ddp = DistributedDataParallel(ViT())
optimizer = torch.optim.Adam(ddp.parameters(), lr=0.01)
image = torch.arange(rows).view(-1, 1, 1)
label = torch.arange(rows) % 2
y, x = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
mine = slice(rank * rows // world, (rank + 1) * rows // world)
for step in range(1, 61):
    images = torch.sin(torch.where(label.view(-1, 1, 1) == 1, x, y) * 1.5 + image + step).unsqueeze(1)
    optimizer.zero_grad()
    loss = F.cross_entropy(ddp(images[mine]), label[mine])
    loss.backward()
    optimizer.step()
assert loss.item() < 0.1, "lying and standing stripes are told apart"
dist.destroy_process_group()
