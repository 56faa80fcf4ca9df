#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks the library in one place at a time, in a temporary copy of include/; tests named beforehand must notice.

The mutants stand in the lists beside this file (rules.py, adjoints.py, ...). Each is a change of text in one header and
names the sources below test/, three at most and none of a folder named heavy, of which one must kill it (those of
rotating.txt are a part of the default runs alone; white space in the text
counts for nothing, so that formatting the headers leaves the lists as they are):

  static/...           must no longer compile, and for a reason of its own: a sentence, or a constant that does not hold
  unit, dist, golden   must no longer pass: a check fails, the program ends by a signal or exception, or it hangs

Every source that is named must first compile and pass with the library as it is, and every text must be found exactly
once, so that the lists cannot go stale unnoticed. What survives is listed and fails the run, unless the mutant's last
field says why nothing can notice it. --sample I/N takes every N-th mutant from the I-th.
"""

import argparse
import concurrent.futures
import importlib
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TEST = HERE.parent
sys.path.insert(0, str(TEST))
import source_text  # noqa: E402

LISTS = ("rules", "adjoints", "kernels", "passes", "memory", "modules", "runtime", "tracker", "elements", "checkpoints")
MEMORY = 14_000_000 * 1024  # bytes of address space
EVIDENCE = ("shardwise: ", "constant expression", "outside the bounds of array", "static assertion failed", "static_assert failed",
            "not a constant", "exceeds", "accessing uninitialized")


class Mutant:
    def __init__(self, number, group, row):
        self.number, self.group = number, group
        self.name, self.header, self.text, self.replacement, killers = row[:5]
        self.killers = (killers,) if isinstance(killers, str) else tuple(killers)
        self.survives = row[5] if len(row) > 5 else ""
        if not 1 <= len(self.killers) <= 3:
            sys.exit(f"{group}: '{self.name}' names {len(self.killers)} sources; it must name one to three")
        for source in self.killers:
            if not (TEST / source).is_file():
                sys.exit(f"{group}: '{self.name}' names {source}, which is not there")
            if "/heavy/" in source:
                sys.exit(f"{group}: '{self.name}' names {source}, which the default run leaves out")


def read_lists():
    sys.path.insert(0, str(HERE))
    rows = [(group, row) for group in LISTS if (HERE / f"{group}.py").is_file() for row in importlib.import_module(group).MUTANTS]
    return [Mutant(number, group, row) for number, (group, row) in enumerate(rows)]


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def run(line, seconds, limit=None):
    """(status, output) of a command; status None: it hung."""
    process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               env=dict(os.environ, LC_ALL="C"), preexec_fn=limit, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=seconds)
        return process.returncode, output.decode(errors="replace")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, ""


class Bench:
    """Compiles and runs sources of tests against a copy of the library."""

    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        self.clang = "clang" in pathlib.Path(options.compiler).name
        generated = self.folder / "generated"
        generated.mkdir()
        (generated / "test_data.hpp").write_text(f'#pragma once\n#define SHARDWISE_TEST_DATA "{TEST / "data"}"\n')
        self.roots = [TEST, TEST / "support", TEST.parent / "examples", generated]
        self.main = self.folder / "main.o"

    def line(self, include, errors=1):
        line = [self.options.compiler, "-std=c++20", "-O0", "-g0", "-w", f"-I{include}"]
        line += [f"-I{root}" for root in self.roots] + [f"-ferror-limit={errors}" if self.clang else f"-fmax-errors={errors}"]
        return line + [part for directory in self.options.system_include for part in ("-isystem", directory)]

    def compile_main(self, include):
        status, output = run(self.line(include) + ["-c", str(TEST / "main.cpp"), "-o", str(self.main)], self.options.timeout)
        if status != 0:
            sys.exit(f"{output}\ntest/main.cpp does not compile")

    def verdict(self, include, source, folder, seconds):
        """("passes" | "refused" | "fails" | "hangs" | "unclear", what was said) of one source; seconds: of its run."""
        static = source.startswith("static/")
        program = folder / (pathlib.Path(source).stem + ".test")
        line = [str(TEST / source)] + (["-fsyntax-only"] if static else [str(self.main), "-o", str(program), "-pthread"])
        status, output = run(self.line(include) + line, self.options.timeout, limited)
        if status not in (0, None) and not any(sign in output for sign in EVIDENCE):
            # g++ says of a call that it matches no function, and why, which may be a constant that does not hold, as its next error
            status, output = run(self.line(include, 4) + line, self.options.timeout, limited)
        if status is None:
            return "hangs", "the compiler"
        if status != 0:
            first = next((text for text in output.splitlines() if "error:" in text), output[-300:])
            return ("refused" if any(sign in output for sign in EVIDENCE) else "unclear"), first
        if static:
            return "passes", ""
        status, output = run([str(program)], seconds)
        program.unlink()
        if status is None:
            return "hangs", "the program"
        if status == 0:
            return "passes", ""
        said = re.search(r"ERROR: .*(?:\n.*){0,2}", output)
        return "fails", said.group(0).replace("\n", " ") if said else f"status {status}"


def try_mutant(bench, mutant, usual):
    """(verdict, line to print) of one mutant, in a copy of the library of its own."""
    folder = bench.folder / str(mutant.number)
    copy = folder / "include"
    shutil.copytree(bench.options.include, copy)
    path = copy / "shardwise" / mutant.header
    path.write_text(source_text.replaced(path.read_text(encoding="utf-8"), mutant.text, mutant.replacement), encoding="utf-8")
    began, verdict, said, by = time.monotonic(), "passes", "", ""
    for by in mutant.killers:
        verdict, said = bench.verdict(copy, by, folder, 30 + 10 * usual[by])
        if verdict != "passes":
            break
    shutil.rmtree(folder)
    seconds = f"{time.monotonic() - began:.0f} s"
    name = f"{mutant.number:3} {mutant.group}: {mutant.name}"
    if verdict == "passes" and mutant.survives:
        return "expected", f"expected {name} ({seconds}): survives, {mutant.survives}"
    if verdict == "passes":
        return "SURVIVED", f"SURVIVED {name} ({seconds}): {', '.join(mutant.killers)}"
    if verdict == "unclear":
        return "UNCLEAR", f"UNCLEAR  {name} ({seconds}): does not compile for another reason: {said}"
    if mutant.survives:
        return "KILLED", f"KILLED   {name} ({seconds}) by {by}, though its row says that nothing can"
    return "killed", f"killed   {name} ({seconds}, {verdict}) by {by}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--include", default=str(TEST.parent / "include"), help="the library's include directory")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--system-include", action="append", default=[])
    parser.add_argument("--sample", default="0/1", help="I/N: every N-th mutant, from the I-th (0 <= I < N)")
    parser.add_argument("--only", type=int, action="append", help="one mutant by number; repeatable")
    parser.add_argument("--group", action="append", help=f"the mutants of one list ({', '.join(LISTS)}); repeatable")
    parser.add_argument("--list", action="store_true", help="print the mutants")
    parser.add_argument("--stale", action="store_true", help="only check that every text is found exactly once")
    parser.add_argument("--jobs", type=int, default=1, help="compilations at once")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for one compilation")
    options = parser.parse_args()

    mutants = read_lists()
    if options.list:
        for mutant in mutants:
            print(f"{mutant.number:3} {mutant.group}: {mutant.name}")
        return
    first, every = (int(part) for part in options.sample.split("/"))
    chosen = mutants[first % every::every]
    if options.group:
        chosen = [mutant for mutant in mutants if mutant.group in options.group]
    if options.only:
        chosen = [mutants[number] for number in options.only]
    if not chosen:
        sys.exit("no mutant chosen")

    stale = 0
    for mutant in mutants:
        path = pathlib.Path(options.include) / "shardwise" / mutant.header
        found = len(source_text.places(path.read_text(encoding="utf-8"), mutant.text)) if path.is_file() else 0
        if found != 1:
            print(f"STALE    {mutant.number:3} {mutant.group}: {mutant.name}: its text is {found} times in {mutant.header}")
            chosen = [other for other in chosen if other is not mutant]
            stale += 1
    if options.stale:
        sys.exit(f"{stale} of {len(mutants)} mutants are stale" if stale else 0)

    counts = {}
    with tempfile.TemporaryDirectory(prefix="shardwise-mutants-") as folder:
        bench = Bench(options, folder)
        bench.compile_main(options.include)
        sources = sorted({source for mutant in chosen for source in mutant.killers})
        usual = {}

        def control(source):
            own = pathlib.Path(tempfile.mkdtemp(dir=folder))
            began = time.monotonic()
            verdict, said = bench.verdict(options.include, source, own, options.timeout)
            usual[source] = time.monotonic() - began
            return source, verdict, said

        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for source, verdict, said in pool.map(control, sources):
                if verdict != "passes":
                    sys.exit(f"{said}\n{source} does not pass without a mutation ({verdict}), so nothing can be learnt from it")
            print(f"{len(sources)} sources compile and pass as they are", flush=True)
            for verdict, line in pool.map(lambda mutant: try_mutant(bench, mutant, usual), chosen):
                print(line, flush=True)
                counts[verdict] = counts.get(verdict, 0) + 1
    bad = sum(count for verdict, count in counts.items() if verdict not in ("killed", "expected")) + stale
    print(f"mutants: {len(chosen)} of {len(mutants)} tried, " + ", ".join(f"{n} {verdict}" for verdict, n in sorted(counts.items())))
    if bad:
        sys.exit(f"{bad} of the mutants survived, are stale, or fail for another reason")


if __name__ == "__main__":
    main()
