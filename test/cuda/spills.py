#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels spill no more registers than was reviewed.

A kernel that has not the registers it needs keeps numbers in memory, gives the same results and is slower by a third or more; no test of
results sees it, and one changed index can do it. So sources that are nothing but kernels are compiled for Hopper as a program would, and what
ptxas says that each stores beside its registers is held against spills.txt: bytes, at most SLACK more than stands there, 0 where nothing
stands. Needs nvcc and c++filt, no GPU. spills.txt is of one version of nvcc; another one is named, and nothing is compared.

usage: spills.py --nvcc NVCC [--sample I/N] [--write]
  --sample I/N   of the sources every N-th, from the I-th on
  --write        writes spills.txt anew, to be looked at before it is committed
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

SLACK = 32
FOLDER = pathlib.Path(__file__).resolve().parent
INCLUDE = FOLDER.parent.parent / "include"
ATTENTION = "#include <shardwise/operations/attention/device_elements.cuh>\nSHARDWISE_DEVICE_ATTENTION({})\n"
ELEMENTS = "#include <shardwise/cuda.cuh>\nSHARDWISE_DEVICE_ELEMENTS({})\n"
SPLIT = """#include <shardwise/operations/contraction/device_split_product.cuh>
auto run = &shardwise::cuda::split_product::run;
"""
SOURCES = {  # the architecture, the source
    "attention of bfloat16": ("sm_90", ATTENTION.format("shardwise::bfloat16")),
    "attention of float": ("sm_90", ATTENTION.format("float")),
    "elements of bfloat16": ("sm_90", ELEMENTS.format("shardwise::bfloat16")),
    "products of float as three of TF32": ("sm_90a", SPLIT),
}
ENTRY = re.compile(r"Compiling entry function '(\S+)'.*?\n(?:.*\n)*?.*?(\d+) bytes spill stores")


def short(names):
    """Kernels' names, without the namespaces and arguments of all."""
    text = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout.splitlines()
    return [re.sub(r"^void ", "", re.sub(r"(shardwise|v\d+_\d+|cuda|launched|detail|attention_detail|host|built_in_by_nvcc)::", "", t)).split(
        ">(")[0].replace("\t", " ") + (">" if ">(" in t else "") for t in text]


def spills_of(nvcc, name, architecture, text):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "kernels.cu"
        source.write_text(text)
        done = subprocess.run([nvcc, "-std=c++20", f"-arch={architecture}", "-O3", "--expt-relaxed-constexpr", "-Xptxas", "-v", f"-I{INCLUDE}",
                               "-cubin", str(source), "-o", str(pathlib.Path(folder) / "kernels.cubin")], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name} does not compile:\n{done.stderr[-2000:]}")
    entries = ENTRY.findall(done.stderr)
    if not entries:
        sys.exit(f"{name}: ptxas names no kernel:\n{done.stderr[:2000]}")
    most = {}  # kernels that are told apart by what short() leaves out have one row, of the one that spills most
    for kernel, (_, spilled) in zip(short([e[0] for e in entries]), entries):
        most[kernel] = max(most.get(kernel, 0), int(spilled))
    return most, len(entries)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvcc", required=True)
    parser.add_argument("--sample", default="0/1")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if given.write and given.sample != "0/1":
        parser.error("--write with --sample: the table is of all sources; leave one of them out")
    version = re.search(r"release (\S+),", subprocess.run([given.nvcc, "--version"], capture_output=True, text=True).stdout).group(1)
    table = FOLDER / "spills.txt"
    rows = [line.split("\t") for line in table.read_text().splitlines() if line and not line.startswith("#")] if table.exists() else []
    reviewed_by = next((r[1] for r in rows if r[0] == "nvcc"), None)
    if not given.write and reviewed_by != version:
        print(f"skipped: spills were reviewed with nvcc {reviewed_by}, this is {version}")
        return
    at, of = map(int, given.sample.split("/"))
    bad, written = 0, []
    for name, (architecture, text) in list(SOURCES.items())[at % len(SOURCES)::of]:
        found, count = spills_of(given.nvcc, name, architecture, text)
        allowed = {r[1]: int(r[2]) for r in rows if r[0] == name}
        written += [f"{name}\t{kernel}\t{spilled}" for kernel, spilled in sorted(found.items()) if spilled > 0]
        more = [(k, s) for k, s in found.items() if s > allowed.get(k, 0) + SLACK]
        for kernel, spilled in more if not given.write else []:
            print(f"{name}: {kernel} stores {spilled} bytes beside its registers, {allowed.get(kernel, 0)} were reviewed; find what takes the "
                  "registers, or look at its time on a device and write spills.txt anew")
        less = [k for k in allowed if k not in found or found[k] + SLACK < allowed[k]]  # a row that would hide as much again
        for kernel in less if not given.write else []:
            print(f"{name}: {kernel} is in spills.txt with {allowed[kernel]} bytes, and "
                  f"{f'stores {found[kernel]}' if kernel in found else 'no kernel any more'}; write spills.txt anew")
        bad += len(more) + len(less)
        print(f"{name}: {count} kernels, {sum(s > 0 for s in found.values())} of them spill, {sum(found.values())} bytes in all")
    if given.write:
        table.write_text("# Source, kernel, and the bytes that it may store beside its registers (spills.py). By nvcc:\nnvcc\t" + version + "\n" +
                         "\n".join(written) + "\n")
    elif bad:
        sys.exit(1)


main()
