# The same step with fewer kernels. torchrun --nproc-per-node 2 26_fuse.py

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile

dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(rank)
torch.set_default_device("cuda")


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(10, 16), nn.Linear(10, 16), nn.Linear(16, 10)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def losses(compiled):
    torch.manual_seed(1)
    model = DistributedDataParallel(Perceptron())
    run = torch.compile(model) if compiled else model
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x = (torch.arange(320).view(32, 10) * 37 % 19 / 9.5 - 1).chunk(world)[rank]

    def step():
        optimizer.zero_grad()
        loss = F.mse_loss(run(x), x * x)
        loss.backward()
        optimizer.step()
        return loss.item()

    found = [step() for _ in range(19)]
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        found.append(step())
    return found, sum(e.count for e in seen.key_averages())


(a, before), (b, after) = losses(False), losses(True)
assert after < before, "there are fewer"
assert all(abs(p - q) < 1e-5 for p, q in zip(a, b)), "the losses agree"
dist.destroy_process_group()
