#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every source is as clang-format writes it by .clang-format, or writes it so.

    python3 test/format.py              each line that differs, and exit status 1
    python3 test/format.py --write      formats what differs
    python3 test/format.py --tokens REV that no token and no comment is another one than in the git revision REV

Versions of clang-format differ in what they write, so exactly one is taken: of the environment's SHARDWISE_CLANG_FORMAT, of
clang-format-19 and clang-format the first that is it. Debian 12 has it as package clang-format-19, elsewhere
`pip install clang-format==19.1.7` does.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from source_text import tokens

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKIPPED = 77  # what CTest shows as skipped
VERSION = "19.1.7"
MISREAD = re.compile(r" >+ ::\w")  # nobody writes so, clang-format does where it takes `<` and `>` for operators
SUFFIXES = (".hpp", ".cuh", ".cpp", ".cu")
FOLDERS = ("include", "test", "examples", "bench", "conan")


def find():
    """The command of the one version; none: what is there instead, as a sentence."""
    there = []
    for name in (os.environ.get("SHARDWISE_CLANG_FORMAT"), "clang-format-19", "clang-format"):
        command = shutil.which(name) if name else None
        if not command:
            continue
        said = re.search(r"\d+\.\d+\.\d+", subprocess.run([command, "--version"], stdout=subprocess.PIPE, text=True, check=False).stdout)
        if said and said.group() == VERSION:
            return command, ""
        there.append(f"{name} is {said.group() if said else 'of no known version'}")
    return None, (f"clang-format {VERSION} is needed and not here ({', '.join(there) or 'no clang-format at all'}): install Debian's "
                  f"package clang-format-19, or `pip install clang-format=={VERSION}`, or name it in SHARDWISE_CLANG_FORMAT")


def sources(root):
    """The C++ sources below root: those that git tracks, of a copy without git those in the folders of sources."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if listed.returncode == 0 and listed.stdout:
        paths = [root / name for name in listed.stdout.decode().split("\0")]
    else:
        paths = [path for folder in FOLDERS for path in (root / folder).rglob("*")]
    return sorted(path for path in paths if path.suffix in SUFFIXES and path.is_file())


def formatted(command, path):
    """The text that clang-format makes of a file; an error ends the program."""
    done = subprocess.run([command, "--style=file", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(f"{command} {path}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode("utf-8")


def differing(command, files):
    """Those of the files that clang-format would write otherwise. Starting it costs ten times what a file does, so it is given many at once."""
    parts = [files[k:k + 48] for k in range(0, len(files), 48)]

    def report(part):
        done = subprocess.run([command, "--style=file", "--dry-run", *map(str, part)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        said = done.stderr.decode(errors="replace")
        if done.returncode != 0:
            sys.exit(f"{command}: {said}")
        return said

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = "\n".join(pool.map(report, parts))
    named = set(re.findall(r"^(.+?):\d+:\d+: warning: code should be clang-formatted", said, re.M))
    return [path for path in files if str(path) in named]


def check(command, root, write):
    """How many sources differ, or after writing are misread."""
    files, wrong, unclear = sources(root), 0, 0
    if not files:
        sys.exit(f"format: no sources below {root}")
    anew = set(differing(command, files))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = pool.map(lambda path: formatted(command, path) if path in anew else path.read_text(encoding="utf-8"), files)
        for path, new in zip(files, texts):
            old = path.read_text(encoding="utf-8")
            misread = MISREAD.search(new)
            if misread:
                line = new.count("\n", 0, misread.start()) + 1
                print(f"{path.relative_to(root)}:{line}: clang-format takes brackets of a template for comparisons; put the condition that "
                      f"is its argument into parentheses\n    {new.splitlines()[line - 1].strip()}")
                unclear += 1
            if old == new:
                continue
            wrong += 1
            if write:
                path.write_text(new, encoding="utf-8")
                continue
            lines = zip(old.splitlines() + ["(the end)"], new.splitlines() + ["(the end)"])
            number, (is_so, is_to_be) = next((n, pair) for n, pair in enumerate(lines, 1) if pair[0] != pair[1] or pair[0] == "(the end)")
            print(f"{path.relative_to(root)}:{number}: is\n    {is_so}\nclang-format writes\n    {is_to_be}")
    print(f"format: {len(files)} sources, {wrong} {'written anew' if write else 'otherwise than clang-format ' + VERSION + ' writes them'}")
    return unclear if write else wrong + unclear


def same_tokens(root, revision):
    """How many sources have other tokens or comments than they had in a git revision, or were not there."""
    wrong = 0
    for path in sources(root):
        name = path.relative_to(root).as_posix()
        before = subprocess.run(["git", "-C", str(root), "show", f"{revision}:{name}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if before.returncode != 0:
            print(f"{name}: {before.stderr.decode(errors='replace').strip()}")
            wrong += 1
            continue
        was, now = tokens(before.stdout.decode("utf-8")), tokens(path.read_text(encoding="utf-8"))
        if was != now:
            wrong += 1
            at = next((k for k, (a, b) in enumerate(zip(was, now)) if a != b), min(len(was), len(now)))
            print(f"{name}: {' '.join(was[max(0, at - 3):at + 4])!r} is now {' '.join(now[max(0, at - 3):at + 4])!r}")
    print(f"format: {len(sources(root))} sources, {wrong} with other tokens than in {revision}")
    return wrong


def selftest(command):
    """A source that is not formatted is found, and formatting it changes no token; other tokens and comments are seen."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "include").mkdir()
        shutil.copy(ROOT / ".clang-format", root)
        source = root / "include" / "one.hpp"
        text = "#define TWO(x)   x +\\\n  x\ntemplate <class T> requires( sizeof(T)>1 )\nint  f( T x ){return TWO( x );}   // twice\n"
        source.write_text(text)
        found = check(command, root, False) == 1 and check(command, root, True) == 0 and check(command, root, False) == 0
        found = found and source.read_text() != text and tokens(source.read_text()) == tokens(text)
        source.write_text("static_assert(raise<a ? problem::none : problem::x, want<32>>::ok);\n")
        found = found and check(command, root, True) == 1
    for one, other in (("a b", "ab"), ("a; // x", "a; // y"), ("#define A b\nc", "#define A b c"), ("a < b", "a <= b"),
                       ('"a b"', '"ab"'), ('R"(a  b)"', 'R"(a b)"'), ("1'000", "1000"), ("a /* b */", "a")):
        found = found and tokens(one) != tokens(other)
    for one, other in (("a<b >c", "a < b > c"), ("a ;// x \nb", "a;  // x\n  b"), ("#define A b \\\n c\nd", "#define A b c\nd")):
        found = found and tokens(one) == tokens(other)
    print(f"format selftest: {'as it should be' if found else 'something is judged wrongly'}")
    return 0 if found else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", default=ROOT, type=pathlib.Path, help="the repository")
    parser.add_argument("--write", action="store_true", help="format what differs")
    parser.add_argument("--tokens", metavar="REV", help="compare with a git revision")
    parser.add_argument("--available", action="store_true", help="only whether the one version of clang-format is here")
    parser.add_argument("--selftest", action="store_true")
    options = parser.parse_args()
    root = options.root.resolve()
    if options.tokens:
        return 1 if same_tokens(root, options.tokens) else 0
    command, lacks = find()
    if not command:
        print(f"format: not checked: {lacks}")
        return 1 if options.available or options.write else SKIPPED
    if options.available:
        return 0
    if options.selftest:
        return selftest(command)
    return 1 if check(command, root, options.write) else 0


if __name__ == "__main__":
    sys.exit(main())
