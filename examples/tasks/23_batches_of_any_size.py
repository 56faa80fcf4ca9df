# One compiled model for batches of any number of rows up to 64.

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(10, 16), nn.Linear(16, 4)

    def forward(self, x):
        return self.down(F.relu(self.up(x)))


def numbers(rows):
    return torch.arange(rows * 10).view(rows, 10) * 37 % 19 / 9.5 - 1


model = Perceptron()
compiled = torch.compile(model)
first = numbers(64)
torch._dynamo.mark_dynamic(first, 0, max=64)
compiled(first)
with torch.no_grad():
    for rows in (64, 7, 1):  # one row is compiled anew
        torch.testing.assert_close(compiled(numbers(rows)), model(numbers(rows)))
