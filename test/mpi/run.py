#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of the mpi backend by an installed mpiexec, Open MPI's or MPICH's, and checks how runs that fail end: in time, with
one message, which names the rank."""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time


def launcher(mpiexec):
    """How mpiexec is told that processes may be more than cores, and root may start them."""
    said = subprocess.run([mpiexec, "--version"], capture_output=True, text=True).stdout
    return [mpiexec, "--oversubscribe", "--allow-run-as-root"] if re.search(r"Open ?(MPI|RTE)", said) else [mpiexec]


def environment(**more):
    """This process's, without what another launcher may have left, and with no other interface than this machine's. How Open MPI starts
    processes stays as it is set: without ssh it wants OMPI_MCA_plm_rsh_agent=false."""
    left = r"(RANK|WORLD_SIZE|LOCAL_RANK|OMPI_(?!MCA_plm_)|PMI|MPI_|SLURM_)"
    clean = {k: v for k, v in os.environ.items() if not re.match(left, k)}
    return {**clean, "OMPI_MCA_btl": "self,vader", **more}


def run(command, seconds, **variables):
    """(exit status, output, seconds); the status is None where it did not end in time."""
    begin = time.monotonic()
    with tempfile.TemporaryFile(mode="w+") as output:
        process = subprocess.Popen(command, env=environment(**variables), stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            status = None
            os.killpg(process.pid, 9)
            process.wait()
        output.seek(0)
        return status, output.read(), time.monotonic() - begin


# What a run is told, of so many processes (0: started without a launcher), what it must say once, and the seconds that it may take. The
# library's own waits are 2 seconds there where it has to notice by time.
RUNS = [
    ("", 3, True, r"^mpi 3: 1\.2512449130711443$", 30),
    ("ranks 3", 0, True, r"^threads 3: 1\.2512449130711443$", 30),
    ("ranks 4", 0, True, r"^threads 4: ", 30),
    ("", 0, True, r"^threads 2: ", 30),
    ("ranks 5", 0, False, r"^shardwise: there are 5 ranks by --ranks, and this program was built for 2 \(1 x 2\) or 3 \(1 x 3\) or 4 \(2 x 2\); ", 30),
    ("", 5, False, r"^shardwise: there are 5 ranks by \w+, and this program was built for 2 \(1 x 2\) or 3 \(1 x 3\) or 4 \(2 x 2\); ", 30),
    ("throw", 3, False, r"^no more rows \(rank 2\)$", 30),
    ("all throw", 3, False, r"^no rank goes on \(rank \d\)$", 30),
    ("return", 3, False, r"^shardwise: rank 2 has returned while rank \d waits in an all-gather on axis 1 of the mesh; .*\(in all_gather, module first, rank \d\)$", 30),
    ("return beside", 3, False, r"^shardwise: rank 2 has returned while rank \d waits in an all-gather on axis 1 of the mesh; .*\(in all_gather, module first, rank \d\)$", 30),
    ("stall beside", 3, False, r"^shardwise: rank \d has waited 2 s in an all-gather on axis 1 of the mesh; rank 2 does not answer.*module first", 30),
    ("disagree", 3, False, r"^shardwise: rank 2 and rank 0 disagree on the seed \(8 and 7\); ", 30),
    ("order", 3, False, r"^shardwise: rank \d .*(a barrier of all ranks|a comparison of the seed)", 30),
    ("stall", 3, False, r"^shardwise: rank \d has waited 2 s in an all-gather on axis 1 of the mesh; rank 2 does not answer.*module first.*MPI_Abort ends .*: rank 2$", 30),
    ("stop", 3, False, r"^shardwise: rank \d has waited 2 s in an all-gather on axis 1 of the mesh; rank 2 does not answer", 30),
    ("end", 3, False, r"^shardwise: rank \d has waited 2 s in the meeting of all ranks at the end of the run; rank 2 does not answer", 30),
    # several ranks in each process: 2 or 3 of 3 threads
    ("threads", 2, True, r"^mpi and threads 6: 1\.", 30),
    ("threads", 3, True, r"^mpi and threads 9: 1\.", 30),
    ("threads", 0, True, r"^threads 6: 1\.", 30),
    ("threads", 4, False, r"^shardwise: there are 4 processes by \w+, and this program was built for 2 \(2 x 3, 3 threads each\) or 3 \(3 x 3, 3 threads each\); ", 30),
    ("threads throw", 2, False, r"^no more rows \(rank 5\)$", 30),
    ("threads second throws", 2, False, r"^no more rows \(rank 1\)$", 30),
    ("threads all throw", 3, False, r"^no rank goes on \(rank \d\)$", 30),
    ("threads return", 2, False, r"^shardwise: rank 5 has returned while rank \d waits in an all-gather on axis [01] of the mesh; .*\(in all_gather\w*, module (first|second), rank \d\)$", 30),
    ("threads second returns", 3, False, r"^shardwise: rank 1 has returned while rank \d waits in an all-gather on axis [01] of the mesh; .*\(in all_gather\w*, module (first|second), rank \d\)$", 30),
    ("threads return beside", 2, False, r"^shardwise: rank 5 has returned while rank \d waits in an all-gather on axis [01] of the mesh; .*\(in all_gather\w*, module (first|second), rank \d\)$", 30),
    ("threads stall", 2, False, r"^shardwise: rank \d has waited 2 s in an all-gather on axis [01] of the mesh; .*rank [25] (does not answer|has not come).*module (first|second).*MPI_Abort ends .*: rank 5$", 30),
    ("threads stall beside", 2, False, r"^shardwise: rank \d has waited 2 s in an all-gather on axis [01] of the mesh; .*module (first|second).*MPI_Abort ends .*: rank 5$", 30),
    ("threads end", 2, False, r"^shardwise: rank \d has waited 2 s in the meeting of all ranks at the end of the run; rank 5 does not answer", 30),
    ("threads disagree", 2, False, r"^shardwise: rank 5 and rank 0 disagree on the seed \(8 and 7\); ", 30),
    # ranks that wait for their devices
    ("device throw", 3, False, r"^no more rows \(rank 2\)$", 30),
    ("device throw inside", 3, False, r"^no more rows \(rank 2\)$", 30),
    ("device throw deaf", 3, False, r"^no more rows \(rank 2\); MPI_Abort ends what did not leave by itself: rank 0, 1$", 30),
    ("device return", 3, False, r"^shardwise: rank 2 has returned while rank \d waits in a collective on axis 1 of the mesh; ", 30),
    ("device stall", 3, False, r"^shardwise: rank [01] has waited 2 s for its device; rank 2 has queued 0 of 1 collectives on axis 1 of the mesh: it is in code that calls nothing of the library; .*MPI_Abort ends .*: rank 2$", 30),
    ("device ask", 3, False, r"^shardwise: rank (\d has waited 2 s for its device; rank 2 .*waits in a comparison of the seed|2 has waited 2 s in a comparison of the seed; rank 0 has not come: it waits for its device)", 30),
    ("device carried stall", 3, False, r"^shardwise: rank [01] has waited 2 s in an all-reduce on axis 1 of the mesh; rank 2 has not come: it is in code that calls nothing of the library; .*\(in a step, rank \d\).*MPI_Abort ends .*: rank 2$", 30),
    ("device carried return", 3, False, r"^shardwise: rank 2 has returned while rank \d waits in an all-reduce on axis 1 of the mesh; .*\(in a step, rank \d\)$", 30),
    ("device carried throw", 3, False, r"^no more rows \(rank 2\)$", 30),
    ("device carried wrong", 3, False, r"^shardwise: transition \d+ is no collective, .*\(in a step, rank 2\)$", 30),
    ("device carried wrong asleep", 3, False, r"^shardwise: transition \d+ is no collective, .*\(in a step, rank 2\); rank 2 does not come back to the library, and MPI_Abort ends all$", 30),
    ("device carried wrong queue", 3, False, r"^shardwise: transition \d+ is no collective, .*\(in a step, rank 2\)$", 30),
    ("device carried wrong busy", 3, False, r"^shardwise: transition \d+ is no collective, .*\(in a step, rank 2\)$", 30),
    ("device throw late inside", 3, False, r"^no more rows \(rank 2\)$", 30),
    ("device kill", 3, False, r"(rank 2 .*signal 9|RANK 2 PID[^|]*KILLED BY SIGNAL: 9|EXIT CODE: 9)", 30),
    # the launcher's own words
    ("threads kill", 2, False, r"(rank 1 .*signal 9|RANK 1 PID[^|]*KILLED BY SIGNAL: 9|EXIT CODE: 9)", 30),
    ("kill", 3, False, r"(rank 2 .*signal 9|RANK 2 PID[^|]*KILLED BY SIGNAL: 9|EXIT CODE: 9)", 30),
    ("exit", 3, False, r"(Exit code:    7|BAD TERMINATION OF ONE)", 30),
]


def failures(start, program, only, sample):
    wrong, (first, step) = 0, map(int, sample.split("/"))
    runs = [of for of in RUNS[first::step] if re.search(only, of[0])]
    if not runs:
        sys.exit(f"mpi: --only {only!r} and --sample {sample} leave none of {len(RUNS)} failures to try")
    for how, processes, good, says, seconds in runs:
        command = [*start, "-n", str(processes)] if processes else []
        status, output, took = run([*command, program, "--no-skip", "--test-case=fails", "--no-colors", "-m"], seconds, SHARDWISE_MPI_FAILS=how)
        found = re.findall(says, output, re.MULTILINE)
        own = [line for line in output.splitlines() if line.startswith("shardwise: ")]
        fine = status is not None and (status == 0) == good and len(found) == 1 and len(own) <= 1
        print(f"mpi: {'ok  ' if fine else 'FAIL'} '{how}' of {processes or 'no'} processes: status {status} in {took:.1f} s")
        if not fine:
            wrong += 1
            print(f"expected {'success' if good else 'failure'} and once: {says}\n{output}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--processes", type=int)
    parser.add_argument("--failures", action="store_true")
    parser.add_argument("--only", default="", help="of the failures those whose name this regular expression finds")
    parser.add_argument("--sample", metavar="I/N", default="0/1", help="of the failures every N-th, from the I-th on")
    options = parser.parse_args()
    start = launcher(options.mpiexec)
    if options.failures:
        sys.exit(failures(start, options.program, options.only, options.sample) != 0)
    status, output, took = run([*start, "-n", str(options.processes), options.program, "--no-colors"], 240)
    passed = len(re.findall(r"Status: SUCCESS!", output))
    print(output if status != 0 else f"mpi: {passed} of {options.processes} processes passed in {took:.1f} s")
    sys.exit(0 if status == 0 and passed == options.processes else 1)


if __name__ == "__main__":
    main()
