# A Llama block, its heads and hidden features over two ranks, beside the same block on one. torchrun --nproc-per-node 2 04_llama.py

import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn import functional as F

mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
torch.manual_seed(1)
batch, length, width, heads, kv_heads, hidden = 2, 8, 32, 4, 2, 48
head = width // heads


def rotary(x):  # (batch, heads, length, head)
    angle = torch.arange(length).unsqueeze(1) / 10000 ** (torch.arange(0, head, 2) / head)
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), dim=-1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.wq, self.wo = nn.Linear(width, heads * head, bias=False), nn.Linear(heads * head, width, bias=False)
        self.wk, self.wv = (nn.Linear(width, kv_heads * head, bias=False) for _ in range(2))
        self.w1, self.w3 = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.w2 = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        n = self.norm1(x)
        q, k, v = (w(n).unflatten(-1, (-1, head)).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        y = F.scaled_dot_product_attention(rotary(q), rotary(k), v, is_causal=True, enable_gqa=True)
        h = x + self.wo(y.transpose(1, 2).flatten(2))
        m = self.norm2(h)
        return h + self.w2(F.silu(self.w1(m)) * self.w3(m))


one = Block()
two = parallelize_module(
    copy.deepcopy(one),
    mesh,
    {
        "wq": ColwiseParallel(),
        "wk": ColwiseParallel(),
        "wv": ColwiseParallel(),
        "wo": RowwiseParallel(),
        "w1": ColwiseParallel(),
        "w3": ColwiseParallel(),
        "w2": RowwiseParallel(),
    },
)
x = torch.arange(batch * length * width).view(batch, length, width) * 37 % 19 / 9.5 - 1
torch.testing.assert_close(one(x), two(x), atol=1e-5, rtol=0)
dist.destroy_process_group()
