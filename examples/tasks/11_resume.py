# Saved while training, stopped, gone on with: the same bits as a run that was never stopped. torchrun --nproc-per-node 2 11_resume.py

import os
import shutil
import tempfile

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
        self.up, self.drop, self.down = nn.Linear(10, 16), nn.Dropout(0.1), nn.Linear(16, 10)

    def forward(self, x):
        return self.down(self.drop(F.relu(self.up(x))))


def train(folder, last, resumes):
    torch.manual_seed(7)
    model = Perceptron()
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=0.01, weight_decay=0.01)
    torch.manual_seed(7 + rank)  # of dropout
    done = row = 0
    path = os.path.join(folder, f"rank{rank}.pt")  # the draws of each rank are its own
    if resumes:
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["rng"])
        done, row = saved["step"], saved["row"]
    for step in range(done + 1, last + 1):
        x = ((torch.arange(320).view(32, 10) * 37 + row) % 19 / 9.5 - 1).chunk(world)[rank]
        row += 32
        optimizer.zero_grad()
        F.mse_loss(ddp(x), x * x).backward()
        optimizer.step()
        if step % 5 == 0:
            os.makedirs(folder, exist_ok=True)
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}
            torch.save({**state, "step": step, "row": row}, path + ".partial")
            os.replace(path + ".partial", path)  # a kill between two ranks' files leaves checkpoints of two steps
    return model.up.weight.detach().clone()


folder = os.path.join(tempfile.gettempdir(), "task_11")
straight = train(os.path.join(folder, "straight"), 20, False)
train(os.path.join(folder, "stopped"), 12, False)  # the newest checkpoint is of step 10
assert torch.equal(train(os.path.join(folder, "stopped"), 20, True), straight), "the same bits"
dist.barrier()
shutil.rmtree(folder, ignore_errors=True)
dist.destroy_process_group()
