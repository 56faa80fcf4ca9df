#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the documents in the repository's root and in docs/ speak of what exists, by path and by name in backticks, that
ARCHITECTURE.md names every layer and folder of the headers, and that docs/README.md has every page of docs/ in its table of contents."""

import argparse
import pathlib
import re
import sys
import tempfile

DOCUMENTS = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "GLOSSARY.md"]
PAGES, CONTENTS = "docs", "docs/README.md"
WRITTEN = ["docs/errors.md"]  # by a script that checks it
BASES = ["", "docs", "include", "include/shardwise", "test"]  # what a path may be relative to
FILE = re.compile(r"\.(hpp|cuh|cpp|cu|py|md|txt|cmake|json|in|sh)$")
# What running the library or building it makes, and is not in the repository.
MADE = re.compile(r"^(build/|loss\.(svg|csv)$|summary\.json$|compile_commands\.json$)")
SOURCES = (".hpp", ".cuh")
OTHER_SOURCES = (".cpp", ".cu", ".py", ".cmake", ".txt", ".in")

FENCE = re.compile(r"^[ \t]*```.*?^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")  # a span may go on in the next line
HEADING = re.compile(r"^#{1,6} (.*?)[ \t]*$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
QUALIFIED = re.compile(r"\bsw::((?:\w+::)*\w+)")
TARGET = re.compile(r"\bshardwise::(\w+)")  # of CMake, or a name of the library
IDENTIFIER = re.compile(r"(?<![\w.$-])[a-z]\w*_\w*(?![\w-])")  # snake_case, as the library's names are
WORD = re.compile(r"[A-Za-z_]\w*")
FUNCTION = re.compile(r"\bconstexpr auto (\w+)\(|\bX\((\w+)\)|\bSHARDWISE_X\((\w+)[,)]")  # of tensors, in graph/functions/
FUNCTIONS = "include/shardwise/graph/functions"


def anchors(text):
    """What code hosts call the headings of a document."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in HEADING.findall(without_fences(text))}


def without_fences(text):
    """The text with fenced blocks emptied; lines keep their numbers."""
    return FENCE.sub(lambda m: re.sub(r"[^\n]", "", m.group()), text)


def said_absent(text):
    """(line, name) of each name that a page says is not there."""
    absent = False
    for number, line in enumerate(text.split("\n"), 1):
        absent = bool(line.strip()) and (absent or line.startswith("Not there:"))
        for name in re.findall(r"`(\w+)`", line) if absent else []:
            yield number, name


def without_foreign(text):
    """The text without what it says of another library: the first cell of tables that are headed so, and what does not exist here."""
    lines, foreign, absent = [], False, False
    for line in text.split("\n"):
        foreign = line.startswith("|") and (foreign or line.startswith("| PyTorch |"))
        absent = bool(line.strip()) and (absent or line.startswith("Not there:"))
        if foreign:
            line = re.sub(r"^\|[^|]*", "|", line)
        if absent:
            line = re.sub(r"`[^`]*`", "", line)
        lines.append(line)
    return "\n".join(lines)


def spans(text):
    """(line, content) of each `code` span."""
    for m in CODE.finditer(text):
        yield text.count("\n", 0, m.start()) + 1, " ".join(m.group(1).split())


def path_of(token):
    """The path that a token names, '' if it names none."""
    token = token.strip("<>\"'(),;:").split("#")[0]
    if token.startswith("./"):
        token = token[2:]
    if not token or "://" in token or MADE.match(token) or not re.match(r"^[\w./*<>-]+$", token):
        return ""
    if FILE.search(token) or ("/" in token and token.split("/")[0] in PLACES):
        return token
    return ""


# The first part of paths that do not end like a file: folders of the repository and of the library.
PLACES = {"include", "shardwise", "test", "bench", "examples", "cmake", "conan", "support", "vocabulary", "propagation",
          "graph", "autodiff", "pass", "module", "runtime", "io", "docs"}


class Repository:
    def __init__(self, root):
        self.root = root
        include = root / "include"
        self.names, self.other_names, self.files = set(), set(), set()
        self.functions = {name for path in (root / FUNCTIONS).glob("*.hpp") for found in FUNCTION.findall(path.read_text(encoding="utf-8")) for name in found}
        for path in include.rglob("*"):
            if path.suffix in SOURCES:
                self.names |= set(WORD.findall(path.read_text(encoding="utf-8")))
        for folder in ("include", "test", "bench", "examples", "cmake", "conan", "docs"):
            for path in (root / folder).rglob("*"):
                if path.is_file():
                    self.files.add(path.name)
                    if folder != "include" and path.suffix in OTHER_SOURCES + SOURCES and path.name != "documents.py":
                        self.other_names |= set(WORD.findall(path.read_text(encoding="utf-8", errors="replace")))
        for path in (root / "CMakeLists.txt", root / "CMakePresets.json", root / "quickstart"):
            if path.is_file():
                self.files.add(path.name)
                self.other_names |= set(WORD.findall(path.read_text(encoding="utf-8")))
        self.files |= {p.name for p in root.iterdir() if p.is_file()}

    def has(self, path):
        """Whether a path, with * or <name> for any part of it, is there; a bare file name may be anywhere."""
        path = re.sub(r"<[^>]*>", "*", path)
        while path.startswith("../"):
            path = path[3:]
        if "*" in path:
            return any(any((self.root / base).glob(path.replace("**.", "**/*."))) for base in BASES)
        return any((self.root / base / path).exists() for base in BASES) or ("/" not in path and path in self.files)


def check(root):
    """(problems, number of paths, number of names) of the documents under root."""
    repository = Repository(root)
    problems, paths, names = [], 0, 0
    pages = sorted(p.relative_to(root).as_posix() for p in (root / PAGES).glob("*.md"))
    if pages:
        contents = (root / CONTENTS).read_text(encoding="utf-8") if CONTENTS in pages else ""
        for page in pages:
            if page != CONTENTS and f"]({pathlib.PurePosixPath(page).name})" not in contents:
                problems.append(f"{CONTENTS}: {page} is not in the table of contents")
    for document in DOCUMENTS + [page for page in pages if page not in WRITTEN]:
        if not (root / document).is_file():
            problems.append(f"{document} does not exist")
            continue
        text = without_fences((root / document).read_text(encoding="utf-8"))
        tokens = [(text.count("\n", 0, m.start()) + 1, m.group(1)) for m in LINK.finditer(text)]
        for line, span in spans(without_foreign(text)):
            tokens += [(line, token) for token in span.split()]
            for name in QUALIFIED.findall(span):
                for part in name.split("::"):
                    names += 1
                    if part not in repository.names:
                        problems.append(f"{document}:{line}: the headers have no '{part}' (of `{span}`)")
            if any(path_of(token) for token in span.split()):
                continue  # file names are looked for as such
            rest = re.sub(r"--[\w-]+|(?<!\S)build/\S+", "", QUALIFIED.sub("", span))
            for name in TARGET.findall(rest) + IDENTIFIER.findall(TARGET.sub("", rest)):
                names += 1
                if name not in repository.names and name not in repository.other_names:
                    problems.append(f"{document}:{line}: nothing in the repository is called '{name}' (of `{span}`)")
        for line, link in [(text.count("\n", 0, m.start()) + 1, m.group(1)) for m in LINK.finditer(text)]:
            page, _, anchor = link.partition("#")
            target = (root / document).parent / page if page else root / document
            if anchor and "://" not in link and target.suffix == ".md" and target.is_file() and anchor not in anchors(target.read_text(encoding="utf-8")):
                problems.append(f"{document}:{line}: {link} names no heading")
        for line, name in said_absent(text):
            if name in repository.functions:
                problems.append(f"{document}:{line}: '{name}' is said not to be there, and {FUNCTIONS}/ has it")
        for line, token in tokens:
            path = path_of(token)
            if not path:
                continue
            paths += 1
            if not repository.has(path):
                problems.append(f"{document}:{line}: {path} does not exist")
    architecture = root / "ARCHITECTURE.md"
    said = architecture.read_text(encoding="utf-8") if architecture.is_file() else ""
    base = root / "include" / "shardwise"
    for folder in sorted(p for p in base.rglob("*") if p.is_dir() and any(f.suffix in SOURCES for f in p.iterdir())):
        name = folder.relative_to(base).as_posix() + "/"
        if f"`{name}`" not in said:
            problems.append(f"ARCHITECTURE.md: the folder `{name}` of the headers is not named")
    return problems, paths, names


# (what ARCHITECTURE.md says, text that must be among the problems; None: none)
SELFTEST = [
    ("`graph/`, `graph/text/`: `graph/node.hpp` has `sw::append_node`, `node_count`; see [this](README.md).", None),
    ("`graph/`, `graph/text/`: `graph/gone.hpp`", "graph/gone.hpp does not exist"),
    ("`graph/`, `graph/text/`: [gone](test/gone.cpp)", "test/gone.cpp does not exist"),
    ("`graph/`, `graph/text/`: `sw::gone`", "no 'gone'"),
    ("`graph/`, `graph/text/`: `sw::detail::append_node`", "no 'detail'"),
    ("`graph/`, `graph/text/`: `gone_name(x)`", "called 'gone_name'"),
    ("`graph/`, `graph/text/`: `test/*.cpp` and `test/<name>.cpp`, `node.hpp`, `../graph/node.hpp`", None),
    ("`graph/`, `graph/text/`: `test/*.cu`", "test/*.cu does not exist"),
    ("`graph/`, `graph/text/`: `helper_of_tests` and `build/out/x.json`, https://example.org/a.md", None),
    ("`graph/`, `graph/text/`:\n```cpp\n// `gone_name` in `graph/gone.hpp`\n```", None),
    ("`graph/`, `graph/text/`:\n- x:\n\n  ```cpp\n  // `gone_name` in `graph/gone.hpp`\n  ```\n", None),
    ("`graph/`, `graph/text/`: `node_count\nappend_node`, `gone_x\nnode_count`", "called 'gone_x'"),
    ("`graph/`, `graph/text/`: `shardwise::append_node`, `shardwise::gone`", "called 'gone'"),
    ("`graph/`, `graph/text/`: headers below `shardwise/graph/` and `shardwise/gone/`", "shardwise/gone/ does not exist"),
    ("`graph/`, `graph/functions/`", "the folder `graph/text/`"),
]
# (what docs/README.md says beside a page docs/page.md, text that must be among the problems; None: none)
PAGES_SELFTEST = [
    ("[a page](page.md), `append_node`", None),
    ("[a page](page.md), [part](page.md#a-part-of-it), [own](#own)\n\n# Own", None),
    ("[a page](page.md), [part](page.md#another-part)", "page.md#another-part names no heading"),
    ("no page", "docs/page.md is not in the table of contents"),
    ("[a page](page.md), `gone_name`", "called 'gone_name'"),
    ("[a page](page.md), [another](gone.md)", "gone.md does not exist"),
    ("[a page](page.md)\n\n| PyTorch | here |\n|---|---|\n| `their_name` | `append_node` |\n\nNot there: `their_other`,\n`and_more`.", None),
    ("[a page](page.md)\n\n| PyTorch | here |\n|---|---|\n| `their_name` | `gone_name` |", "called 'gone_name'"),
    ("[a page](page.md)\n\nNot there: `x`.\n\n`gone_name`", "called 'gone_name'"),
    ("[a page](page.md), `build/bench/bench_made 4`", None),
    ("[a page](page.md)\n\nNot there: `x`,\n`here_it_is`.", "'here_it_is' is said not to be there"),
]


def selftest():
    """Every fabricated repository must be judged as SELFTEST says."""
    wrong = 0
    both = [("`graph/`, `graph/functions/`, `graph/text/`", contents, expected) for contents, expected in PAGES_SELFTEST]
    for said, contents, expected in [(said.replace("`graph/`,", "`graph/`, `graph/functions/`,"), None, expected) for said, expected in SELFTEST] + both:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, content in (("include/shardwise/graph/node.hpp", "int append_node(int node_count);\n"),
                                  ("include/shardwise/graph/text/text.hpp", "\n"),
                                  ("include/shardwise/graph/functions/functions.hpp", "constexpr auto here_it_is(int);\n"),
                                  ("test/one.cpp", "int helper_of_tests;\n"),
                                  ("ARCHITECTURE.md", said + "\n")):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(content)
            for name in DOCUMENTS:
                (root / name).touch()
            if contents is not None:
                (root / "docs").mkdir()
                (root / "docs/page.md").write_text("# A page\n\n## A `part`, of it\n\n`graph/node.hpp`\n")
                (root / "docs/README.md").write_text(contents + "\n")
            problems, _, _ = check(root)
            if (not any(expected in p for p in problems) or len(problems) > 1) if expected else problems:
                wrong += 1
                print(f"selftest: {said!r}, {contents!r}: wanted {expected or 'no problem'!r}, got {problems}")
    print(f"documents selftest: {len(SELFTEST) + len(both)} documents, {wrong} judged wrongly")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).parent.parent, help="the repository")
    parser.add_argument("--selftest", action="store_true")
    arguments = parser.parse_args()
    if arguments.selftest:
        return selftest()
    problems, paths, names = check(pathlib.Path(arguments.root).resolve())
    for problem in problems:
        print(problem)
    print(f"documents: {paths} paths and {names} names, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
