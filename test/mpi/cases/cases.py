#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs tests of threads over processes (test/support/by_processes.hpp), each case under as many as its largest mesh has ranks.

    cases.py TEST_EXECUTABLE --mpiexec mpiexec

One process begins all cases; those whose mesh has more ranks end there and go on to 2, 3, 4, 6 or 8. A case fails where it fails in any
process, where no verdict on it comes, and where no number of processes is enough. What launches nothing is no test of this, and is named, as
are the cases that alone.txt beside this leaves out.
"""

import argparse
import collections
import os
import pathlib
import re
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from run import launcher, run  # noqa: E402

WORLDS = (1, 2, 3, 4, 6, 8)


def cases_of(program):
    """All cases that are not skipped, from the program's own list, so that one which ends a run is missed there."""
    listed = run([program, "--list-test-cases", "--reporters=xml"], 60)[1]
    listed = re.sub(r"^.*?(?=<\?xml)", "", listed, flags=re.DOTALL)
    return [c.get("name") for c in xml.etree.ElementTree.fromstring(listed.strip()).iter("TestCase") if c.get("skipped") != "true"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--seconds", type=float, default=1500, help="that one number of processes may take")
    options = parser.parse_args()
    start, program = launcher(options.mpiexec), os.path.abspath(options.program)
    alone = {line for line in (pathlib.Path(__file__).parent / "alone.txt").read_text().splitlines() if line and not line.startswith("#")}
    cases = cases_of(program)
    left = dict.fromkeys([name for name in cases if name not in alone], 1)  # and how many ranks each is known to have
    wrong, ran, idle = [], collections.Counter(), []
    with tempfile.TemporaryDirectory() as scratch:
        names, verdicts = pathlib.Path(scratch) / "names", pathlib.Path(scratch) / "verdicts"
        for world in WORLDS:
            todo = [name for name, ranks in left.items() if ranks <= world]
            if not todo:
                continue
            while todo:  # again without the one that has ended a run
                names.write_text("".join(name + "\n" for name in todo))
                verdicts.write_text("")
                status, output, took = run([*start, "-n", str(world), program, "--no-colors"], options.seconds, SHARDWISE_TIMEOUT="60",
                                           SHARDWISE_TEST_CASES=str(names), SHARDWISE_TEST_VERDICTS=str(verdicts))
                failed, last, before, small = [], None, len(todo), False
                for line in verdicts.read_text().splitlines():
                    verdict, ranks, launches, name = line.split(" ", 3)
                    last = name
                    if verdict == "began":
                        continue
                    last = None
                    todo.remove(name)
                    if verdict == "needs":
                        left[name], small = int(ranks), True  # which its program counts as a failure
                        continue
                    left.pop(name)
                    if verdict == "failed":
                        failed.append(name)
                    elif int(launches) == 0:
                        idle.append(name)
                    else:
                        ran[world] += 1
                if last or len(todo) == before:
                    failed += [last] if last else todo
                    todo = [name for name in todo if last and name != last]
                elif status != 0 and not failed and not small:  # it has ended between two cases, or behind the last one
                    wrong.append("the end of a run")
                    print(f"FAILED over {world} processes: status {status} though every case passed\n{output}", flush=True)
                    for name in failed:
                        left.pop(name, None)
                if failed:
                    wrong += failed
                    print(f"FAILED over {world} processes: {'; '.join(failed)}\nstatus {status} after {took:.0f} s\n{output}", flush=True)
    for name, ranks in left.items():
        wrong.append(name)
        print(f"FAILED '{name}': no number of processes that is tried is enough for its {ranks} ranks")
    print(f"mpi: {sum(ran.values())} cases passed ({', '.join(f'{n} over {w} processes' for w, n in sorted(ran.items()))}), {len(wrong)} failed"
          + (f"; nothing to launch in {len(idle)}: {'; '.join(idle)}" if idle else "")
          + (f"; left out: {'; '.join(name for name in cases if name in alone)}" if alone.intersection(cases) else ""))
    sys.exit(1 if wrong or not ran else 0)


if __name__ == "__main__":
    main()
