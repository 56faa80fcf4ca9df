#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs test_cuda_mpi under mpiexec on as many of 2 and 4 GPUs as there are, and then on 2 with a rank that goes wrong: all processes end in
time, with one message. With --paper it runs test_cuda_mpi_paper, on four processes and no GPU."""

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


# On paper rank 3 of 2 x 2 fails; which of the others says it first is open.
RETURNED = r"^shardwise: rank 3 has returned while rank [12] waits in (a collective|an all-reduce) on axis [01] of the mesh; "
LATE = r"^shardwise: rank [012] has waited 2 s .*MPI_Abort ends what did not leave by itself: rank 3$"
PAPER = [
    ("throw", ("nccl", "hosts"), r"^gave up \(rank 3\)$"),
    ("return", ("nccl", "cols", "rows"), RETURNED),
    ("stall", ("nccl", "cols"), LATE),
    ("wrong", ("rows",), r"^shardwise: transition \d+ is no collective, .*\(in node 5, rank 3\)$"),
    ("kill", ("nccl",), killed.format(3)),
]


def on_paper(start, program, only):
    wrong = 0
    for how, ways, says in [("", ("",), r"^rank \d of 4: ok$")] + PAPER:
        for way in ways:
            name = f"{how} {way}".strip() or "whole"
            if not re.search(only, name):
                continue
            status, output, took = run([*start, "-n", "4", program, *name.split()] if how else [*start, "-n", "4", program], 60)
            if re.search(r"^skipped: ", output, re.MULTILINE):
                print(output)
                return 0
            own = [line for line in output.splitlines() if line.startswith(("shardwise: ", "gave up"))]
            found = len(re.findall(says, output, re.MULTILINE))
            good = status not in (0, None) and found >= 1 and len(own) <= 1 if how else status == 0 and found == 4
            wrong += not good
            print(f"{'ok    ' if good else 'FAILED'} on paper: {name} ({took:.1f} s, status {status})", flush=True)
            if not good:
                print(output, flush=True)
    return wrong


def gpus():
    try:
        return subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout.count("GPU ")
    except FileNotFoundError:
        return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--paper", action="store_true")
    parser.add_argument("--only", default="", help="of the failures those whose name this regular expression finds")
    options = parser.parse_args()
    start, there, wrong = launcher(options.mpiexec), gpus(), 0
    if options.paper:
        return 1 if on_paper(start, options.program, options.only) else 0
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
