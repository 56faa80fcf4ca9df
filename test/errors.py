#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The error index, docs/errors.md: one entry for each sentence of support/problems.def.hpp, with the wrong program of test/fail/ that
gets it and the right one beside it. Without an option it checks that the file is what --write writes.

    test/errors.py --write
    test/errors.py --find "contracted dims have different extents"     the entries whose sentence is in a compiler's text; - reads it
                                                                       from the standard input
"""

import argparse
import difflib
import pathlib
import re
import sys
import tempfile

TEST = pathlib.Path(__file__).resolve().parent
ROOT = TEST.parent
sys.path.insert(0, str(TEST / "fail"))
import run as fail  # noqa: E402  how the table and the expectations are read

TABLE = "include/shardwise/support/problems.def.hpp"
INDEX = "docs/errors.md"
SECTION = re.compile(r"^// --- (.*?) -+$", re.MULTILINE)
SAID = re.compile(r"^\s*//\s*(SPDX-|(expect|located|not|flags|harness)\b[^:]*:)")
LEAST_EXPECTED = 18  # letters of an expectation that is a sentence's
LEAST = 24  # letters of a text that name a sentence

HEAD = """\
# Error index

<!-- Written by test/errors.py --write. Edit support/problems.def.hpp or test/fail/ instead. -->

Every mistake that the compiler refuses is one sentence. It says what was given, what is required and the smallest fix. Here is each of
them with a program that gets it and the program that does not: lines with `-` are wrong, lines with `+` are in their place, all others
are in both. Paste a part of the compiler's text into your browser's search, or give all of it to a script:

    g++ -std=c++20 -Iinclude program.cpp 2>&1 | python3 test/errors.py --find -

How to read an error: the first one counts, and begins with `shardwise:`. With g++ 12, clang 16 and nvcc 13 the values stand in the note
below it, as template arguments; where the compiler computes the text of a `static_assert` (C++26: clang 17, g++ 14 and newer) they stand
behind the sentence, `Here: axis: "tp" of 2; extent: 10; ...`. Of a traced program it names the module's path and the node.

Both programs of each entry are compiled by the tests (the file that is named, in `test/fail/`, by g++, clang and nvcc), and this page is
written from them. `typed<float, shape, mesh, placements...>` is a tensor that exists as a type alone, so that a program of four lines can
be wrong. Headers in quotation marks are small models and steps that these programs share:

"""
FOOT = """\
## What only a run can know

A class id beyond the classes, a seed that differs between ranks, an input that was never set: these are exceptions whose text begins with
`shardwise:`, too, and names what was given and the fix. They are listed with their tests in
[test/fail/catalogue.txt](../test/fail/catalogue.txt), beside all misuses that other libraries answer with an error.
"""


def sections(table):
    """(title, [(name, sentence)]) in the table's order."""
    text = table.read_text(encoding="utf-8")
    sentence = dict(fail.problems(table))
    parts = SECTION.split(text)
    for title, body in zip(parts[1::2], parts[2::2]):
        yield title, [(name, sentence[name].replace('\\"', '"')) for name, _ in fail.TABLE.findall(body)]


def squeezed(text):
    return fail.plain(text).replace(" ", "")


def resolved(source, wrong):
    """The program with or without the macro; lines of conditions go."""
    lines, taken = [], [True]
    for line in source.splitlines():
        condition = re.match(r"\s*#\s*(ifdef|ifndef|if|else|endif)\b(.*)", line)
        if not condition:
            if all(taken):
                lines.append(line)
            continue
        kind, rest = condition.group(1), condition.group(2)
        if kind in ("ifdef", "ifndef") and fail.MACRO in rest:
            taken.append(wrong == (kind == "ifdef"))
        elif kind == "else":
            taken[-1] = not taken[-1]
        elif kind == "endif":
            taken.pop()
        else:
            sys.exit(f"errors: {line!r}: only {fail.MACRO} is known here")
    return lines


def told(path):
    """(what a wrong program says of itself, its lines without that)."""
    lines = path.read_text(encoding="utf-8").splitlines()
    begin = 0
    remark = []
    while begin < len(lines) and (lines[begin].startswith("//") or not lines[begin].strip()):
        if not SAID.match(lines[begin]) and lines[begin].strip():
            remark.append(lines[begin].lstrip("/ ").rstrip())
        begin += 1
    return " ".join(remark), "\n".join(lines[begin:])


def program(path):
    """The wrong program and the right one, as one diff whose context is the whole."""
    remark, code = told(path)
    wrong, right = resolved(code, True), resolved(code, False)
    both = list(difflib.unified_diff(wrong, right, n=1000, lineterm=""))[3:]
    if not both:
        sys.exit(f"errors: {path.name}: the wrong program is the right one")
    while both and both[0].strip() == "":
        both.pop(0)
    return remark, [line.rstrip() for line in both]


def expected_by(folder):
    """[(path, what it expects, as `coverage` compares it)] of all wrong programs."""
    found = []
    for path in sorted(folder.glob("*.cpp")):
        lines = fail.EXPECT.findall(path.read_text(encoding="utf-8"))
        found.append((path, [squeezed(re.sub(r"\\([^\w\s])", r"\1", text)) for _, text in lines]))
    return found


def index(root):
    """The text of docs/errors.md."""
    programs = expected_by(root / "test/fail")
    shared = sorted({name for path, _ in programs for name in re.findall(r'^#include "([\w.]+)"$', path.read_text(encoding="utf-8"), re.MULTILINE)})
    out = [HEAD.rstrip("\n"), ""]
    for name in shared:
        header = root / "test/support" / name
        remark = told(header)[0].split(". ")[0].rstrip(".:,")
        out.append(f"- [`{name}`](../test/support/{name}): {remark}")
    out.append("")
    parts = list(sections(root / TABLE))
    everything = [squeezed(sentence) for _, entries in parts for _, sentence in entries]

    def names(wanted, letters):
        """Whether what a program expects is a part of this sentence, and of few others: facts are expected, too."""
        return len(wanted) >= LEAST_EXPECTED and wanted in letters and sum(wanted in other for other in everything) <= 2

    for title, entries in parts:
        anchor = re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")
        out.append(f"- [{title}](#{anchor}): {len(entries)}")
    for title, entries in parts:
        out += ["", f"## {title}"]
        for name, sentence in entries:
            letters = squeezed(sentence)
            having = [path for path, wanted in programs if any(names(w, letters) for w in wanted)]
            if not having:
                sys.exit(f"errors: no wrong program expects the sentence of problem::{name}")
            having.sort(key=lambda path: (path.stem != name, len(path.read_text(encoding="utf-8"))))
            remark, lines = program(having[0])
            out += ["", f"### {name}", "", f"`shardwise: {sentence}.`", "", f"{remark} ([{having[0].name}](../test/fail/{having[0].name}))"]
            out += ["", "```diff", *lines, "```"]
            if having[1:]:
                out += ["", "Also: " + ", ".join(f"[{path.stem}](../test/fail/{path.name})" for path in sorted(having[1:])) + "."]
    return "\n".join(out) + "\n\n" + FOOT


def find(root, text):
    """Prints the entries whose sentences are in a text, or have it in theirs."""
    content, letters, count = (root / INDEX).read_text(encoding="utf-8"), squeezed(text), 0
    for entry in re.split(r"^### ", content, flags=re.MULTILINE)[1:]:
        sentence = squeezed(re.search(r"`shardwise: (.*)\.`", entry).group(1))
        if sentence in letters or (len(letters) >= LEAST and letters in sentence):
            count += 1
            print("### " + re.split(r"^## ", entry, flags=re.MULTILINE)[0].rstrip() + "\n")
    print(f"errors: {count} of the index's sentences in that text" + ("" if count or len(letters) >= LEAST else f"; give {LEAST} letters of one or more"))
    return 0 if count else 1


def selftest():
    """What is stale, and what names no sentence, must be noticed."""
    wrong = []
    with tempfile.TemporaryDirectory(prefix="shardwise-errors-") as folder:
        root = pathlib.Path(folder)
        for name in ("include/shardwise/support", "test/fail", "test/support", "docs"):
            (root / name).mkdir(parents=True)
        table = '// --- one ---\nSHARDWISE_X(bad,\n            "bad: it is surely not "\n            "good enough; write good instead")\n// --- end ---\n'
        (root / TABLE).write_text(table)
        (root / "test/support/typed.hpp").write_text("// SPDX\n// Types. More.\n")
        source = '// SPDX-License\n// It is bad.\n// expect: bad: it is surely not good\n#include "typed.hpp"\n#ifdef SHARDWISE_FAIL\nbad x;\n#else\ngood x;\n#endif\n'
        (root / "test/fail/one.cpp").write_text(source)
        text = index(root)
        for part in ("`shardwise: bad: it is surely not good enough; write good instead.`", "-bad x;\n+good x;", "It is bad. ([one.cpp]"):
            if part not in text:
                wrong.append(f"{part!r} is not in the index")
        (root / INDEX).write_text(text)
        if check(root):
            wrong.append("an index that was just written is stale")
        (root / "test/fail/one.cpp").write_text(source.replace("good x", "better x"))
        if not check(root):
            wrong.append("an index of another program is not stale")
        if find(root, "a.cpp:3: error: static assertion failed: shardwise: bad: it is\n surely not good enough; write good instead.") != 0:
            wrong.append("a compiler's text finds no entry")
        if find(root, "not good") == 0:
            wrong.append("eight letters find an entry")
    print(f"errors selftest: {len(wrong)} wrong {wrong}")
    return 1 if wrong else 0


def check(root):
    """Whether the index is not what would be written; says the first line that differs."""
    path = root / INDEX
    wanted, there = index(root).splitlines(), path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for number, line in enumerate(wanted + [""], 1):
        if line != (there + [""] * (len(wanted) + 1))[number - 1] or (number > len(wanted) and len(there) > len(wanted)):
            print(f"{INDEX}:{number}: it should say {line!r}; run test/errors.py --write")
            return 1
    print(f"errors: {sum(line.startswith('### ') for line in there)} sentences in {INDEX}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--find", metavar="TEXT")
    parser.add_argument("--selftest", action="store_true")
    options = parser.parse_args()
    if options.selftest:
        return selftest()
    if options.find is not None:
        return find(ROOT, sys.stdin.read() if options.find == "-" else options.find)
    if options.write:
        (ROOT / INDEX).write_text(index(ROOT), encoding="utf-8")
    return check(ROOT)


if __name__ == "__main__":
    sys.exit(main())
