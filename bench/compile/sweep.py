#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes table.md beside this script: what compiling the example's GPT train step costs, by depth and by compiler, and what
graph passes add to it.

--only takes a regex over a row's words: section (step, device, program, header, pass), compiler, then model, layers and
pipeline as far as the section has them: 'pass clang.* gpt 96', '^step'. It prints, and writes a file only with --output.

Each row is one compiler process tree on default flags (no -O): CPU seconds (user + system of all its processes), wall
seconds, and the largest resident memory of any one process. nvcc compiles the same file as CUDA source, host code only.
"""
import argparse
import concurrent.futures
import datetime
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent
include = root / "include"
source = here / "gpt_step.cpp"

# Seconds of CPU for 12 and 48 layers, and memory, that the library aims at.
targets = {"g++": (3, 5), "clang++": (3, 6), "nvcc": (6, 9)}
target_mb = 1024
device_target, device_target_mb = 60, 3072


# What passes.cpp is compiled with: each pass alone, then whole pipelines. An iteration moves parts of the step.
simplify = "sw::cancel_redistributions,sw::merge_common"
listed = f"{simplify},sw::comm_fusion_in_place<1>,sw::fused_optimizer,sw::remove_copy_from_optimizer"
passes = {
    "none": "",
    "cancel_redistributions": "sw::cancel_redistributions",
    "merge_common": "sw::merge_common",
    "comm_fusion_in_place": "sw::comm_fusion_in_place<1>",
    "fused_optimizer": "sw::fused_optimizer",
    "foreach_optimizer": "sw::foreach_optimizer",
    "schedule_comm_wait": "sw::schedule_comm_wait",
    "sink_waits": "sw::sink_waits",
    "raise_comms": "sw::raise_comms",
    "expedite_comms": "sw::expedite_comms",
    "reorder_compute_for_overlap": "sw::reorder_compute_for_overlap<>",
    "fuse_pointwise": "sw::fuse_pointwise",
    "fuse_kernels": "sw::fuse_kernels",
    "merge_products": "sw::merge_products",
    "optimize_layout": "sw::optimize_layout<>",
    "partial_lower": "sw::partial_lower<>",
    "rematerialise": "sw::rematerialise<50>",
    "supported_subgraphs": "",
}
pipelines = {
    "none": "",
    "a: simplify, fusion, lists, split": f"{listed},sw::split_fused_optimizer<0,0>",
    "a: iteration": listed,
    "b: waits": f"{simplify},sw::expedite_comms,sw::reorder_compute_for_overlap<>,sw::sink_waits,sw::raise_comms",
    "c: fuse_kernels": f"{simplify},sw::fuse_kernels",
    "c: merge, fuse, join": f"{simplify},sw::merge_products,sw::fuse_kernels,sw::join_norm_adjoints",
    "d: rematerialise": f"{simplify},sw::rematerialise<50>",
}
moves = {"mlp": 'sw::iter_move_grads_and_optimizers<"all_reduce", "relu">', "gpt": 'sw::move_descendants<"embedding", "advance">'}


def pass_source(scratch, model, layers, name, pipeline):
    """A file that says what passes.cpp is to compile: nvcc takes no commas in -D."""
    lines = [f"#define LAYERS {layers}", f"#define PIPELINE {pipeline}"] + (["#define MLP"] if model == "mlp" else [])
    if name == "a: iteration":
        lines.append(f"#define ITERATED {moves[model]}")
    if name == "supported_subgraphs":
        lines.append("#define SUBGRAPHS")
    file = scratch / "passes_of.cpp"
    file.write_text("\n".join([*lines, f'#include "{here / "passes.cpp"}"', ""]))
    return file


def pass_rows(only, compilers, layers, passes_at, repeat, scratch, jobs):
    """Lines of the tables of passes; (lines, whether one failed)."""
    def cell(job):
        c, model, name, pipeline, n = job
        if not only("pass", c, model, n, name):
            return ""
        with tempfile.TemporaryDirectory(dir=scratch) as own:
            own = pathlib.Path(own)
            row, error = measure(command(c, pass_source(own, model, n, name, pipeline), own / "out.o"), repeat)
        text = f"{row[0]:.1f} s, {row[2]:.0f} MB" if row else f"fails: {error[:80]}"
        print(f"{c} {model} {n} {name}: {text}", flush=True)
        return text

    text, failed = [], False
    for title, table, models, depths in (("Whole pipelines", pipelines, ("mlp", "gpt"), layers),
                                         ("Each pass alone", passes, ("gpt",), passes_at)):
        rows = [(c, m, name, p) for c in compilers for m in models for name, p in table.items()]
        # the longest first
        order = sorted(((r, n) for r in rows for n in depths), key=lambda r: (-r[1], r[0][0] != "nvcc"))
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            cells = dict(zip(order, pool.map(lambda r: cell((*r[0], r[1])), order)))
        failed = failed or any(c.startswith("fails") for c in cells.values())
        rows = [f"| {r[0]} | {r[1]} | {r[2]} | " + " | ".join(cells[r, n] for n in depths) + " |" for r in rows if any(cells[r, n] for n in depths)]
        if rows:
            text += ["", f"{title} (`passes.cpp`): CPU seconds and peak memory by layers, on default limits"
                     + (f", {jobs} compilers at once" if jobs > 1 else "") + ". `none` is what the",
                     "trace, the differentiation and the optimizer cost; an iteration is three programs with their memory plans.", "",
                     "| compiler | model | passes | " + " | ".join(map(str, depths)) + " |", "|---|---|---|" + "---|" * len(depths), *rows]
    return text, failed


def command(compiler, file, output, *defines):
    c = [compiler, "-std=c++20", f"-I{include}", *defines]
    if "nvcc" in compiler:
        c += ["-x", "cu"]
    elif file.suffix == ".hpp":
        c += ["-x", "c++"]
    return c + ["-c", str(file), "-o", str(output)]


def measure(cmd, repeat=1):
    """The run with the least CPU: (CPU seconds, wall seconds, MB), or None and the first error line."""
    best = None
    for _ in range(repeat):
        begin = time.monotonic()
        # a file, not a pipe: a process waiting for its reader would be charged the wait
        with tempfile.TemporaryFile() as log:
            p = subprocess.Popen(cmd, stdout=log, stderr=subprocess.STDOUT)
            _, status, usage = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
            wall = time.monotonic() - begin
            if p.returncode != 0:
                log.seek(0)
                lines = log.read().decode(errors="replace").splitlines()
                line = next((l for l in lines if "error" in l), lines[0] if lines else "no output")
                return None, line.replace(f"{root}/", "").replace("|", " ")
        row = (usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)
        best = row if best is None or row[0] < best[0] else best
    return best, ""


def counts(compiler, layers):
    """(nodes, specs, kernels, calls) of the program, read from the error that names them."""
    out = subprocess.run([compiler, "-std=c++20", f"-I{include}", f"-DLAYERS={layers}", "-DREPORT", "-fsyntax-only", str(source)],
                         capture_output=True, text=True).stderr
    found = re.search(r"counts<(\d+), (\d+), (\d+), (\d+)>", out)
    return tuple(map(int, found.groups())) if found else None


def version(compiler):
    out = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
    lines = [l.strip() for l in out.splitlines() if l.strip()]
    return next((l for l in lines if "release" in l), lines[0] if lines else "?")


def machine():
    model = "unknown processor"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []:
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {os.cpu_count()} cores"


def family(compiler):
    name = os.path.basename(compiler)
    return next((f for f in ("clang++", "g++", "nvcc") if name.startswith(f)), name)


def verdict(compiler, layers, row):
    t = targets.get(family(compiler))
    limit = {12: t[0], 48: t[1]}.get(layers) if t else None
    if limit is None:
        return ""
    return f"within {limit} s" if row[0] <= limit and row[2] <= target_mb else f"over {limit} s or {target_mb} MB"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--compilers", default="g++,clang++-16,nvcc", help="comma-separated; those not installed are left out")
    p.add_argument("--layers", default="2,12,48", help="comma-separated depths")
    p.add_argument("--repeat", type=int, default=2, help="runs per row; the one with the least CPU counts")
    p.add_argument("--quick", action="store_true", help="one run per row, no table of headers")
    p.add_argument("--pass-layers", default="12,24,48,96", help="comma-separated depths of whole pipelines")
    p.add_argument("--pass-repeat", type=int, default=1, help="runs per row of the tables of passes")
    p.add_argument("--jobs", type=int, default=1, help="compilers at once for the tables of passes")
    p.add_argument("--only", default="", help="regex: rows to measure")
    p.add_argument("--output", type=pathlib.Path, help="default: table.md beside this script")
    a = p.parse_args()

    def only(*words):
        return re.search(a.only, " ".join(map(str, words))) is not None

    repeat = 1 if a.quick else a.repeat
    compilers = [c for c in a.compilers.split(",") if shutil.which(c)]
    if not compilers:
        sys.exit("sweep.py: none of the compilers given is installed")
    host = next((c for c in compilers if "nvcc" not in c), "g++")
    layers = [int(n) for n in a.layers.split(",")]

    text = ["# Compile time of the GPT train step", "",
            f"`bench/compile/sweep.py` wrote this on {datetime.date.today()}: {machine()}; load "
            f"{os.getloadavg()[0]:.1f} at the start. Trace, passes and executor of `gpt_step.cpp`, one file, default flags.",
            f"Least CPU of {repeat} run{'s' if repeat > 1 else ''}; CPU is user + system of all processes.", ""]
    text += [f"- {c}: {version(c)}" for c in compilers]
    failed = False

    def section(head, rows):
        if rows:
            text.extend([*head, *rows])

    def note(rows, line):
        rows.append(line)
        print(line, flush=True)

    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "out.o"
        # One file; with the host kernels in a library of their own, as a program that links shardwise::kernels; its kernels fused.
        kinds = {"one file": [], "shardwise::kernels": ["-DSHARDWISE_EXTERN_KERNELS=1"], "fused": ["-DFUSED"]}
        rows = []
        for kind, defines in kinds.items():
            for c in compilers:
                for n in layers if kind != "fused" else [12]:
                    if not only("step", c, "gpt", n, kind):
                        continue
                    row, error = measure(command(c, source, out, f"-DLAYERS={n}", *defines), repeat)
                    failed = failed or row is None
                    aim = verdict(c, n, row) if row and kind != "fused" else ""
                    note(rows, f"| {kind} | {c} | {n} | {row[0]:.2f} | {row[1]:.2f} | {row[2]:.0f} | {aim} |" if row
                         else f"| {kind} | {c} | {n} | fails: {error[:120]} | | | |")
        section(["", "| program | compiler | layers | CPU s | wall s | peak MB | target |", "|---|---|---|---|---|---|---|"], rows)

        rows = []
        for n in layers if "nvcc" in compilers else []:
            if not only("device", "nvcc", "gpt", n):
                continue
            flags = ["-O3", "-arch=sm_90", "--expt-relaxed-constexpr", "-DDEVICE", f"-DLAYERS={n}"]
            row, error = measure(command("nvcc", source, out, *flags))
            failed = failed or row is None
            if row:
                symbols = subprocess.run(["nm", "-C", str(out)], capture_output=True, text=True).stdout
                kernels = len({l.split(" ", 2)[-1] for l in symbols.splitlines() if "__device_stub__" in l})
                good = row[0] <= device_target and row[2] <= device_target_mb
                note(rows, f"| {n} | {row[0]:.2f} | {row[1]:.2f} | {row[2]:.0f} | {kernels} | "
                     f"{'within' if good else 'over'} {device_target} s {'and' if good else 'or'} {device_target_mb} MB |")
            else:
                note(rows, f"| {n} | fails: {error[:120]} | | | | |")
        section(["", "With device code, all kernels of the backend included (`nvcc -O3 -arch=sm_90 -DDEVICE`); kernels are counted as",
                 "entry stubs in the object:", "", "| layers | CPU s | wall s | peak MB | kernels | target |", "|---|---|---|---|---|---|"],
                rows)

        rows = []
        for n in layers:
            if not only("program", host, "gpt", n):
                continue
            k = counts(host, n)
            note(rows, f"| {n} | " + (" | ".join(map(str, k)) if k else "? | ? | ? | ?") + " |")
        section(["", "What those programs are:", "", "| layers | nodes | specs | kernels | kernel calls |", "|---|---|---|---|---|"], rows)

        at = [int(n) for n in a.pass_layers.split(",")]
        lines, bad = pass_rows(only, compilers, at, [at[0], at[-1]] if len(at) > 1 else at, 1 if a.quick else a.pass_repeat,
                               pathlib.Path(scratch), a.jobs)
        failed = failed or bad
        text += lines

        rows = []
        empty = pathlib.Path(scratch) / "empty.cpp"
        for h in [None, *sorted(include.rglob("*.hpp"))] if not a.quick else []:
            if h and (h.name.endswith(".def.hpp") or "cuda" in h.parts):
                continue
            name = h.relative_to(include).as_posix() if h else "(nothing)"
            if not only("header", host, name):
                continue
            empty.write_text(f"#include <{name}>\n" if h else "")
            row, error = measure(command(host, empty, out))
            note(rows, f"| {name} | {row[0]:.2f} | {row[2]:.0f} |" if row else f"| {name} | fails: {error[:120]} | |")
        section(["", f"Including one header alone ({host}):", "", "| header | CPU s | peak MB |", "|---|---|---|"], rows)
    if a.only and not a.output:
        return 1 if failed else 0
    output = a.output or here / "table.md"
    output.write_text("\n".join(text) + "\n")
    print(f"wrote {output}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
