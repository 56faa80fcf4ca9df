#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of bench/convolution/layout.cpp, on one core: reads a question a line, answers with a line of processor seconds.

    model N H W last repeats      the three convolutions of bench/convolution/layout.cpp, gradients of their weights
    conv N C H W O K stride padding groups last repeats      one convolution, gradients of image and weight
"""

import sys
import time

import torch


def parameters(question):
    """The kernels of a question and how each is called, and what its image is."""
    if question[0] == "model":
        n, h, w = question[1:4]
        kernels = [(torch.randn(64, 3, 7, 7), dict(stride=7)),
                   (torch.randn(64, 1, 7, 7), dict(padding="same", groups=64)),
                   (torch.randn(64, 64, 1, 1), {})]
        return torch.randn(n, 3, h, w), kernels
    n, c, h, w, o, k, stride, padding, groups = question[1:10]
    x = torch.randn(n, c, h, w).requires_grad_()
    return x, [(torch.randn(o, c // groups, k, k), dict(stride=stride, padding=padding, groups=groups))]


def made(question):
    """A step of it."""
    x, kernels = parameters(question)
    if question[-2]:
        x = x.detach().contiguous(memory_format=torch.channels_last).requires_grad_(x.requires_grad)
        kernels = [(k.contiguous(memory_format=torch.channels_last), options) for k, options in kernels]
    kernels = [(k.requires_grad_(), options) for k, options in kernels]

    def step():
        y = x
        for kernel, options in kernels:
            y = torch.nn.functional.conv2d(y, kernel, **options)
        y.sum().backward()
        for t in [x] + [k for k, _ in kernels]:
            t.grad = None

    return step


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(torch.__version__, flush=True)
    known = {}
    for line in sys.stdin:
        word, *rest = line.split()
        question = (word, *map(int, rest))
        step = known.setdefault(question[:-1], None) or made(question)
        known[question[:-1]] = step
        step()
        begin = time.process_time()
        for _ in range(question[-1]):
            step()
        print((time.process_time() - begin) / question[-1], flush=True)


if __name__ == "__main__":
    main()
