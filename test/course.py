#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The course of examples/: twelve numbered examples, each with what it prints in examples/output/.

    test/course.py                     numbers, lengths and the files of outputs are right
    test/course.py NAME PROGRAM        runs a program and compares what it prints with examples/output/NAME.txt; --write writes it
"""

import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLES = 12
LINES = 100  # of a source: less than that
SOURCES = (".cpp", ".hpp", ".cu", ".cuh")


def problems(folder):
    """What is wrong with the course in a folder."""
    found, numbers = [], {}
    for path in sorted(folder.iterdir()):
        number = re.match(r"(\d\d)_\w+$", path.stem)
        if not number:
            continue
        numbers.setdefault(int(number[1]), []).append(path.stem)
        for source in [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.suffix in SOURCES):
            count = len(source.read_text(encoding="utf-8").splitlines())
            if count >= LINES:
                found.append(f"{source.relative_to(folder)} has {count} lines; an example's sources have fewer than {LINES}")
        if not (folder / "output" / f"{path.stem}.txt").is_file():
            found.append(f"examples/output/{path.stem}.txt is not there; test/course.py --write {path.stem} PROGRAM writes it")
    for number in range(1, EXAMPLES + 1):
        if len(numbers.get(number, [])) != 1:
            found.append(f"the course has {len(numbers.get(number, []))} examples of number {number:02}")
    names = {name for all_of in numbers.values() for name in all_of}
    for path in sorted((folder / "output").glob("*.txt")) if (folder / "output").is_dir() else []:
        if path.stem not in names:
            found.append(f"examples/output/{path.name} is of no example")
    return found


def run(name, program, folder, write):
    """Whether the program prints what the file says."""
    environment = {key: value for key, value in os.environ.items() if key not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    done = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, timeout=300, check=False)
    said = done.stdout.decode("utf-8", "replace")
    expected = folder / "output" / f"{name}.txt"
    if done.returncode != 0:
        print(f"{said}\ncourse: {name} ends with {done.returncode}")
        return False
    if write:
        expected.parent.mkdir(exist_ok=True)
        expected.write_text(said, encoding="utf-8")
    wanted = expected.read_text(encoding="utf-8")
    for line in difflib.unified_diff(wanted.splitlines(), said.splitlines(), f"examples/output/{name}.txt", program, lineterm=""):
        print(line)
    print(f"course: {name} prints {'what its file says' if said == wanted else 'something else'}")
    return said == wanted


def selftest():
    wrong = []
    with tempfile.TemporaryDirectory(prefix="shardwise-course-") as folder:
        folder = pathlib.Path(folder)
        (folder / "output").mkdir()
        for number in range(1, EXAMPLES + 1):
            (folder / f"{number:02}_x.cpp").write_text("\n" * (LINES - 1))
            (folder / "output" / f"{number:02}_x.txt").write_text("said\n")
        if problems(folder):
            wrong.append(f"a whole course: {problems(folder)}")
        (folder / "03_x.cpp").write_text("\n" * LINES)
        (folder / "04_x.cpp").rename(folder / "03_y.cpp")
        wanted = ["03_x.cpp has 100 lines", "output/03_y.txt is not there", "2 examples of number 03", "0 examples of number 04", "04_x.txt is of no example"]
        for text in wanted:
            if not any(text in problem for problem in problems(folder)):
                wrong.append(f"{text!r} is not found")
        for text, status, good in (("said", 0, True), ("other", 0, False), ("said", 1, False)):
            program = folder / "program"
            program.write_text(f"#!/bin/sh\necho {text}\nexit {status}\n")
            program.chmod(0o755)
            if run("01_x", str(program), folder, False) != good:
                wrong.append(f"a program that says {text!r} and ends with {status}")
    print(f"course selftest: {len(wrong)} wrong {wrong}")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?")
    parser.add_argument("program", nargs="?")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--selftest", action="store_true")
    options = parser.parse_args()
    if options.selftest:
        return selftest()
    if options.name:
        if not options.program:
            parser.error("give the program that the example was built as")
        return 0 if run(options.name, options.program, ROOT / "examples", options.write) else 1
    found = problems(ROOT / "examples")
    for problem in found:
        print(problem)
    print(f"course: {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
