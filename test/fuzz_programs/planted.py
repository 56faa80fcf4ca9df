#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bugs planted by hand in glue code, each of which the fuzzer of programs must find: how many programs it takes.

Each is a change of text in a temporary copy of include/, found exactly once. --stale only checks that. The seeds begin where
they are told to, so that the number says something of the next seeds, too.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))
import source_text  # noqa: E402

# (name, header below include/shardwise, text, replacement)
PLANTED = [
    ("aliasing: what a redistribution does not move is its operand's own storage", "runtime/eager/pool.hpp",
     "  block lend() const {\n", "  block lend() const {\n    return *this;\n"),
    ("functionalisation: a redistribution that moves nothing is taken for a view", "graph/mutation.hpp",
     "  return n.op != op_code::redistribute && lies_in_operand(n, specs, nodes);", "  return lies_in_operand(n, specs, nodes);"),
    ("input loading: every rank stores the whole of a value that is to be summed", "runtime/program/blocks.hpp",
     "    if (p.op == reduction::sum) r = {false, -0.0};", "    if (p.op == reduction::sum && c[a] > 1) r = {false, -0.0};"),
    ("async: the source of a transfer may be written before it has been read", "runtime/eager/flight.hpp",
     "      to.kept.back().read_until(to.ticket);\n", ""),
    ("plan matching: of a list's elements the second one is taken for the first", "module/module.hpp",
     "    for (int i = 1; i < N; ++i)\n      if (!(at(i) == first)) return false;", "    for (int i = 2; i < N; ++i)\n      if (!(at(i) == first)) return false;"),
    ("flat parameters: a gradient is written where its group's first one lies", "operations/view/adjoint.hpp",
     "attributes<slice_attributes>(of.dim, of.start, of.length), 0, 0, sum, p.dy", "attributes<slice_attributes>(of.dim, 0, of.length), 0, 0, sum, p.dy"),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--include", default=str(ROOT / "include"))
    parser.add_argument("--stale", action="store_true")
    parser.add_argument("--only", help="those whose name has this in it")
    parser.add_argument("--most", type=int, default=400, help="programs before a bug counts as missed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--kernels", action="append", default=[], help="an object of the host kernels, which no planted bug is in")
    args = parser.parse_args()
    missed = 0
    for name, header, text, replacement in PLANTED:
        if args.only and args.only not in name:
            continue
        content = (pathlib.Path(args.include) / "shardwise" / header).read_text()
        found = len(source_text.places(content, text))
        if found != 1:
            print(f"stale: {name}: the text is found {found} times in {header}")
            missed += 1
            continue
        if args.stale:
            continue
        with tempfile.TemporaryDirectory(prefix="planted_") as folder:
            include = pathlib.Path(folder) / "include"
            shutil.copytree(args.include, include)
            (include / "shardwise" / header).write_text(source_text.replaced(content, text, replacement))
            command = [sys.executable, str(HERE / "run.py"), "--include", str(include), "--programs", str(args.most), "--seed", str(args.seed),
                       "--jobs", args.jobs, "--compiler", args.compiler, "--stop-at-first", "--minimise", "0", "--build", f"{folder}/build"]
            command += [x for k in args.kernels for x in ("--kernels", k)]
            out = subprocess.run(command, capture_output=True, text=True).stdout
        seeds = re.search(r"^failed seeds: (.*)$", out, re.M)
        if not seeds:
            print(f"MISSED in {args.most} programs: {name}\n{out[-500:]}")
            missed += 1
            continue
        first = min(int(s) for s in seeds.group(1).split())
        said = next((line for line in out.splitlines() if line.startswith("FAILED p")), "")
        print(f"found after {first - args.seed + 1} programs: {name}\n    {said[:200]}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
