# Where a step's time goes, as a trace for ui.perfetto.dev, and its memory. torchrun --nproc-per-node 2 27_profile.py

import json
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(10, 16), nn.Linear(16, 10)

    def forward(self, x):
        return self.down(F.relu(self.up(x)))


model = DistributedDataParallel(Perceptron())
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x = torch.ones(32 // world, 10)
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
    for _ in range(3):
        optimizer.zero_grad()
        F.mse_loss(model(x), x).backward()
        optimizer.step()
path = os.path.join(tempfile.gettempdir(), f"task_27_{rank}.json")  # a file for each rank
seen.export_chrome_trace(path)
with open(path) as file:
    events = json.load(file)["traceEvents"]
assert sum(e.get("name") == "aten::addmm" for e in events) == 6, "there is an event for each product of each step"  # of no module
assert sum(e.self_cpu_memory_usage for e in seen.key_averages() if e.self_cpu_memory_usage > 0) > 0  # by operation, not what it is for
os.remove(path)
dist.destroy_process_group()
