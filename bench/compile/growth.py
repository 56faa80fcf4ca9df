#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when compiling a few reference programs costs more than growth.txt, which is reviewed, says.

No times, which a busy machine changes, but what a compiler counts: clang's types, declarations, and statements and expressions,
instantiations among them; the evaluation steps of the dearest constant (clang's -fconstexpr-steps, g++'s
-fconstexpr-ops-limit); the peak memory of the compiler. A number may be above the reviewed one by its margin below; one that
is further below is said, so that the file can be tightened, and fails nothing. Compilers that are not installed in the version
of the file are left out; with none of them the exit status is 77.

After a growth that is meant:   bench/compile/growth.py --write   and commit growth.txt with the reason.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from sweep import include, pass_source, pipelines, source

reviewed_file = pathlib.Path(__file__).resolve().parent / "growth.txt"
compilers = ("clang++-16", "g++-12", "clang++", "g++")  # of a version the first that is there
versions = ("clang 16", "g++ 12")  # those that the file speaks of
margins = {"types": 0.02, "declarations": 0.02, "expressions": 0.02, "steps": 0.10, "memory_mb": 0.10}
counted = {"types": r"(\d+) types total", "declarations": r"(\d+) decls total", "expressions": r"(\d+) stmts/exprs total"}
# What is given to the compiler, and how its dearest constant is bounded: the option, its value by default, and what is said.
families = {"clang": (["-fsyntax-only", "-Xclang", "-print-stats"], "-fconstexpr-steps", 1 << 20, "hit maximum step limit"),
            "g++": (["-c", "-O0", "-o", os.devnull], "-fconstexpr-ops-limit", 1 << 25, "operation count exceeds limit")}


def references(scratch):
    """What is compiled, by name: the umbrella headers, a train step of 12 layers, the same as sources that link
    shardwise::kernels see it, and the dearest pipeline over it."""
    umbrella, core = scratch / "umbrella.cpp", scratch / "core.cpp"
    umbrella.write_text("#include <shardwise/shardwise.hpp>\n")
    core.write_text("#include <shardwise/core.hpp>\n")
    fused = "c: merge, fuse, join"
    return {"umbrella": (umbrella, []), "core": (core, []), "gpt_12": (source, ["-DLAYERS=12"]),
            "gpt_12_linked": (source, ["-DLAYERS=12", "-DSHARDWISE_EXTERN_KERNELS=1"]),
            "gpt_12_fused": (pass_source(scratch, "gpt", 12, fused, pipelines[fused]), [])}


def compiled(compiler, family, file, flags, steps):
    """(exit status, what was said, peak MB) of one compilation whose constants may take so many steps."""
    options, limit, _, _ = families[family]
    command = [compiler, "-std=c++20", f"-I{include}", *flags, f"{limit}={steps}", *options, str(file)]
    with tempfile.TemporaryFile() as log:
        p = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        log.seek(0)
        return p.returncode, log.read().decode(errors="replace"), usage.ru_maxrss / 1024


def measured(compiler, family, file, flags, steps):
    """The numbers of one reference. `steps`: the bound that its constants should keep; the number is that bound or, where it
    is not kept, infinity. Without a bound the number is looked for."""
    _, _, most, said = families[family]
    search = steps is None
    status, text, memory = compiled(compiler, family, file, flags, most if search else steps)
    if status != 0 and not search and said in text:
        steps = float("inf")
        status, text, memory = compiled(compiler, family, file, flags, most)
    if status != 0:
        sys.exit(f"growth.py: {compiler} does not compile {file}:\n" + text[:2000])
    if search:
        low, steps = 1000.0, float(most)
        while steps / low > 1.05:
            middle = (low * steps) ** 0.5
            if compiled(compiler, family, file, flags, int(middle))[0] == 0:
                steps = middle
            else:
                low = middle
        steps = int(steps)
    numbers = {"steps": steps, "memory_mb": round(memory)}
    for what, pattern in counted.items():
        if found := re.search(pattern, text):
            numbers[what] = int(found.group(1))
    return numbers


def installed():
    """Compilers by what the file calls them: "clang 16", "g++ 12"."""
    found = {}
    for compiler in compilers:
        if not shutil.which(compiler):
            continue
        family = "clang" if "clang" in compiler else "g++"
        text = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
        version = re.search(r"version (\d+)" if family == "clang" else r"\) (\d+)\.", text)
        if version and (name := f"{family} {version.group(1)}") in versions:
            found.setdefault(name, (compiler, family))
    return found


def read(text):
    """Reviewed numbers by (compiler, source)."""
    rows = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            compiler, name, *pairs = [cell.strip() for cell in line.split("|")]
            rows[compiler, name] = {what: int(number) for what, number in (pair.split() for pair in pairs)}
    return rows


def written(rows):
    head = ("# What compiling the reference programs of growth.py may cost; growth.py --write makes it, a person reviews it.\n"
            "# compiler | program | what and how many\n")
    return head + "".join(" | ".join([*key, *(f"{what} {number}" for what, number in sorted(numbers.items()))]) + "\n"
                          for key, numbers in sorted(rows.items()))


def judged(reviewed, now):
    """(growths, shrinkages) as lines."""
    grown, shrunk = [], []
    for what, number in sorted(reviewed.items()):
        have = now.get(what)
        if have is None:
            grown.append(f"{what}: the compiler no longer says how many")
        elif have > number * (1 + margins[what]):
            grown.append(f"{what}: {'more' if have == float('inf') else have} instead of {number}, over the margin of {margins[what]:.0%}")
        elif have < number * (1 - margins[what]):
            shrunk.append(f"{what}: {have} instead of {number}")
    return grown, shrunk


def check(rows, programs):
    """Prints what each program costs; the number that have grown, or None where no compiler of the file is installed."""
    here, grown, any_row = installed(), 0, False
    for (name, program), reviewed in rows.items():
        if name not in here:
            print(f"skip   {program} with {name}, which is not installed")
            continue
        any_row = True
        now = measured(*here[name], *programs[program], int(reviewed["steps"] * (1 + margins["steps"])))
        if now["steps"] != float("inf"):
            now["steps"] = reviewed["steps"]  # within the bound: how far, only --write looks for
        more, less = judged(reviewed, now)
        grown += 1 if more else 0
        print(f"{'GROWN' if more else 'ok':6} {program} with {name}", *more, sep="\n         ", flush=True)
        if less:
            print("       has shrunk; growth.py --write keeps that:", *less, sep="\n         ")
    return grown if any_row else None


def selftest(scratch):
    """Small programs, one of which is taken for reviewed: the same one passes, those that cost more are found by what grew."""
    base = ("template <int N> struct item { int value[N + 1]{}; };\n"
            "template <int N> constexpr int all() { item<N> x; if constexpr (N > 0) return all<N - 1>() + x.value[0]; else return 0; }\n"
            "constexpr int steps(int n) { int s = 0; for (int i = 0; i < n; ++i) s += i % 7; return s; }\n"
            "struct table { int of[WORDS]; };\n"
            "constexpr table filled = [] { table t{}; for (int& v : t.of) v = 1; return t; }();\n"
            "int answer = all<DEPTH>() + filled.of[0];\nstatic_assert(steps(STEPS) > 0);\n")
    file = scratch / "small.cpp"
    file.write_text(base)

    def flags(depth, steps, words):
        return [f"-DDEPTH={depth}", f"-DSTEPS={steps}", f"-DWORDS={words}", "-ftemplate-depth=2000"]

    wrong = 0
    for name, given in installed().items():
        numbers = measured(*given, file, flags(100, 50000, 1000), None)
        cases = [("nothing", flags(100, 50000, 1000), None), ("steps", flags(100, 80000, 1000), "steps"),
                 ("memory_mb", flags(100, 50000, 200000), "memory_mb")]
        if "types" in numbers:
            cases += [("instantiations", flags(200, 50000, 1000), what) for what in counted]
        for what, grown_flags, expected in cases:
            numbers_of_row = dict(numbers)
            row = {(name, "small"): numbers_of_row}
            now = measured(*given, file, grown_flags, int(numbers["steps"] * (1 + margins["steps"])))
            if now["steps"] != float("inf"):
                now["steps"] = numbers["steps"]
            more, _ = judged(read(written(row))[name, "small"], now)
            good = not more if expected is None else any(line.startswith(expected) for line in more)
            wrong += 0 if good else 1
            print(f"{'ok' if good else 'WRONG':6} {name}: {what} grown is judged {more or 'no growth'}")
    return wrong


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--write", action="store_true", help="measure with the compilers installed and write growth.txt")
    p.add_argument("--selftest", action="store_true", help="show that growth of each kind is found")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        if a.selftest:
            return 1 if selftest(scratch) else 0
        rows = read(reviewed_file.read_text()) if reviewed_file.exists() else {}
        programs = references(scratch)
        if a.write:
            for name, given in installed().items():
                for program, what in programs.items():
                    rows[name, program] = measured(*given, *what, None)
                    print(name, program, rows[name, program], flush=True)
            reviewed_file.write_text(written(rows))
            return 0
        grown = check(rows, programs)
        if grown is None:
            print("growth.py: no compiler of growth.txt is installed")
            return 77
        if grown:
            print(f"{grown} grown: make them cheaper, or, if it is meant, run bench/compile/growth.py --write and say why")
        return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
