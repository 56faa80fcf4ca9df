# A moving average of the weights, judged beside training. torchrun --nproc-per-node 2 20_average_of_weights.py

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(10, 16), nn.Linear(16, 10)

    def forward(self, x):
        return self.down(F.relu(self.up(x)))


model = Perceptron()
ddp = DistributedDataParallel(model)
optimizer = torch.optim.Adam(ddp.parameters(), lr=0.01)
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
average.update_parameters(model)  # the first one copies
by_hand = model.up.weight.detach().clone()
x = (torch.arange(320).view(32, 10) * 37 % 19 / 9.5 - 1).chunk(world)[rank]
for _ in range(20):
    optimizer.zero_grad()
    loss = F.mse_loss(ddp(x), x * x)
    loss.backward()
    optimizer.step()
    average.update_parameters(model)
    by_hand = 0.9 * by_hand + 0.1 * model.up.weight.detach()
torch.testing.assert_close(average.module.up.weight.detach(), by_hand, atol=1e-5, rtol=0)
with torch.no_grad():
    assert F.mse_loss(average(x), x * x) != loss, "the average is judged"
dist.destroy_process_group()
