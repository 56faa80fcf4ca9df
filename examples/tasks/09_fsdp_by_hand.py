# FSDP by hand: weights in shards, gathered before use, gradients reduce-scattered; beside fully_shard.
# torchrun --nproc-per-node 4 09_fsdp_by_hand.py

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F

mesh = init_device_mesh("cpu", (4,))
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)
rows, width, hidden, lr = 32, 12, 20, 0.5


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden, bias=False), nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down(F.relu(self.up(x)))


model = Perceptron()
weights = [model.up.weight.detach().clone(), model.down.weight.detach().clone()]
x = (torch.arange(rows * width).view(rows, width) * 37 % 19 / 9.5 - 1).chunk(world)[rank]
y = x * x

fully_shard(model, mesh=mesh)
optimizer = torch.optim.SGD(model.parameters(), lr=lr)
for _ in range(10):
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    optimizer.step()


def gathered(shard):
    whole = shard.new_empty(world * shard.shape[0], shard.shape[1])
    dist.all_gather_into_tensor(whole, shard)
    return whole.requires_grad_()


up, down = (w.chunk(world)[rank].clone() for w in weights)  # rows must divide by the ranks
for _ in range(10):
    whole_up, whole_down = gathered(up), gathered(down)
    loss = F.mse_loss(F.linear(F.relu(F.linear(x, whole_up)), whole_down), y)
    for shard, gradient in zip((up, down), torch.autograd.grad(loss, (whole_up, whole_down))):
        mine = torch.empty_like(shard)
        dist.reduce_scatter_tensor(mine, gradient, op=dist.ReduceOp.AVG)
        shard.sub_(mine, alpha=lr)
assert not torch.equal(gathered(up), weights[0]), "weights have moved"
torch.testing.assert_close(gathered(up).detach(), model.up.weight.full_tensor().detach(), atol=1e-5, rtol=0)
dist.destroy_process_group()
