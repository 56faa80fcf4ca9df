#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds switches with a default and tables of fixed size in include/, and fails on one that limits.txt does not account for.

A value that falls into a default, or a table that is full, is how a program goes wrong in silence: so each has a row that
says what happens then, and rows that nothing answers to any more are errors too.
"""

import argparse
import pathlib
import re
import sys

TEST = pathlib.Path(__file__).resolve().parent
COMMENT = re.compile(r"//[^\n]*")
DEFAULT = re.compile(r"\bdefault\s*:")
# members and variables whose bound is a number of two digits, or a constant named max_...
TABLE = re.compile(r"\b(\w+)\[(max_\w+|[0-9]{2,})(?:\s*\+\s*\d+)?\](?=\s*(?:\[[^\]]*\]\s*)*(?:;|\{|=\s*\{|,\s*\w+\[))")
CAPACITY = re.compile(r"\bconstexpr\s+(?:std::size_t|std::int64_t|int|long)\s+(max_\w+)\s*=")
VECTOR = re.compile(r"\bstatic_vector<[^;<>]*(?:<[^<>]*>)?[^;<>]*,\s*(\w+)>")
DIMENSIONS = {"max_rank", "max_axes", "max_inputs"}  # bounds of a tensor, a mesh and an operation: their own rows say so
# Tiles of a kernel: loops take as many as there are.
KERNELS = re.compile(r"runtime/cuda/device/|runtime/cuda/matmul_plans\.cuh|runtime/host/gemm|operations/\w+/device\w*\.cuh")


def rows(text):
    defaults, tables = {}, {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = [c.strip() for c in line.split("|")]
        if len(cells) != 4 or cells[0] not in ("default", "table") or not cells[3]:
            raise SystemExit(f"limits.txt:{number}: a row is: default | header | count | why, or: table | header | name | what")
        if cells[0] == "default":
            defaults[cells[1]] = (int(cells[2]), cells[3])
        else:
            tables[(cells[1], cells[2])] = cells[3]
    return defaults, tables


def find(root):
    defaults, tables = {}, set()
    for path in sorted(root.rglob("*")):
        if path.suffix not in (".hpp", ".cuh"):
            continue
        name = path.relative_to(root).as_posix()
        text = COMMENT.sub("", path.read_text())
        count = len(DEFAULT.findall(text))
        if count:
            defaults[name] = count
        for m in CAPACITY.finditer(text):
            if not KERNELS.match(name):
                tables.add((name, m.group(1)))
        if KERNELS.match(name):
            continue
        for m in TABLE.finditer(text):
            if m.group(2) not in DIMENSIONS:
                tables.add((name, m.group(1) if m.group(2)[0].isdigit() else m.group(2)))
        for m in VECTOR.finditer(text):
            tables.add((name, "static_vector " + m.group(1)))
    return defaults, tables


def tests_named(why):
    return [t for t in re.findall(r"\b(?:fail|static|unit|dist)/[\w/]+\.cpp", why) if not (TEST / t).exists()]


def check(root, text):
    wrong = []
    said, listed = rows(text)
    defaults, tables = find(root)
    for name in sorted(set(said) | set(defaults)):
        have, want = defaults.get(name, 0), said.get(name, (0, ""))[0]
        if have != want:
            wrong.append(f"{name}: {have} switches with a default, limits.txt accounts for {want}: list every value, or say "
                         "there why nothing is dropped")
    constants = {n for _, n in tables if n.startswith("max_")}
    for header, name in sorted(tables):
        known = (header, name) in listed or (name.startswith("max_") and any(n == name for _, n in listed))
        if not known:
            wrong.append(f"{header}: the fixed size of {name} has no row in limits.txt: let the program size it, or make it a "
                         "finding with both numbers, and name the test")
    for header, name in sorted(listed):
        if (header, name) not in tables and name not in constants:
            wrong.append(f"limits.txt: {header} has no table {name} any more")
    for why in [w for _, w in said.values()] + list(listed.values()):
        for t in tests_named(why):
            wrong.append(f"limits.txt: there is no test {t}")
    return wrong


def self_check():
    """The script must find what it is for."""
    import tempfile
    with tempfile.TemporaryDirectory() as d:
        root = pathlib.Path(d)
        (root / "a.hpp").write_text("struct s { int item[64]{}; int n[max_things]{}; int d[max_rank]; };\n"
                                    "inline constexpr int max_things = 3;\nvoid f() { switch (0) { default: ; } }\n")
        found = check(root, "")
        expected = ("switches with a default", "of item has", "of max_things has")
        return [e for e in expected if not any(e in f for f in found)] + (["too many"] if len(found) != 3 else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--include", type=pathlib.Path, default=TEST.parent / "include" / "shardwise")
    args = parser.parse_args()
    blind = self_check()
    if blind:
        print("limits.py does not find:", ", ".join(blind))
        return 1
    wrong = check(args.include, (TEST / "limits.txt").read_text())
    for w in wrong:
        print(w)
    print(f"{len(wrong)} unaccounted")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
