#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a pass costs more than near linear: from about 2,000 to about 20,000 nodes at most --most (1.3) times ten times as much.

Passes are constexpr functions, and run at run time as they do in constants. So linear.cpp makes the graph of a train step of many
layers, runs each pass over it, and counts the blocks of code that are entered (g++'s or clang's -fsanitize-coverage=trace-pc), which
no busy machine changes. --steps shows for some passes that compilers' evaluation steps grow alike: it bisects clang's
-fconstexpr-steps with all of a pass in one constant.

  bench/compile/linear.py [--compiler g++] [--models gpt,mlp] [--nodes 2000,20000] [--output bench/results/linear.md]
"""
import argparse
import pathlib
import resource
import subprocess
import sys
import tempfile

from sweep import here, include, pass_source

counter = """static unsigned long long entered;
void __sanitizer_cov_trace_pc(void) { ++entered; }
unsigned long long blocks_entered(void) { return entered; }
"""
# Nodes of `layers` layers: first, for each.
sizes = {"gpt": (51, 184), "mlp": (11, 20)}
steps_of = {"merge_common": "sw::merge_common", "fuse_pointwise": "sw::fuse_pointwise"}


def layers_of(model, nodes):
    first, each = sizes[model]
    return max(1, round((nodes - first) / each))


def unlimited_stack():
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    resource.setrlimit(resource.RLIMIT_STACK, (hard, hard))


def built(scratch, compiler, model, layers):
    """The program that runs every pass over the graph of so many layers."""
    folder = scratch / f"{model}_{layers}"
    folder.mkdir()
    text = pass_source(folder, model, layers, "none", "").read_text().replace("passes.cpp", "linear.cpp")
    source, count, program = folder / "linear_of.cpp", folder / "counter.c", folder / "linear"
    source.write_text(text)
    count.write_text(counter)
    c = "clang" if "clang" in compiler else "gcc"
    for command in ([c.replace("clang", compiler.replace("clang++", "clang")), "-O1", "-c", str(count), "-o", str(count) + ".o"],
                    [compiler, "-std=c++20", "-O0", "-w", "-fsanitize-coverage=trace-pc", f"-I{include}", str(source), str(count) + ".o",
                     "-o", str(program)]):
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"linear.py: {' '.join(command)}\n" + run.stderr[:3000])
    return program


def counts(program, only):
    """{pass: (nodes of the graph given, blocks entered)}; a pass that finds something is none."""
    run = subprocess.run([str(program), *([only] if only else [])], capture_output=True, text=True, preexec_fn=unlimited_stack)
    if run.returncode != 0:
        sys.exit(f"linear.py: {program} ended with {run.returncode}: {run.stdout[-500:]} {run.stderr[-500:]}")
    rows = {}
    for line in run.stdout.splitlines():
        name, nodes, blocks, _, found = line.split("|")
        rows[name] = None if int(found) else (int(nodes), int(blocks))
    return rows


def steps(compiler, scratch, model, layers, name, pipeline):
    """The least -fconstexpr-steps that compiles the pass, all of it in one constant."""
    folder = scratch / f"steps_{model}_{layers}_{name}"
    folder.mkdir()
    file = folder / "steps_of.cpp"
    file.write_text(pass_source(folder, model, layers, "none", "").read_text() + "struct source { static constexpr const auto& value = "
                    f"program::program; }};\nstatic_assert({pipeline}::in_stages<source, (1 << 24)>::value.node_count > 0);\n")

    def compiles(limit):
        return subprocess.run([compiler, "-std=c++20", "-w", f"-I{include}", "-fsyntax-only", f"-fconstexpr-steps={limit}", str(file)], capture_output=True).returncode == 0

    low, high = 20_000.0, 20_000_000.0
    while high / low > 1.02:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if compiles(int(middle)) else (middle, high)
    return int(high)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--compiler", default="g++")
    p.add_argument("--models", default="gpt,mlp", help="layers of a transformer, or a chain of linear and ReLU")
    p.add_argument("--nodes", default="2000,20000")
    p.add_argument("--most", type=float, default=1.3, help="how much more a node of the larger graph may cost")
    p.add_argument("--steps", metavar="CLANG", help="compare with this compiler's evaluation steps instead")
    p.add_argument("--only", help="one pass, by its name in linear.cpp")
    p.add_argument("--output", type=pathlib.Path)
    a = p.parse_args()
    small, large = (int(n) for n in a.nodes.split(","))
    lines, bad = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        for model in a.models.split(","):
            rows = [counts(built(scratch, a.compiler, model, layers_of(model, n)), a.only) for n in (small, large)]
            if a.steps:
                for name, pipeline in steps_of.items():
                    (n, blocks), (m, more) = rows[0][name], rows[1][name]
                    s = [steps(a.steps, scratch, model, layers_of(model, k), name, pipeline) for k in (small, large)]
                    lines.append(f"| {model} | {name} | {n} | {m} | {more / blocks / (m / n):.2f} | {s[1] / s[0] / (m / n):.2f} |")
                    print(lines[-1], flush=True)
                continue
            for name, first in rows[0].items():
                second = rows[1][name]
                if first is None or second is None:
                    lines.append(f"| {model} | {name} | does not apply | | |")
                    print(lines[-1], flush=True)
                    continue
                (n, blocks), (m, more) = first, second
                ratio = more / blocks / (m / n)
                bad += 1 if ratio > a.most else 0
                lines.append(f"| {model} | {name} | {blocks / n:.0f} | {more / m:.0f} | {ratio:.2f}{' too much' if ratio > a.most else ''} |")
                print(lines[-1], flush=True)
    if a.output:
        a.output.write_text("\n".join(lines) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
