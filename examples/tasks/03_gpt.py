# A GPT: tables of tokens and positions, causal blocks, a head tied to the tokens. torchrun --nproc-per-node 2 03_gpt.py

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)
batch, length, width, heads, words = 4, 12, 16, 2, 7


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n = self.norm1(x)
        q, k, v = (w(n).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        h = x + self.wo(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return h + self.down(F.gelu(self.up(self.norm2(h))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(words, width)
        self.positions = nn.Parameter(torch.randn(length, width) * 0.02)
        self.layers = nn.Sequential(Block(), Block())
        self.norm = nn.LayerNorm(width)

    def forward(self, ids):
        return F.linear(self.norm(self.layers(self.tokens(ids) + self.positions)), self.tokens.weight)


model = GPT()
ddp = DistributedDataParallel(model)
optimizer = torch.optim.AdamW(ddp.parameters(), lr=0.01, weight_decay=0.01)
mine = slice(rank * batch // world, (rank + 1) * batch // world)
for step in range(1, 81):
    at = torch.arange(length) + torch.arange(batch).unsqueeze(1) + step  # the text 0 1 2 3 4 5 6 0 1 ...
    x, following = at % words, (at + 1) % words
    optimizer.zero_grad()
    loss = F.cross_entropy(ddp(x[mine]).flatten(0, 1), following[mine].flatten())
    loss.backward()
    optimizer.step()
assert loss.item() < 0.1, "the text is learned"
with torch.no_grad():
    before = model(x)
    x[:, 8] = (x[:, 8] + 3) % words
    assert torch.equal(model(x)[:, :8], before[:, :8]), "nothing later is seen"
dist.destroy_process_group()
