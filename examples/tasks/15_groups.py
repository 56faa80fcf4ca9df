# AdamW that decays weights but neither biases nor norms, and a rate of its own for the head.

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.norm, self.head = nn.Linear(10, 16), nn.LayerNorm(16), nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.norm(F.relu(self.body(x))))


model = Network()
no_decay = [p for name, p in model.named_parameters() if name.endswith("bias") or name.startswith("norm.")]
groups = [
    {"params": [model.body.weight]},
    {"params": no_decay, "weight_decay": 0},
    {"params": [model.head.weight], "lr": 0.2},
]
optimizer = torch.optim.AdamW(groups, lr=0.1, weight_decay=0.1)
before = {name: p.detach().clone() for name, p in model.named_parameters()}
(model(torch.ones(8, 10)).mean() * 0).backward()  # no gradient but zeros
optimizer.step()
assert torch.equal(model.body.bias, before["body.bias"]) and torch.equal(model.norm.weight, before["norm.weight"]), "these stay"
torch.testing.assert_close(model.body.weight.detach(), before["body.weight"] * 0.99, atol=1e-6, rtol=0)
torch.testing.assert_close(model.head.weight.detach(), before["head.weight"] * 0.98, atol=1e-6, rtol=0)
