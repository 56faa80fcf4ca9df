#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs test_cuda_process on 2 GPUs, whole and with a rank that throws, is killed, exits or stalls: every process ends in time, and
all that can still speak name the rank that began it. usage: failures.py PROGRAM"""

import os
import subprocess
import sys
import time

TIMEOUT = 4  # SHARDWISE_TIMEOUT
GRACE = 10   # lifeline::grace, of a process that nothing wakes
START = 45   # what contexts and communicators may take
gone = "the process of rank {} has ended before its function returned"
cases = [  # the rank that fails, how, what the others say, what it says itself
    (None, "", None, None),
    (0, "throw", "gave up (rank 0)", "gave up (rank 0)"),
    (1, "throw", "gave up (rank 1)", "gave up (rank 1)"),
    (0, "kill", gone.format(0), None),
    (1, "kill", gone.format(1), None),
    (1, "exit", gone.format(1), None),
    (0, "stall", "rank 1 has waited 4 s for its device", "rank 1 has waited 4 s for its device"),
    (1, "stall", "rank 0 has waited 4 s for its device", "rank 0 has waited 4 s for its device"),
]


def run(program, port, bad, how):
    processes = []
    for r in range(2):
        env = dict(os.environ, NCCL_COMM_ID=f"127.0.0.1:{port}", RANK=str(r), WORLD_SIZE="2", LOCAL_RANK=str(r),
                   SHARDWISE_TIMEOUT=str(TIMEOUT))
        processes.append(subprocess.Popen([program] + ([str(bad), how] if how else []), env=env, stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT, text=True))
    begin = time.monotonic()
    said = []
    for p in processes:
        try:
            text, _ = p.communicate(timeout=max(1.0, begin + START + TIMEOUT + GRACE - time.monotonic()))
        except subprocess.TimeoutExpired:
            p.kill()
            text = "STILL RUNNING " + p.communicate()[0]
        said.append(text)
    return [p.returncode for p in processes], said, time.monotonic() - begin


def main():
    failed = 0
    for number, (bad, how, others, own) in enumerate(cases):
        codes, said, seconds = run(sys.argv[1], 29610 + number, bad, how)
        if bad is None:
            good = codes == [0, 0] and all(f"rank {r} of 2: ok" in said[r] for r in range(2))
        else:
            other = 1 - bad
            good = "STILL RUNNING" not in said[0] + said[1] and codes[other] != 0 and others in said[other] and (own is None or own in said[bad])
        failed += not good
        print(f"{'ok    ' if good else 'FAILED'} {how or 'whole'} {'' if bad is None else bad} ({seconds:.1f} s, exit {codes})", flush=True)
        if not good or "-v" in sys.argv:
            for r in range(2):
                print(f"  rank {r}: {said[r].strip()}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
