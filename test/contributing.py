#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs the examples of CONTRIBUTING.md: every block of C++ there has its place here, or the test fails.

Those that add an operation go into a copy of the headers and of the proofs' cases, where the text says; then
test/contributing/operation.cpp is compiled against the copy. The others are block.hpp of the source named after them.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import source_text

TEST = pathlib.Path(__file__).resolve().parent
ROOT = TEST.parent
BLOCK = re.compile(r"^([ \t]*)```cpp\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
OPERATION = "Adding an operation"
FAMILY = "include/shardwise/operations/pointwise/"


def blocks(document):
    """Heading of a section -> its blocks of C++, without their indentation."""
    found = {}
    for section in re.split(r"^## ", document, flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        found[title] = [re.sub(rf"^{indent}", "", code, flags=re.MULTILINE) for indent, code in BLOCK.findall(text)]
    return {title: code for title, code in found.items() if code}


def insert(path, before, text, last=False):
    """Puts text before a place that path has, once or, where asked, for the last time."""
    content = path.read_text(encoding="utf-8")
    places = source_text.places(content, before)
    if not places or (len(places) > 1 and not last):
        sys.exit(f"contributing: '{before}' is {len(places)} times in {path.name}")
    at = places[-1][0]
    path.write_text(f"{content[:at]}{text}\n{content[at:]}", encoding="utf-8")


def add_operation(copy, document, code):
    """The steps of the section, in the copy."""
    if len(code) != 5:
        sys.exit(f"contributing: '{OPERATION}' has {len(code)} blocks of C++; the list, the record, the adjoint, the function and the cases are five")
    row, record, adjoint, function, cases = code
    formula = re.search(r"`(X\(hypot, [^`]*)`", document)
    if not formula:
        sys.exit("contributing: no formula `X(hypot, ...)` in the text")
    ops = copy / "include/shardwise/propagation/op.hpp"
    ops.write_text(source_text.replaced(ops.read_text(encoding="utf-8"), row.replace("X(hypot, 1)", ""), " ".join(row.split())), encoding="utf-8")
    insert(copy / FAMILY / "formulas.hpp", "X(div, x / y)", f"{formula.group(1)} \\")
    insert(copy / FAMILY / "record.hpp", "}  // namespace shardwise", record, last=True)
    insert(copy / FAMILY / "adjoint.hpp", "}  // namespace shardwise", adjoint, last=True)
    insert(copy / "include/shardwise/graph/functions/pointwise_functions.hpp", "}  // namespace shardwise", function, last=True)
    insert(copy / "test/laws/rule_cases.hpp", "apply(op_code::div, {tensor_of({5, 3}), tensor_of({5, 3})}),", cases)


def build(options, source, includes, program):
    """Whether source compiles, links and runs."""
    line = [options.compiler, "-std=c++20", "-O0", "-g0", "-w", "-pthread", *(f"-I{folder}" for folder in includes)]
    line += [part for folder in options.system_include for part in ("-isystem", folder)]
    for command in (line + [str(source), "-o", str(program)], [str(program)]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            print(f"{done.stdout.decode(errors='replace')[-4000:]}\ncontributing: {source.name} {'does not compile' if command[0] == options.compiler else 'fails'}")
            return False
    print(f"contributing: {source.name} compiles and runs {done.stdout.decode().strip()}")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--system-include", action="append", default=[])
    parser.add_argument("--document", default=ROOT / "CONTRIBUTING.md", type=pathlib.Path)
    options = parser.parse_args()
    document = options.document.read_text(encoding="utf-8")
    found, good = blocks(document), True
    if OPERATION not in found:
        sys.exit(f"contributing: no examples under '{OPERATION}'")
    with tempfile.TemporaryDirectory(prefix="shardwise-contributing-") as folder:
        folder = pathlib.Path(folder)
        for title, code in found.items():
            work = folder / title.split()[-1]
            work.mkdir()
            if title == OPERATION:
                shutil.copytree(ROOT / "include", work / "include")
                shutil.copytree(TEST / "laws", work / "test/laws")
                add_operation(work, document, code)
                includes = [work / "include", work / "test", TEST / "support"]
            else:
                (work / "block.hpp").write_text("\n".join(code), encoding="utf-8")
                includes = [ROOT / "include", work]
            source = TEST / "contributing" / f"{work.name}.cpp"
            if not source.is_file():
                sys.exit(f"contributing: '{title}' has C++ that no source of test/contributing/ takes")
            good = build(options, source, includes, work / "program") and good
    unused = {path.stem for path in (TEST / "contributing").glob("*.cpp")} - {title.split()[-1] for title in found}
    if unused:
        sys.exit(f"contributing: CONTRIBUTING.md has no example for {', '.join(sorted(unused))}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
