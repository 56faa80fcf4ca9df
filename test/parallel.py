#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains train_text under every plan of --parallel for 50 steps and compares the losses, step by step.

usage: parallel.py PROGRAM     built with -DTRAIN_TEXT_PARALLEL=all

Law: the loss of a step is a function of seed, data and step, not of the plan. Plans add in other orders, in float32: losses agree to
2e-6 of themselves (2.5e-7 where it was measured, and 1.3e-7 in the first 50 of 1500 steps). How far apart they drift is a matter of
the training, not of the plan: where the learning rate rises within six steps single updates overshoot and enlarge any difference, 60
times in one step, to 1e-3 in float32 and, by the same factors, 4e-12 in float64: test/dist/training/heavy/example_plans.cpp.
"""
import csv
import pathlib
import subprocess
import sys
import tempfile

plans = ("ddp+tp", "ddp", "fsdp", "hsdp", "tp", "fsdp+tp")
steps, allowed = 50, 2e-6


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
        print(f"{plan}: {values[0]:.6f} to {values[-1]:.6f}, at most {max(apart):.1e} from {plans[0]}")
        if max(apart) > allowed:
            wrong.append(plan)
    if wrong:
        sys.exit(f"parallel.py: losses of {', '.join(wrong)} are too far from those of {plans[0]}: {allowed:.0e} is allowed")


if __name__ == "__main__":
    main()
