#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of bench/convolution/convolution_cudnn.cu, on the same GPU: forward and both gradients in both memory formats, of float,
TF32 and bfloat16; ten calls captured in one graph, medians. Each with deterministic kernels of cuDNN's heuristics, as the component runs
them, and with whichever kernel cuDNN measures to be the fastest.

    torch_cuda.py rounds NAME:N,C,SIDE,O,K,STRIDE,PADDING,GROUPS ...
"""

import statistics
import sys

import torch

CALLS = 10


def milliseconds(rounds, call):
    """Of one of the calls."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call()
    times = []
    for i in range(rounds + 1):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        if i:
            times.append(begin.elapsed_time(end) / CALLS)
    return statistics.median(times)


def measure(rounds, name, numbers, elements, channels_last, fastest):
    n, c, side, o, k, stride, padding, groups = numbers
    torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = fastest, not fastest
    torch.backends.cudnn.allow_tf32 = elements == "TF32"
    kind = torch.bfloat16 if elements == "bfloat16" else torch.float32
    memory = torch.channels_last if channels_last else torch.contiguous_format

    def made(*extent):
        return torch.randn(*extent, device="cuda", dtype=kind).to(memory_format=memory)

    x, w = made(n, c, side, side), made(o, c // groups, k, k)
    y = torch.nn.functional.conv2d(x, w, None, stride, padding, 1, groups)
    dy = torch.randn_like(y)

    def back(image):
        return torch.ops.aten.convolution_backward(dy, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups,
                                                   [image, not image, False])

    calls = {"forward": lambda: torch.nn.functional.conv2d(x, w, None, stride, padding, 1, groups),
             "image's gradient": lambda: back(True),
             "weight's gradient": lambda: back(False)}
    operations = 2.0 * y.numel() * (c // groups) * k * k
    for what, call in calls.items():
        ms = milliseconds(rounds, call)
        print(f"{name:24} {elements:9} {'channels-last' if channels_last else 'contiguous':13} {what:18} "
              f"{'torch, fastest' if fastest else 'torch, ordered'} {ms:8.4f} ms {operations / ms * 1e-9:7.2f} TFLOP/s", flush=True)


def main():
    rounds = int(sys.argv[1])
    print(f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}", flush=True)
    with torch.no_grad():
        for shape in sys.argv[2:]:
            name, numbers = shape.split(":")
            numbers = [int(x) for x in numbers.split(",") if x]
            for elements in ("float", "TF32", "bfloat16"):
                for channels_last in (False, True):
                    for fastest in (False, True):
                        measure(rounds, name, numbers, elements, channels_last, fastest)


if __name__ == "__main__":
    main()
