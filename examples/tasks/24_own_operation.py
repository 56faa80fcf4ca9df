# An operation of one's own, mish(x) = x tanh(log(1 + exp x)), with its gradient, in a model that two ranks share.
# torchrun --nproc-per-node 2 24_own_operation.py

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn import functional as F

mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
torch.manual_seed(1)


class Mish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        e = torch.exp(x)
        s = (1 + e) ** 2
        return x * (s - 1) / (s + 1)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        e = torch.exp(x)
        s = (1 + e) ** 2
        return dy * ((s - 1) / (s + 1) + x * 4 * e * (1 + e) / (s + 1) ** 2)


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(10, 16), nn.Linear(16, 10)

    def forward(self, x):
        return self.down(Mish.apply(self.up(x)))  # this rank's features: a plain tensor, as ColwiseParallel gives it


assert torch.autograd.gradcheck(Mish.apply, torch.randn(4, 3, dtype=torch.float64, requires_grad=True))
model = parallelize_module(Perceptron(), mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x = torch.arange(320).view(32, 10) * 37 % 19 / 9.5 - 1
first = None
for _ in range(40):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), x * x)
    loss.backward()
    optimizer.step()
    first = loss.item() if first is None else first
assert loss.item() < first / 2, "the model with it learns, its features split"
dist.destroy_process_group()
