# A tensor in the middle of a model is looked at, and its gradient; the operation from which a NaN comes is found.

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

torch.manual_seed(1)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(3, 2), nn.Linear(2, 1)

    def forward(self, x):
        self.middle = self.up(x)
        return self.down(torch.log(self.middle))


model = Network()
with torch.no_grad():
    model.up.bias.copy_(torch.tensor([50.0, 5.0]))  # nothing is negative yet
x = torch.arange(1.0, 13.0).view(4, 3)
loss = model(x).mean()
print(model.middle)
model.middle.retain_grad()
loss.backward()
print(model.middle.grad)
assert model.middle.grad.shape == (4, 2), "it has a gradient"
compiled = torch.compile(model.up)
torch.testing.assert_close(compiled(x), model.middle)

with torch.no_grad():
    model.up.bias.copy_(torch.tensor([-50.0, 5.0]))  # the logarithm's fault from here on


class Finite(TorchDispatchMode):  # torch.autograd.detect_anomaly names another: the product whose gradient is the first NaN
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.is_floating_point() and not result.isfinite().all():
            raise RuntimeError(f"the result of {function} is not finite")
        return result


said = ""
try:
    with Finite():
        model(x).mean()
except RuntimeError as e:
    said = str(e)
print(said)
assert "log" in said, "the logarithm is named"
