#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs train_glyphs with bad input, for two steps, and, with --whole, as a user does, whose verdict must be "passed".

    python3 test/glyphs.py PROGRAM [--whole]

Two steps need a family of fonts to train on and one to hold out (fonts-dejavu-core, fonts-cantarell), the whole run all of them; where
they are not installed, what is about them is left out and the exit status is 77.
"""

import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib

SKIPPED = 77
PICTURES = ["confusion.png", "filters.png", "mistakes.png"]


def start(program, *arguments, cwd):
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=900, cwd=cwd)


def picture(path):
    """Width and height of a PNG file whose pixels are all there and of more than one color."""
    with open(path, "rb") as f:
        data = f.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "no PNG file"
    at, pixels, size, ended = 8, b"", None, False
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        content = data[at + 8:at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(kind + content), "a wrong checksum"
        if kind == b"IHDR":
            size = struct.unpack(">II", content[:8])
            assert content[8:10] == b"\x08\x02", "not 8 bits of red, green and blue"
        pixels += content if kind == b"IDAT" else b""
        ended = ended or kind == b"IEND"
        at += 12 + length
    lines = zlib.decompress(pixels)
    assert ended and len(lines) == size[1] * (3 * size[0] + 1), "pixels are missing"
    assert len(set(lines)) > 20, "a blank picture"
    return size


def refusals(program, scratch, failures):
    empty = os.path.join(scratch, "no fonts")
    os.mkdir(empty)
    occupied = os.path.join(scratch, "occupied")
    with open(occupied, "w") as f:
        f.write("a file where a folder should be\n")
    cases = [
        ("unknown flag", ["--frobnicate", "3"], ["--frobnicate"]),
        ("bad number", ["--steps", "many"], ["--steps", "many"]),
        ("unexpected word", ["Roboto"], ["Roboto", "--fonts DIR"]),
        ("no such folder", ["--fonts", os.path.join(scratch, "nowhere")], ["nowhere"]),
        ("no fonts", ["--fonts", empty], ["DejaVu Sans", "apt-get install", "fonts-lato", "fonts-cantarell", "--allow-missing"]),
        ("no fonts at all", ["--fonts", empty, "--allow-missing"], ["Cantarell", "one family to train on and one to hold out"]),
    ]
    for name, arguments, expected in cases:
        out = os.path.join(scratch, "refused")
        run = start(program, *arguments, "--out", out, cwd=scratch)
        lines = [line for line in run.stderr.splitlines() if line.strip()]
        if run.returncode != 2 or len(lines) != 1 or any(word not in lines[0] for word in expected):
            failures.append(f"{name}: exit code {run.returncode}, expected 2 and one sentence with {expected}: {run.stderr!r}")
        if os.path.exists(out):
            failures.append(f"{name}: the output folder was made")
    plan = start(program, "--plan-only", "--fonts", empty, cwd=scratch)
    for word in ("dp=4", "first.conv.weight", "first.norm.running_mean", "peak memory per rank", "bytes sent per step"):
        if plan.returncode != 0 or word not in plan.stdout:
            failures.append(f"--plan-only does not print {word!r}")
    return occupied


def two_steps(program, scratch, occupied, failures):
    """False where there are too few fonts."""
    outs = [os.path.join(scratch, name) for name in ("once", "again", "other")]
    runs = [start(program, "--allow-missing", "--steps", "2", "--seed", seed, "--out", out, cwd=scratch)
            for seed, out in zip(("1", "1", "2"), outs)]
    if runs[0].returncode == 2 and "one family to train on" in runs[0].stderr:
        return False
    results = []
    for run, out in zip(runs, outs):
        if run.returncode != 0:
            failures.append(f"two steps: exit code {run.returncode}: {run.stderr}")
            return True
        if sorted(os.listdir(out)) != PICTURES + ["summary.json"]:
            failures.append(f"two steps wrote {sorted(os.listdir(out))}")
            return True
        for word in ("\n2/2  loss ", "nearest of 256", "nearest neighbour", "\nverdict: missed"):
            if word not in run.stdout:
                failures.append(f"two steps do not print {word!r}")
        if "\r" in run.stdout:
            failures.append("a progress bar was drawn though the output is no terminal")
        for name in PICTURES:
            try:
                width, height = picture(os.path.join(out, name))
                if not (500 <= width <= 1600 and 300 <= height <= 1600):
                    failures.append(f"{name} has {width} x {height} pixels")
            except AssertionError as e:
                failures.append(f"{name}: {e}")
        with open(os.path.join(out, "summary.json")) as f:
            results.append(json.load(f))
        if not (results[-1]["nearest_neighbour_images"] == 256 and results[-1]["held_out_images"] > 0
                and 0.1 < results[-1]["nearest_neighbour_accuracy"] < 1):
            failures.append(f"two steps have the summary {results[-1]}")
    same = {key: value for key, value in results[0].items() if key != "images_per_second"}
    if any(results[1][key] != value for key, value in same.items()):
        failures.append(f"two runs of one seed differ: {results[0]}, {results[1]}")
    if results[2]["last_loss"] == results[0]["last_loss"]:
        failures.append("another seed has the same loss")
    run = start(program, "--allow-missing", "--steps", "1", "--out", occupied, cwd=scratch)
    if run.returncode != 2 or "it is not a folder" not in run.stderr:
        failures.append(f"an output folder that is a file: exit code {run.returncode}: {run.stderr!r}")
    return True


def whole(program, scratch, failures):
    run = start(program, "--out", os.path.join(scratch, "whole"), cwd=scratch)
    if run.returncode == 2 and "apt-get install" in run.stderr:
        return False
    print(run.stdout[-1200:])
    if run.returncode != 0 or "\nverdict: passed, " not in run.stdout:
        failures.append(f"a whole run did not pass: exit code {run.returncode}: {run.stderr}")
    return True


def main():
    program = os.path.abspath(sys.argv[1])
    failures = []
    with tempfile.TemporaryDirectory() as scratch:
        if "--whole" in sys.argv[2:]:
            ran = whole(program, scratch, failures)
        else:
            ran = two_steps(program, scratch, refusals(program, scratch, failures), failures)
    for failure in failures:
        print("FAILED", failure)
    if not ran and not failures:
        print("fonts are missing, so no training was tried: apt-get install fonts-dejavu-core fonts-cantarell, or ./quickstart glyphs")
        return SKIPPED
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
