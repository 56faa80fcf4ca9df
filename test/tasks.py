#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The thirty tasks of docs/tasks.md and the programs of examples/tasks/ that solve them.

    test/tasks.py                                  every task has its row, its program and the lines counted; --write counts them anew
    test/tasks.py --compiler g++ [--only N ...]    compiles and runs the programs as well, --sample I/N every N-th of them

A program NN_name.cpp checks itself, and prints nothing else that matters, but for two: 08 prints a number that must be the same as
processes of MPI, where there is one; 29 must be refused with -DWRONG, by a sentence that names the mend in it. 30_project is built by
CMake. NN_name.py is the same in PyTorch, for its lines; it is not run.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from blocks import rotation

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE, FOLDER, TASKS = "docs/tasks.md", "examples/tasks", 30
ROW = re.compile(r"^\| (\d+) \| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", re.MULTILINE)
TOGETHER = re.compile(r"^\| (1 to \d+ together) \| \| \| (\d+) \| (\d+) \|$", re.MULTILINE)  # of all that have a text in PyTorch
MEND = "input<shard<d>>"  # what the sentence of 29 names


def lines_of(text, comment):
    """How many lines are neither blank nor a comment."""
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith(comment))


def sources(root):
    """Number of a task -> its program's path."""
    found = {}
    for path in sorted((root / FOLDER).iterdir()):
        number = re.match(r"(\d\d)_\w+$", path.stem)
        if number and (path.suffix == ".cpp" or (path / "main.cpp").is_file()):
            found[int(number[1])] = path
    return found


def counted(path):
    """(lines here, lines in PyTorch or '-')."""
    here = sum(lines_of(p.read_text(encoding="utf-8"), "#" if p.suffix == ".txt" else "//") for p in (path.iterdir() if path.is_dir() else [path]))
    there = path.with_suffix(".py")
    return str(here), str(lines_of(there.read_text(encoding="utf-8"), "#")) if there.is_file() else "-"


def problems(root, write=False):
    found, programs = [], sources(root)
    page = root / PAGE
    text = page.read_text(encoding="utf-8")
    listed = [int(n) for n in re.findall(r"^(\d+)\. \*\*", text, re.MULTILINE)]
    if listed != list(range(1, TASKS + 1)):
        found.append(f"{PAGE} has the tasks {listed}")
    rows = {int(m[1]): m for m in ROW.finditer(text)}
    if sorted(rows) != sorted(programs):
        found.append(f"{PAGE} has rows of {sorted(rows)}, and there are programs of {sorted(programs)}")
    for number, m in rows.items():
        if number not in programs:
            continue
        name = programs[number].name
        if f"](../{FOLDER}/{name}" not in m[3]:
            found.append(f"{PAGE}: row {number} does not link {FOLDER}/{name}")
        if (m[4], m[5]) != counted(programs[number]):
            if not write:
                found.append(f"{PAGE}: row {number} says {m[4]} and {m[5]} lines; there are {' and '.join(counted(programs[number]))}: run test/tasks.py --write")
            here, there = counted(programs[number])
            text = text.replace(m[0], f"| {m[1]} | {m[2]} | {m[3]} | {here} | {there} |")
    pairs = [tuple(map(int, pair)) for pair in map(counted, programs.values()) if pair[1] != "-"]
    here, there = (str(sum(numbers)) for numbers in zip(*pairs)) if pairs else ("0", "0")
    for m in TOGETHER.finditer(text):
        if (m[2], m[3]) != (here, there) and not write:
            found.append(f"{PAGE}: together there are {here} and {there} lines, not {m[2]} and {m[3]}: run test/tasks.py --write")
        text = text.replace(m[0], f"| {m[1]} | | | {here} | {there} |")
    for path in sorted((root / FOLDER).glob("*.py")):
        if not path.with_suffix(".cpp").is_file():
            found.append(f"{FOLDER}/{path.name} is of no program")
    if write:
        page.write_text(text, encoding="utf-8")
    return found


def ran(command, wanted=True, **more):
    """(whether it ended as wanted, what it said and how it ended)."""
    environment = {key: value for key, value in os.environ.items() if key not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, env=environment, check=False, **more)
    said = done.stdout.decode("utf-8", "replace")
    return (done.returncode == 0) == wanted, said if done.returncode == 0 else f"{said}(ends with {done.returncode})"


def flags_of_mpi():
    if not shutil.which("mpicxx") or not shutil.which("mpirun"):
        return None
    good, compiling = ran(["mpicxx", "--showme:compile"])
    also, linking = ran(["mpicxx", "--showme:link"])
    return (compiling.split(), linking.split()) if good and also else None


def build_and_run(options, root, number, path, scratch):
    """'' where the program does what it should, else what it says."""
    if path.is_dir():
        steps = [["cmake", "-S", path, "-B", scratch / "project", f"-DCMAKE_CXX_COMPILER={options.compiler}", f"-DSHARDWISE={root}"],
                 ["cmake", "--build", scratch / "project"], [scratch / "project" / "mine"]]
        for step in steps:
            good, said = ran([str(part) for part in step])
            if not good:
                return said
        return ""
    program = str(scratch / path.stem)
    line = [options.compiler, "-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror", f"-I{root / 'include'}", "-pthread", str(path), "-o", program]
    good, said = ran(line)
    if not good:
        return said
    good, said = ran([program], cwd=scratch)
    if not good:
        return said
    if number == 8 and (mpi := flags_of_mpi()):
        good, text = ran([*line[:-1], program + "_mpi", "-DBY_MPI", "-Wno-error", *mpi[0], *mpi[1]])
        if not good:
            return text
        good, text = ran(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", program + "_mpi"], cwd=scratch)
        if not good or said.strip() not in text.split():
            return f"{said} by threads, and by MPI: {text}"
    if number == 29:
        refused, text = ran([*line, "-DWRONG"], wanted=False)
        if not refused or MEND not in text:
            return f"the wrong program is not refused by a sentence with {MEND}: {text[:2000]}"
    return ""


def run_programs(options, root):
    wrong, programs = [], sources(root)
    taken = sorted(options.only or programs)
    if options.sample:
        first, step = options.sample.split("/")
        taken = taken[(rotation(root) if first == "rotate" else int(first)) % int(step) :: int(step)]
    with tempfile.TemporaryDirectory(prefix="shardwise-tasks-") as scratch:
        for number in taken:
            said = build_and_run(options, root, number, programs[number], pathlib.Path(scratch))
            if said:
                wrong.append(f"task {number}: {programs[number].name}: {said}")
    print(f"tasks: {len(taken)} programs compiled and run: {' '.join(map(str, taken))}")
    return wrong


def selftest():
    wrong = []
    with tempfile.TemporaryDirectory(prefix="shardwise-tasks-") as folder:
        root = pathlib.Path(folder)
        (root / "docs").mkdir()
        (root / FOLDER).mkdir(parents=True)
        tasks = "".join(f"{n}. **A.** B.\n" for n in range(1, TASKS + 1))
        row = f"| 1 | a | [x](../{FOLDER}/01_x.cpp) | 2 | 1 |\n"
        program = root / FOLDER / "01_x.cpp"

        def found(page, source):
            (root / PAGE).write_text(page)
            program.write_text(source)
            program.with_suffix(".py").write_text("# c\n\nx = 1\n")
            return " ".join(problems(root))

        whole = "// c\n\nint main() {\n}\n"
        for page, source, expected in ((tasks + row, whole, ""), (tasks + row, whole + "int x;\n", "row 1 says 2 and 1 lines; there are 3 and 1"),
                                       (tasks + row.replace("01_x.cpp", "y"), whole, "does not link"), (tasks, whole, "has rows of []"),
                                       (row, whole, "has the tasks []"), (tasks + row + "| 1 to 28 together | | | 2 | 1 |\n", whole, ""),
                                       (tasks + row + "| 1 to 28 together | | | 4 | 1 |\n", whole, "there are 2 and 1 lines, not 4 and 1")):
            said = found(page, source)
            if (expected not in said) if expected else said:
                wrong.append(f"{expected!r} is not what is said: {said}")
        found(tasks + row, whole + "int x;\n")
        problems(root, write=True)
        if problems(root):
            wrong.append("what is written is stale")
        options = argparse.Namespace(compiler=os.environ.get("CXX", "c++"), only=[1], sample=None)
        (root / "include").mkdir()
        for source, good in ((whole, True), ("int main() { return 1; }\n", False), ("no\n", False)):
            program.write_text(source)
            if (not run_programs(options, root)) != good:
                wrong.append(f"the program {source!r} is taken for a {'wrong' if good else 'right'} one")
    print(f"tasks selftest: {len(wrong)} wrong {wrong}")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler")
    parser.add_argument("--only", type=int, nargs="+")
    parser.add_argument("--sample", metavar="I/N")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--selftest", action="store_true")
    options = parser.parse_args()
    if options.selftest:
        return selftest()
    found = problems(ROOT, options.write)
    if options.compiler:
        found += run_programs(options, ROOT)
    for problem in found:
        print(problem)
    print(f"tasks: {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
