#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains train_text under every plan of --parallel for 50 steps and compares the losses, step by step.

usage: parallel.py PROGRAM     built with -DTRAIN_TEXT_PARALLEL=all

Law: the loss of a step is a function of seed, data and step, not of the plan. Plans add in other orders, in float32: losses agree to
1e-6 of themselves for ten steps; then training at this learning rate, which 50 steps warm up to within six, enlarges the
difference, to 8.5e-4 where it was measured.
"""
import csv
import pathlib
import subprocess
import sys
import tempfile

plans = ("ddp+tp", "ddp", "fsdp", "hsdp", "tp", "fsdp+tp")
steps, early = 50, 10
allowed, allowed_late = 1e-6, 5e-3


def losses(program, plan, folder):
    run = subprocess.run([program, "--parallel", plan, "--steps", str(steps), "--out", str(folder)],
                         capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"parallel.py: --parallel {plan} ends with {run.returncode}: {run.stderr.strip()}")
    missing = [p for p in plans if p not in run.stdout]
    if missing:
        sys.exit(f"parallel.py: --parallel {plan} does not print what {', '.join(missing)} costs")
    with open(folder / "loss.csv", newline="") as file:
        rows = list(csv.reader(file))
    return [float(row[1]) for row in rows[1:]]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as scratch:
        found = {plan: losses(program, plan, pathlib.Path(scratch) / plan) for plan in plans}
    first = found[plans[0]]
    wrong = []
    for plan, values in found.items():
        if len(values) != steps:
            sys.exit(f"parallel.py: {plan} has {len(values)} losses of {steps} steps")
        apart = [abs(a - b) / abs(a) for a, b in zip(first, values)]
        print(f"{plan}: {values[0]:.6f} to {values[-1]:.6f}, {max(apart[:early]):.1e} from {plans[0]}, later {max(apart):.1e}")
        if max(apart[:early]) > allowed or max(apart) > allowed_late:
            wrong.append(plan)
    if wrong:
        sys.exit(f"parallel.py: losses of {', '.join(wrong)} are too far from those of {plans[0]}: {allowed:.0e} is allowed for "
                 f"{early} steps, then {allowed_late:.0e}")


if __name__ == "__main__":
    main()
