# Begun on four ranks, data and tensor parallel, gone on with on two, in shards. Programs of one size each:
# torchrun --nproc-per-node 4 12_another_mesh.py four 20 F && torchrun --nproc-per-node 2 12_another_mesh.py two 30 F, beside the same
# with four twice in another folder; the printed losses agree.

import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn import functional as F

kind, last, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
torch.manual_seed(7)


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(10, 16), nn.Linear(16, 10)

    def forward(self, x):
        return self.down(F.relu(self.up(x)))


model = Perceptron()
if kind == "four":
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    model = parallelize_module(model, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    fully_shard(model, mesh=mesh["dp"])
else:
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
    fully_shard(model, mesh=mesh)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
done = {"step": 0}
if os.path.exists(folder):
    model_state, optimizer_state = get_state_dict(model, optimizer)
    state = {"model": model_state, "optimizer": optimizer_state, "done": done}
    dcp.load(state, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
x = (torch.arange(320).view(32, 10) * 37 % 19 / 9.5 - 1).chunk(mesh["dp"].size())[mesh.get_local_rank("dp")]
for _ in range(done["step"], last):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), x * x)
    loss.backward()
    optimizer.step()
done["step"] = last
model_state, optimizer_state = get_state_dict(model, optimizer)
dcp.save({"model": model_state, "optimizer": optimizer_state, "done": done}, checkpoint_id=folder)
loss = loss.detach()
dist.all_reduce(loss, op=dist.ReduceOp.AVG)
if dist.get_rank() == 0:
    print(loss.item())
dist.destroy_process_group()
