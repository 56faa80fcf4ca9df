# A perceptron whose hidden features two ranks share, beside the whole one. torchrun --nproc-per-node 2 07_tensor_parallel.py

import copy

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn import functional as F

mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
torch.manual_seed(1)


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(10, 16), nn.Linear(16, 10)

    def forward(self, x):
        return self.down(F.relu(self.up(x)))


whole = Perceptron()
split = parallelize_module(copy.deepcopy(whole), mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
x = torch.arange(320).view(32, 10) * 37 % 19 / 9.5 - 1
y = x * x


def losses(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    found = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


counts = CommDebugMode()
with counts:  # what was sent is known when it has run: how many collectives, not how many bytes
    split(x)
assert counts.get_total_counts() == 1, "one all-reduce"
a, b = losses(whole), losses(split)
assert a[-1] < a[0] / 2, "it learns"
assert all(abs(p - q) < 1e-5 for p, q in zip(a, b)), "both lose the same"
dist.destroy_process_group()
