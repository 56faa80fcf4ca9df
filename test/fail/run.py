#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles a wrong program and checks what the compiler says about it.

A file of test/fail holds one wrong program inside `#ifdef SHARDWISE_FAIL` (with or without an `#else` control) and says
what must be printed:

    // expect: <sentence, or regular expression>       every such line must match
    // expect(nvcc): <...>                              the same for one compiler: g++, clang or nvcc
    // flags: -Werror=unused-result                     more options for the compiler (the host compiler under nvcc)

Without the macro the file must compile; with it, it must not, and every expectation must be in the output. Output and
expectations are compared with white space, line breaks and kinds of quotes made equal. Source lines quoted by the
compiler are switched off where possible, so a sentence counts only if it is said.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import resource
import shlex
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
MACRO = "SHARDWISE_FAIL"
NVCC_MEMORY = 14_000_000 * 1024  # bytes of address space
TIMEOUT = 280  # seconds for one compilation
QUIET = {"g++": "-fno-diagnostics-show-caret", "clang": "-fno-caret-diagnostics"}

EXPECT = re.compile(r"^\s*//\s*expect(?:\(([^)]+)\))?:[ \t]*(.*?)\s*$", re.MULTILINE)
FLAGS = re.compile(r"^\s*//\s*flags:[ \t]*(.*?)\s*$", re.MULTILINE)
GUARD = re.compile(rf"^\s*#\s*(if|ifdef|ifndef|elif)\b.*\b{MACRO}\b", re.MULTILINE)
VERDICT = re.compile(r"^\s*//\s*harness:[ \t]*(.*?)\s*$", re.MULTILINE)


class Mismatch(Exception):
    """What the harness reports about one file."""


def family(compiler):
    """g++, clang or nvcc, from the compiler's file name."""
    name = pathlib.Path(compiler).name
    for kind in ("nvcc", "clang"):
        if kind in name:
            return kind
    return "g++"


def command(options, source, folder, flags, fail):
    """The command line that compiles source, as control or as wrong program."""
    kind = family(options.compiler)
    line = [options.compiler, "-std=c++20"]
    line += [f"-I{directory}" for directory in options.include]
    if kind == "nvcc":
        line += ["-x", "cu", "-arch=sm_90", "-c", "-o", os.path.join(folder, "out.o")]
        line += [f"-Xcompiler={flag}" for flag in flags]
    else:
        line += ["-fsyntax-only", QUIET[kind], *flags]
    for directory in options.system_include:
        line += ["-isystem", directory]
    return line + ([f"-D{MACRO}"] if fail else []) + [str(source)]


def compile_once(options, source, flags, fail):
    """Returns (succeeded, output); each run has its own empty folder, so no stale object can be mistaken for a result."""
    def limits():
        if family(options.compiler) == "nvcc":
            resource.setrlimit(resource.RLIMIT_AS, (NVCC_MEMORY, NVCC_MEMORY))

    with tempfile.TemporaryDirectory(prefix="shardwise-fail-") as folder:
        line = command(options, source, folder, flags, fail)
        if options.verbose:
            print(shlex.join(line))
        environment = dict(os.environ, LC_ALL="C", TMPDIR=folder)
        try:
            done = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env=environment, preexec_fn=limits, timeout=TIMEOUT, check=False)
        except subprocess.TimeoutExpired as expired:
            raise Mismatch(f"the compiler did not end within {TIMEOUT} s") from expired
        except FileNotFoundError as missing:
            raise Mismatch(f"there is no compiler '{options.compiler}'") from missing
        return done.returncode == 0, done.stdout.decode("utf-8", "replace")


def plain(text):
    """White space runs become one blank, all quotes become ', escaped quotes lose their backslash."""
    text = re.sub(r"\\([\"'])", r"\1", text)
    text = re.sub("[\u2018\u2019\u201c\u201d\"`]", "'", text)
    return re.sub(r"\s+", " ", text).strip()


def said(expectation, output):
    """Whether output says the expectation: as a sentence (line breaks may fall anywhere), else as a regular expression."""
    sentence, text = plain(expectation), plain(output)
    if sentence.replace(" ", "") in text.replace(" ", ""):
        return True
    try:
        return re.search(sentence, text) is not None
    except re.error:
        return False


def head(output, count=12):
    """The first lines of a compiler's output that mention an error, else its first lines."""
    lines = output.splitlines()
    errors = [line for line in lines if "error" in line]
    return "\n".join("    " + line[:400] for line in (errors or lines)[:count])


def check(options, source):
    """Raises Mismatch unless control and wrong program of source behave as it says."""
    text = source.read_text(encoding="utf-8")
    kind = family(options.compiler)
    expectations = [wanted for only, wanted in EXPECT.findall(text) if not only or only == kind]
    flags = [flag for line in FLAGS.findall(text) for flag in shlex.split(line)]
    if not GUARD.search(text):
        raise Mismatch(f"nothing depends on {MACRO}")
    if not expectations or "" in expectations:
        raise Mismatch("no '// expect:' line says what the compiler must print")

    good, output = compile_once(options, source, flags, fail=False)
    if not good:
        raise Mismatch(f"the control does not compile\n{head(output)}")
    good, output = compile_once(options, source, flags, fail=True)
    if good:
        raise Mismatch("the wrong program compiles")
    if options.verbose:
        print(output)
    missing = [wanted for wanted in expectations if not said(wanted, output)]
    if missing:
        wanted = "\n".join("    " + line for line in missing)
        raise Mismatch(f"the compiler does not say\n{wanted}\n  it says\n{head(output)}")


def report(options, source):
    """Checks one file, prints the verdict; returns it (empty: as it should be)."""
    try:
        check(options, source)
    except Mismatch as mismatch:
        print(f"FAILED {source.name} with {options.compiler}: {mismatch}", flush=True)
        return str(mismatch)
    print(f"ok     {source.name} with {options.compiler}", flush=True)
    return ""


def selftest(options):
    """Every file of selftest/ must get the verdict that its '// harness:' line names."""
    sources = sorted((FOLDER / "selftest").glob("*.cpp"))
    wrong = 0 if sources else 1
    for source in sources:
        wanted = VERDICT.search(source.read_text(encoding="utf-8")).group(1)
        verdict = report(options, source) or "ok"
        if wanted not in verdict:
            wrong += 1
            print(f"selftest: {source.name}: wanted '{wanted}'")
    table = FOLDER.parent.parent / "include/shardwise/support/problems.def.hpp"
    found = catalogue(FOLDER / "selftest" / "catalogue.txt", table)
    wanted = [line.split("wanted: ")[1] for line in (FOLDER / "selftest" / "catalogue.txt").read_text().splitlines()
              if "wanted: " in line]
    for line in wanted:
        if not any(line in mistake for mistake in found):
            wrong += 1
            print(f"selftest: catalogue.txt: wanted '{line}'")
    if len(found) != len(wanted):
        wrong += 1
        print(f"selftest: catalogue.txt: {len(found)} mistakes found, {len(wanted)} wanted: {found}")
    print(f"fail selftest: {len(sources)} files, {wrong} judged wrongly")
    return wrong


TABLE = re.compile(r'^\s*SHARDWISE_X\((\w+),\s*((?:"(?:[^"\\\\]|\\\\.)*"\s*)+)\)', re.MULTILINE)


def problems(table):
    """Names and sentences of a table of SHARDWISE_X(name, "sentence") entries."""
    return [(name, "".join(re.findall(r'"((?:[^"\\\\]|\\\\.)*)"', text))) for name, text in TABLE.findall(table.read_text())]


def coverage(table):
    """Lists the problems of a table that no file of test/fail expects in any part."""
    entries = problems(table)
    lines = [line for file in FOLDER.glob("*.cpp") for _, line in EXPECT.findall(file.read_text())]
    wanted = [plain(re.sub(r"\\([^\w\s])", r"\1", line)).replace(" ", "") for line in lines]  # \^ stands for ^
    missing = [name for name, text in entries if not any(w and w in plain(text).replace(" ", "") for w in wanted)]
    for name in missing:
        print(f"no wrong program expects the sentence of problem::{name}")
    print(f"{len(entries)} problems, {len(missing)} without a wrong program")
    return 1 if missing or not entries else 0


def joined(text):
    """Source text whose adjacent string literals are one, so that a message can be found in it."""
    return plain(re.sub(r'"\s*\n?\s*"', "", text)).replace(" ", "")


def catalogue(rows, table, root=FOLDER.parent):
    """What is wrong with a catalogue of misuses, line by line; see its head for the format."""
    sentences = dict(problems(table))
    headers = [joined(file.read_text()) for file in (table.parent.parent).rglob("*") if file.suffix in (".hpp", ".cuh")]
    wrong, seen = [], set()
    for number, line in enumerate(rows.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split(" | ")]
        if len(fields) != 4 or not all(fields):
            wrong.append(f"{number}: not four fields")
            continue
        name, verdict, tests, _ = fields
        if name in seen:
            wrong.append(f"{number}: {name} is listed twice")
        seen.add(name)
        if verdict in ("impossible", "later"):
            if tests != "-":
                wrong.append(f"{number}: {name} can have no test")
            continue
        said_at_run = re.fullmatch(r'says "(.+)"', verdict)
        if not said_at_run and verdict != "holds" and verdict not in sentences:
            wrong.append(f"{number}: there is no problem '{verdict}'")
            continue
        if said_at_run and not any(joined(said_at_run[1]) in header for header in headers):
            wrong.append(f"{number}: no header says '{said_at_run[1]}'")
        for test in re.split(r",\s*", tests):
            file = root / test
            if not file.is_file():
                wrong.append(f"{number}: there is no test {test}")
                continue
            text = file.read_text()
            if said_at_run:
                good = joined(said_at_run[1]) in joined(text)
            elif verdict == "holds":
                good = re.search(rf"\b{name}\b", text)
            elif test.startswith("fail/"):
                sentence = plain(sentences[verdict]).replace(" ", "")
                good = any(w and plain(w).replace(" ", "") in sentence for _, w in EXPECT.findall(text))
            else:
                good = re.search(rf"\b{verdict}\b", text)
            if not good:
                wrong.append(f"{number}: {test} does not speak of {name}: {verdict}")
    return wrong + ([] if seen else ["no rows"])


def report_catalogue(rows, table):
    wrong = catalogue(rows, table)
    for line in wrong:
        print(f"{rows.name}:{line}")
    print(f"{rows.name}: {len(wrong)} mistakes")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="default: every file of test/fail")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--system-include", action="append", default=[])
    parser.add_argument("--sample", metavar="I/N", help="only every N-th file, beginning with number I (from 0)")
    parser.add_argument("--selftest", action="store_true")
    parser.add_argument("--coverage", metavar="TABLE", type=pathlib.Path,
                        help="list the problems of a table of sentences that no file expects")
    parser.add_argument("--catalogue", metavar=("ROWS", "TABLE"), nargs=2, type=pathlib.Path,
                        help="check a catalogue of misuses against the table of sentences and the tests")
    parser.add_argument("--jobs", type=int, default=1, help="programs at once")
    parser.add_argument("--verbose", action="store_true", help="print commands and output")
    options = parser.parse_args()
    if not options.include:
        options.include = [FOLDER.parent.parent / "include", FOLDER.parent / "support"]
    if options.selftest:
        return 1 if selftest(options) else 0
    if options.coverage:
        return coverage(options.coverage)
    if options.catalogue:
        return report_catalogue(*options.catalogue)
    files = options.files or sorted(FOLDER.glob("*.cpp"))
    if options.sample:
        first, step = map(int, options.sample.split("/"))
        files = files[first % step :: step] or files[:1]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        verdicts = list(pool.map(lambda file: report(options, file), files))
    failed = [file for file, verdict in zip(files, verdicts) if verdict]
    if len(files) != 1:
        print(f"{len(files)} wrong programs with {options.compiler}, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
