# One update of four small batches beside the update of one large batch. torchrun --nproc-per-node 2 17_accumulation.py

import contextlib

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
        self.up, self.down = nn.Linear(10, 64), nn.Linear(64, 10)

    def forward(self, x):
        return self.down(F.relu(self.up(x)))


def weights(pieces):
    torch.manual_seed(1)
    model = Perceptron()
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(ddp.parameters(), lr=0.01)
    x = (torch.arange(640).view(64, 10) * 37 % 19 / 9.5 - 1).chunk(world)[rank]
    for _ in range(10):
        optimizer.zero_grad()
        for k, piece in enumerate(x.chunk(pieces)):
            with ddp.no_sync() if k + 1 < pieces else contextlib.nullcontext():
                (F.mse_loss(ddp(piece), piece * piece) / pieces).backward()
        optimizer.step()
    return model.up.weight.detach()


torch.testing.assert_close(weights(1), weights(4), atol=1e-4, rtol=0)  # that the peak is smaller is not seen on the CPU
dist.destroy_process_group()
