# A pass of one's own over a model's graph: a factor of a factor becomes one. Of the forward pass; a train step has no one graph.

import operator

import torch
from torch import fx, nn
from torch.nn import functional as F

torch.manual_seed(1)


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(10, 16), nn.Linear(16, 10)

    def forward(self, x):
        return self.down(F.relu(self.up(x) * 4.0 * 0.5))


def is_scale(node):
    return isinstance(node, fx.Node) and node.target is operator.mul and isinstance(node.args[1], float)


def merge_factors(module):
    for node in module.graph.nodes:
        while is_scale(node) and is_scale(node.args[0]):
            inner = node.args[0]
            node.args = (inner.args[0], node.args[1] * inner.args[1])
    module.graph.eliminate_dead_code()
    module.graph.lint()
    module.recompile()
    return module


def factors(module):
    return sum(is_scale(node) for node in module.graph.nodes)


def losses(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x = torch.arange(320).view(32, 10) * 37 % 19 / 9.5 - 1
    found = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), x * x)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


plain = Perceptron()
traced = fx.symbolic_trace(Perceptron())
traced.load_state_dict(plain.state_dict())
assert factors(traced) == 2
merge_factors(traced)
assert factors(traced) == 1, "one is left"
assert losses(plain) == losses(traced), "the losses stay"
