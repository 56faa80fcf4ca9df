#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles a gradient through N parts of a tensor for growing N, prints the seconds, and fails where a part's cost grows.

  bench/compile/parts.py [--compiler g++] [--counts 16,64,256] [--most 2.0]
"""

import argparse
import pathlib
import resource
import subprocess
import sys
import tempfile

INCLUDE = pathlib.Path(__file__).resolve().parent.parent.parent / "include"
PROGRAM = """#include <shardwise/shardwise.hpp>
namespace sw = shardwise;
struct dp : sw::axis<2> {{}};
struct f {{
  constexpr auto operator()(const auto& x) const {{ {body} }}
}};
using in = sw::inputs<sw::input_tensor<float, sw::shape<{rows}, 4>, sw::on<dp, sw::shard<1>>>>;
using step = sw::gradient_step<f, sw::mesh<dp>, in, sw::wrt<0>>;
static_assert(step::peak_bytes > 0);
"""
BODIES = {  # rows for each part, and what is done with them
    "stack(unbind...)": (1, "return std::apply([](const auto&... p) { return sw::stack<0>(p...); }, sw::unbind<0>(x));"),
    "stack(unbind)": (1, "return sw::stack<0>(sw::unbind<0>(x));"),
    "cat(chunk)": (2, "return sw::cat<0>(sw::chunk<0, %d>(x));"),
}


def seconds(compiler, body, count):
    rows, text = BODIES[body]
    if "%d" in text:
        text = text % count
    with tempfile.TemporaryDirectory() as d:
        source = pathlib.Path(d) / "parts.cpp"
        source.write_text(PROGRAM.format(body=text, rows=rows * count))
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        cuda = ["-x", "cu", "-c", "-o", str(pathlib.Path(d) / "parts.o")] if "nvcc" in compiler else ["-fsyntax-only"]
        run = subprocess.run([compiler, "-std=c++20", *cuda, f"-I{INCLUDE}", str(source)], capture_output=True, text=True)
        if run.returncode != 0:
            raise SystemExit(f"{body} of {count} does not compile with {compiler}:\n" + run.stderr[:2000])
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--counts", default="16,64,256")
    parser.add_argument("--most", type=float, default=2.0, help="how much more the last parts may cost each than those before")
    args = parser.parse_args()
    counts = [int(c) for c in args.counts.split(",")]
    grows = False
    for body in BODIES:
        took = [seconds(args.compiler, body, c) for c in counts]
        each = [(took[k] - took[k - 1]) / (counts[k] - counts[k - 1]) for k in range(1, len(counts))]
        print(f"{args.compiler}  {body:18}", "  ".join(f"{c}: {t:.1f} s" for c, t in zip(counts, took)),
              "  a part:", ", ".join(f"{1e3 * e:.0f} ms" for e in each))
        grows = grows or any(b > args.most * max(a, 0.01) for a, b in zip(each, each[1:]))
    return 1 if grows else 0


if __name__ == "__main__":
    sys.exit(main())
