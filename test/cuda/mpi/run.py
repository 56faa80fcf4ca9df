#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs test_cuda_mpi under mpiexec on as many of 2 and 4 GPUs as there are, and then on 2 with a rank that goes wrong: all processes end in
time, with one message. usage: run.py PROGRAM --mpiexec mpiexec [--only REGULAR_EXPRESSION]"""

import argparse
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "mpi"))
from run import launcher, run  # noqa: E402

START = 90  # what contexts, communicators and captures may take
returned = r"^shardwise: rank {0} has returned while rank {1} waits in (a collective|an all-gather|an all-reduce|a reduce-scatter) on axis 1 of the mesh; "
late = r"^shardwise: rank {1} has waited 4 s (for its device; rank {0} has queued \d+ of \d+ collectives on axis 1|in an? [a-z-]+ on axis 1 of the mesh; rank {0} has not come)"
killed = r"(rank {0} .*signal 9|RANK {0} PID[^|]*KILLED BY SIGNAL: 9|EXIT CODE: 9)"
exited = r"(Exit code:    7|BAD TERMINATION OF ONE)"
FAILURES = [  # how the rank {0} fails, and what is said, once
    ("throw", r"^gave up \(rank {0}\)"),
    ("return", returned),
    ("stall", late),
    ("kill", killed),
    ("exit", exited),
]


def gpus():
    try:
        return subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout.count("GPU ")
    except FileNotFoundError:
        return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--only", default="", help="of the failures those whose name this regular expression finds")
    options = parser.parse_args()
    start, there, wrong = launcher(options.mpiexec), gpus(), 0
    for n in (2, 4):
        if n > there or options.only:
            continue
        status, output, took = run([*start, "-n", str(n), options.program], 4 * START)
        good = status == 0 and all(len(re.findall(rf"rank {r} of {n}: ok", output)) == n for r in range(n))
        wrong += not good
        print(f"{'ok    ' if good else 'FAILED'} {n} GPUs ({took:.1f} s, status {status})\n{output}", flush=True)
    if there < 2:  # what tells ctest
        print(f"skipped: {there} GPU(s) where the test needs 2")
    for by in ("nccl", "hosts"):
        for how, says in FAILURES:
            for bad in (0, 1):
                name = f"{how} {bad} {by}"
                if there < 2 or not re.search(options.only, name):
                    continue
                status, output, took = run([*start, "-n", "2", options.program, str(bad), how, by], START)
                own = [line for line in output.splitlines() if line.startswith(("shardwise: ", "gave up"))]
                good = (status not in (0, None) and len(re.findall(says.format(bad, 1 - bad), output, re.MULTILINE)) >= 1
                        and len(own) <= 1)
                wrong += not good
                print(f"{'ok    ' if good else 'FAILED'} {name} ({took:.1f} s, status {status})", flush=True)
                if not good:
                    print(output, flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
