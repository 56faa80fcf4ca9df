#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes special_values_table.hpp: PyTorch's answers where numbers are special. Needs torch; the tests do not.

    python3 special_values.py > special_values_table.hpp
"""

import math
import warnings

import torch
import torch.nn.functional as F

warnings.simplefilter("ignore")
nan, inf = math.nan, math.inf

# Of one element. The subnormals and the largest numbers of both types; where exp, tanh and powers of float end.
ELEMENTS = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.5, 3.0, 1e-3, -1e-3, 0.625, 20.0, -20.0, 88.71, 89.0, -87.5,
            -103.0, -104.5, 1e-40, -1e-40, 1e-300, 3e38, -3e38, 1e300, 16777217.0, 0.3]
UNARY = {
    "abs": torch.abs, "neg": torch.neg, "sign": torch.sign, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal, "sigmoid": torch.sigmoid, "sin": torch.sin, "cos": torch.cos,
    "square": torch.square, "silu": F.silu, "relu": torch.relu, "tanh": torch.tanh, "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    **{f"pow {n}": (lambda n: lambda x: torch.pow(x, n))(n) for n in (2, 3, 0.5, -0.5, -1, -2, 0, 1, 1.5, -1.5, nan, inf, -inf)},
    "clamp": lambda x: torch.clamp(x, -0.5, 1.0), "clamp low > high": lambda x: torch.clamp(x, 0.5, -0.5),
    "clamp_min": lambda x: torch.clamp_min(x, 0.5), "clamp_max": lambda x: torch.clamp_max(x, 0.5),
    "clamp_min nan": lambda x: torch.clamp_min(x, nan), "clamp_max nan": lambda x: torch.clamp_max(x, nan),
    "x + 2.5": lambda x: x + 2.5, "2.5 - x": lambda x: 2.5 - x, "x * 3": lambda x: x * 3, "x * nan": lambda x: x * nan,
    "x / 4": lambda x: x / 4, "x / 3": lambda x: x / 3, "x / 1e-40": lambda x: x / 1e-40, "x / 1e-310": lambda x: x / 1e-310,
    "x / 1e308": lambda x: x / 1e308, "x / 0": lambda x: x / 0.0, "3 / x": lambda x: 3 / x,
    "dropout 1": lambda x: F.dropout(x, 1.0), "masked_fill nan": lambda x: x.masked_fill(x > 0, nan),
}
COMPARED = {
    **{f"{c} 1": (lambda c: lambda x: getattr(torch, c)(x, 1.0))(c) for c in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{f"{c} nan": (lambda c: lambda x: getattr(torch, c)(x, nan))(c) for c in ("eq", "ne", "lt", "le", "gt", "ge")},
}
OPERANDS = [nan, inf, -inf, 0.0, -0.0, 1.0, 2.0, -2.0, 1e-40, 3e38]
BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "maximum": torch.maximum, "minimum": torch.minimum,
    "lerp 0.25": lambda x, y: torch.lerp(x, y, 0.25), "lerp 0.75": lambda x, y: torch.lerp(x, y, 0.75),
    "where x < y": lambda x, y: torch.where(x < y, x, y),
}
ROWS = [[1.0, 2.0, 3.0, 4.0], [nan, 1.0, 2.0, 3.0], [1.0, nan, 2.0, -inf], [inf, 1.0, 2.0, 3.0], [-inf] * 4, [inf] * 4,
        [inf, -inf, 0.0, 1.0], [0.0] * 4, [3.0] * 4, [1e38, 1e38, -1e38, 0.0], [1e308, 1e308, 1e308, 0.0], [0.0, -0.0, 0.0, -0.0],
        [-1000.0, 0.0, 1000.0, 2000.0], [-inf, 0.0, 1.0, -inf], [nan] * 4, [2.0, nan, 3.0, nan], [0.0, inf, 2.0, 3.0]]
REDUCED = {
    "sum": lambda x: x.sum(-1), "mean": lambda x: x.mean(-1), "amax": lambda x: x.amax(-1), "amin": lambda x: x.amin(-1),
    "prod": lambda x: x.prod(-1), "var": lambda x: x.var(-1), "std": lambda x: x.std(-1),
    "var of all": lambda x: x.var(-1, correction=0), "var correction 5": lambda x: x.var(-1, correction=5),
    "norm 1": lambda x: torch.linalg.vector_norm(x, 1, -1), "norm 2": lambda x: torch.linalg.vector_norm(x, 2, -1),
    "norm 3": lambda x: torch.linalg.vector_norm(x, 3, -1), "logsumexp": lambda x: torch.logsumexp(x, -1),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.ones(x.shape[0], dtype=torch.long), reduction="none"),
}
ALONG = {
    "softmax": lambda x: torch.softmax(x, -1), "log_softmax": lambda x: torch.log_softmax(x, -1),
    "layer_norm": lambda x: F.layer_norm(x, [4], eps=1e-5), "layer_norm eps 0": lambda x: F.layer_norm(x, [4], eps=0.0),
    "topk": lambda x: torch.topk(x, 3).values, "topk smallest": lambda x: torch.topk(x, 3, largest=False).values,
    "sort": lambda x: torch.sort(x, stable=True).values, "sort descending": lambda x: torch.sort(x, descending=True, stable=True).values,
}
POSITIONS = {"argmax": lambda x: x.argmax(-1, keepdim=True), "argmin": lambda x: x.argmin(-1, keepdim=True)}


def literal(v):
    if math.isnan(v):
        return "nan"
    if math.isinf(v):
        return "inf" if v > 0 else "-inf"
    return repr(float(v))


def numbers(values):
    return "{" + ", ".join(literal(v) for v in values) + "}"


def of(kind, name, function, *inputs, gradients=True):
    """One row: per element type the values, and the gradient of their sum for each input; rows one by one, so that none
    meets another's numbers."""
    parts = []
    for dtype in (torch.float32, torch.float64):
        xs = [torch.tensor(x, dtype=dtype, requires_grad=gradients) for x in inputs]
        y = function(*xs)
        parts.append(numbers(y.detach().to(torch.float64).flatten().tolist()))
        grads = torch.autograd.grad(y.sum(), xs, allow_unused=True) if gradients else ()
        for k in range(2):
            g = grads[k] if k < len(grads) else None
            parts.append("{}" if g is None else numbers(g.to(torch.float64).flatten().tolist()))
    print(f'    {{"{name}", {kind},\n     ' + ",\n     ".join(parts) + "},")


def main():
    print("// SPDX-License-Identifier: Apache-2.0")
    print(f"// Written by special_values.py with PyTorch {torch.__version__.split('+')[0]} on the CPU: do not edit.")
    print("#pragma once\n\n// clang-format off\n#include <vector>\n\nnamespace test::special {\n")
    print("inline constexpr double nan = __builtin_nan(\"\"), inf = __builtin_huge_val();\n")
    print("// Of one element; of pairs of elements; of rows of four: to one number, to four, to a position.")
    print("enum class kind { unary, compared, binary, reduced, along, position };\n")
    print("// PyTorch's values, and the gradients of their sum for the first and the second operand, in float and in double.")
    print("struct answer {\n  const char* name;\n  kind of;\n  std::vector<double> f32, f32_dx, f32_dy, f64, f64_dx, f64_dy;\n};\n")
    print(f"inline const std::vector<double> elements = {numbers(ELEMENTS)};")
    print("// Every pair of them, the first operand's the slower.")
    print(f"inline const std::vector<double> operands = {numbers(OPERANDS)};")
    print(f"inline const std::vector<double> rows = {numbers([v for r in ROWS for v in r])};\n")
    print("inline const std::vector<answer> answers = {")
    for name, f in UNARY.items():
        of("kind::unary", name, f, ELEMENTS)
    for name, f in COMPARED.items():
        of("kind::compared", name, f, ELEMENTS, gradients=False)
    pairs = [(a, b) for a in OPERANDS for b in OPERANDS]
    for name, f in BINARY.items():
        of("kind::binary", name, f, [a for a, _ in pairs], [b for _, b in pairs])
    for kind, table in (("kind::reduced", REDUCED), ("kind::along", ALONG)):
        for name, f in table.items():
            of(kind, name, f, ROWS)
    for name, f in POSITIONS.items():
        of("kind::position", name, f, ROWS, gradients=False)
    print("};\n\n}  // namespace test::special")


if __name__ == "__main__":
    main()
