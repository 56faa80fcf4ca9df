# Attention whose weights lie in a safetensors file, q, k and v in one matrix, the last matrix transposed; over two ranks.
# torchrun --nproc-per-node 2 10_weights_of_pytorch.py

import math
import os
import tempfile

import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn import functional as F

mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
rank = dist.get_rank()
length, width, heads = 4, 8, 2
head = width // heads


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.wq, self.wk, self.wv = (nn.Linear(width, width) for _ in range(3))
        self.wo = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = (w(x).unflatten(-1, (-1, head)).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        return self.wo(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


def numbers(seed, *shape):
    return torch.sin(torch.arange(math.prod(shape)) * float(seed) + seed).view(shape)


def load(model, path):
    file = load_file(path)  # the whole of it, on every rank
    state = {"wo.weight": file["attn.out.kernel"].T.contiguous()}
    for name, weight, bias in zip("qkv", file["attn.in_proj_weight"].chunk(3), file["attn.in_proj_bias"].chunk(3)):
        state[f"w{name}.weight"], state[f"w{name}.bias"] = weight, bias
    for name, parameter in model.named_parameters():
        with torch.no_grad():
            parameter.copy_(distribute_tensor(state.pop(name), parameter.device_mesh, parameter.placements))
    assert not state, "every tensor has its parameter"


def save(model, path):
    whole = {name: p.full_tensor() if isinstance(p, DTensor) else p for name, p in model.state_dict().items()}
    if rank == 0:
        file = {f"attn.in_proj_{part}": torch.cat([whole[f"w{name}.{part}"] for name in "qkv"]) for part in ("weight", "bias")}
        file["attn.out.kernel"] = whole["wo.weight"].T.contiguous()
        save_file(file, path)
    dist.barrier()


folder = tempfile.gettempdir()
theirs, ours = os.path.join(folder, "task_10_theirs.safetensors"), os.path.join(folder, "task_10_ours.safetensors")
qkv, bias, out = numbers(3, 3 * width, width), numbers(5, 3 * width), numbers(7, width, width)
if rank == 0:
    save_file({"attn.in_proj_weight": qkv, "attn.in_proj_bias": bias, "attn.out.kernel": out}, theirs)
dist.barrier()
model = Attention()
styles = {"wq": ColwiseParallel(), "wk": ColwiseParallel(), "wv": ColwiseParallel(), "wo": RowwiseParallel()}
parallelize_module(model, mesh, styles)
load(model, theirs)
x = numbers(2, 1, length, width)
wanted = (x[0, 0] @ qkv[2 * width :].T + bias[2 * width :]) @ out  # the first token sees itself alone
torch.testing.assert_close(model(x)[0, 0], wanted, atol=1e-5, rtol=0)
save(model, ours)
file = load_file(ours)
assert torch.equal(file["attn.in_proj_weight"], qkv) and torch.equal(file["attn.in_proj_bias"], bias), "the same values"
assert torch.equal(file["attn.out.kernel"], out), "transposed as it was"
dist.destroy_process_group()
