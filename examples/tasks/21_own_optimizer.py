# An optimizer of one's own: Lion, beside its formula by hand. torchrun --nproc-per-node 2 21_own_optimizer.py

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            lr, (beta1, beta2), decay = group["lr"], group["betas"], group["weight_decay"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                m = self.state[p].setdefault("momentum", torch.zeros_like(p))
                direction = (m * beta1 + p.grad * (1 - beta1)).sign()
                p.mul_(1 - lr * decay).sub_(direction, alpha=lr)
                m.mul_(beta2).add_(p.grad, alpha=1 - beta2)


rows, width = 32, 10
model = nn.Linear(width, width, bias=False)
ddp = DistributedDataParallel(model)
optimizer = Lion(ddp.parameters(), lr=0.01, weight_decay=0.1)
whole = torch.arange(rows * width).view(rows, width) * 37 % 19 / 9.5 - 1
x = whole.chunk(world)[rank]
w, m = model.weight.detach().clone(), torch.zeros(width, width)
for _ in range(10):
    optimizer.zero_grad()
    F.mse_loss(ddp(x), x * x).backward()
    optimizer.step()
    g = 2 * (whole @ w.T - whole * whole).T @ whole / (rows * width)
    w = w * (1 - 0.01 * 0.1) - 0.01 * (0.9 * m + 0.1 * g).sign()
    m = 0.99 * m + 0.01 * g
torch.testing.assert_close(model.weight.detach(), w, atol=1e-5, rtol=0)
dist.destroy_process_group()
