# Held-out data is judged between training steps, without dropout. torchrun --nproc-per-node 2 14_evaluation.py

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.drop, self.down = nn.Linear(10, 16), nn.Dropout(0.2), nn.Linear(16, 10)

    def forward(self, x):
        return self.down(self.drop(F.relu(self.up(x))))


def batch(first):
    x = ((torch.arange(320).view(32, 10) * 37 + first) % 19 / 9.5 - 1).chunk(world)[rank]
    return x, x * x


def summed(loss):
    loss = loss.detach().clone()
    dist.all_reduce(loss)
    return loss.item() / world


def train(held_out):
    torch.manual_seed(1)
    model = Perceptron()
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(ddp.parameters(), lr=0.01)
    losses = []
    for step in range(1, 51):
        x, y = batch(step)
        optimizer.zero_grad()
        loss = F.mse_loss(ddp(x), y)
        loss.backward()
        optimizer.step()
        losses.append(summed(loss))
        if held_out is None or step % 10 != 0:
            continue
        model.eval()
        with torch.no_grad():
            x, y = batch(1000)
            once = summed(F.mse_loss(model(x), y))
            assert once == summed(F.mse_loss(model(x), y)), "two evaluations are equal: nothing is dropped"
        model.train()
        held_out.append(once)
    return losses


held_out = []
assert train(None) == train(held_out), "training goes on as if nothing had been evaluated"
assert len(held_out) == 5 and held_out[-1] < held_out[0], "what is held out is learned, too"
dist.destroy_process_group()
