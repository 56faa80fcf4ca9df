#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the C++ of docs/, and compares what its pages quote.

A page is one program: its blocks of C++ in their order, those of a section (##) in a namespace of their own, those before the first
section seen by all. A comment in the line before a block says what else it is:

    <!-- quote: examples/03_plan.cpp -->                 a part of that file, line by line, wherever it begins on the line; not compiled
                                                         here, since the file is
    <!-- inside: sw::executor<step>& run -->             statements, of a function with these parameters
    <!-- own -->                                         in a namespace of its own, since it declares again what the section has
    <!-- global -->                                      at global scope: a specialisation of the library's templates
    <!-- wrong: a part of the sentence -->               must not compile, and the compiler must say so; in no other block's way

Includes are moved to the top; <shardwise/shardwise.hpp> and the alias sw are there. Other documents are looked at for quotes alone.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WRITTEN = {"errors.md"}  # by another script, from programs that are compiled
MARK = re.compile(r"^<!-- (quote|inside|own|global|wrong)(?:: ?(.*?))? ?-->$")
FENCE = re.compile(r"^([ \t]*)```(\w*)[^\n]*$")
TIMEOUT = 300


class Block:
    def __init__(self, language, line, lines, mark, value, indented):
        self.language, self.line, self.lines, self.mark, self.value, self.indented = language, line, lines, mark, value, indented


def parts(text):
    """The blocks of a page, and its sections as None between them; a block that is not closed ends the page."""
    found, lines, k = [], text.splitlines(), 0
    while k < len(lines):
        fence = FENCE.match(lines[k])
        if lines[k].startswith("## "):
            found.append(None)
        elif fence:
            before = MARK.match(lines[k - 1].strip()) if k > 0 else None
            first = k + 1
            while k + 1 < len(lines) and not re.match(r"^[ \t]*```[ \t]*$", lines[k + 1]):
                k += 1
            found.append(Block(fence[2], first + 1, lines[first : k + 1], before and before[1], before and before[2], fence[1] != ""))
            k += 1
        k += 1
    return found


def dedented(lines):
    width = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[width:].rstrip() for line in lines]


def has_lines(whole, part):
    """Whether part stands in whole, line by line, at any indentation."""
    part = dedented(part)
    return any(dedented(whole[at : at + len(part)]) == part for at in range(len(whole) - len(part) + 1)) if any(part) else False


def check_quotes(root, page, blocks):
    wrong = []
    for block in blocks:
        if block and block.mark == "quote":
            file = root / block.value
            if not file.is_file():
                wrong.append(f"{page}:{block.line}: {block.value} is not there")
            elif not has_lines(file.read_text(encoding="utf-8").splitlines(), block.lines):
                wrong.append(f"{page}:{block.line}: these lines do not stand in {block.value}")
    return wrong


def program(page, blocks, with_wrong=None):
    """(a page as one source, how many blocks it has, what is wrong with the page); of the blocks that are wrong the one given."""
    wrong, includes, body, section, count = [], ["#include <shardwise/shardwise.hpp>"], [], 0, 0
    for block in blocks:
        if block is None:
            if section:
                body.append(f"}}  // section {section}")
            section += 1
            body.append(f"namespace section_{section} {{")
            continue
        if block.language not in ("cpp", "cuda") or block.mark == "quote" or (block.mark == "wrong" and block is not with_wrong):
            continue
        if block.language == "cuda":
            wrong.append(f"{page}:{block.line}: code for nvcc is quoted from a source that the build has: <!-- quote: ... -->")
        if block.indented:
            wrong.append(f"{page}:{block.line}: a block of C++ begins at the begin of its line")
        count += 1
        code, number = [], block.line
        for line in block.lines:
            if line.startswith("#include"):
                includes.append(line.split("//")[0].strip())
                line = ""
            code.append("" if re.fullmatch(r"namespace sw = shardwise;( *//.*)?", line) else line)
        before, after = [], []
        if block.mark == "inside":
            if re.search(r"\bauto\b", block.value or ""):
                wrong.append(f"{page}:{block.line}: a template is not compiled; give the parameters' types")
            before, after = [f"[[maybe_unused]] inline void block_{count}({block.value or ''}) {{"], ["}"]
        elif block.mark == "own":
            before, after = [f"namespace block_{count} {{"], ["}"]
        elif block.mark == "global" and section:
            before, after = ["}"], [f"namespace section_{section} {{"]
        body += [*before, f'#line {number} "{page}"', *code, '#line 1 "test/blocks.py"', *after]
    if section:
        body.append("}")
    head = [*dict.fromkeys(includes), "namespace sw = shardwise;"]
    return "\n".join([*head, *body, ""]), count, wrong


def pages(root):
    """(name, blocks, whether its code is compiled) of each document."""
    for path in sorted([*root.glob("*.md"), *(root / "docs").glob("*.md")]):
        if path.name not in WRITTEN:
            yield path.relative_to(root).as_posix(), parts(path.read_text(encoding="utf-8")), path.parent != root


def compiles(options, root, page, source):
    with tempfile.TemporaryDirectory(prefix="shardwise-blocks-") as folder:
        file = pathlib.Path(folder) / (pathlib.Path(page).stem + ".cpp")
        file.write_text(source, encoding="utf-8")
        line = [options.compiler, "-std=c++20", "-fsyntax-only", "-w", "-pthread", f"-I{root / 'include'}", f"-I{root / 'examples'}"]
        line += [part for directory in options.system_include for part in ("-isystem", directory)]
        begin = time.monotonic()
        done = subprocess.run([*line, str(file)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT, check=False)
    return done.returncode == 0, done.stdout.decode("utf-8", "replace"), time.monotonic() - begin


def squeezed(text):
    return re.sub(r"\s+", "", text)


def check_wrong(options, root, page, blocks):
    """What is not as the page says of the blocks that must not compile."""
    wrong = []
    for block in blocks:
        if not block or block.mark != "wrong":
            continue
        good, said, _ = compiles(options, root, page, program(page, blocks, block)[0])
        if good:
            wrong.append(f"{page}:{block.line}: this block compiles, and must not")
        elif not block.value or squeezed(block.value) not in squeezed(said):
            wrong.append(f"{page}:{block.line}: the compiler does not say {block.value!r}: " + " ".join(re.findall(r"error: (.*)", said)[:2])[:600])
    return wrong


def rotation(root):
    """A number that changes with the commit, or where there is none with the day."""
    done = subprocess.run(["git", "-C", str(root), "rev-parse", "--short=7", "HEAD"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return int(done.stdout, 16) if done.returncode == 0 else int(time.time()) // 86400


def check(options, root):
    wrong, compiled, all_pages = [], 0, list(pages(root))
    own = [page for page, blocks, code in all_pages if code and program(page, blocks)[1]]
    taken = set(options.pages or own)
    if options.sample:
        first, step = options.sample.split("/")
        first = rotation(root) if first == "rotate" else int(first)
        taken = set(own[first % min(int(step), max(len(own), 1)) :: int(step)])
    for page, blocks, code in all_pages:
        wrong += check_quotes(root, page, blocks)
        if not code:
            continue
        source, count, mistakes = program(page, blocks)
        wrong += mistakes
        if page in taken and count:
            good, said, seconds = compiles(options, root, page, source)
            compiled += 1
            print(f"{page}: {count} blocks, {seconds:.1f} s{'' if good else ': does not compile'}")
            if not good:
                print("\n".join(text[:600] for text in said.splitlines() if "error" in text or page in text))
                wrong.append(f"{page} does not compile")
            else:
                wrong += check_wrong(options, root, page, blocks)
    for text in wrong:
        print(text)
    print(f"blocks: {compiled} of {len(own)} pages compiled, {len(wrong)} problems")
    return wrong


# (page, text that must be among the problems; None: none)
SELFTEST = [
    ("# P\n\n```cpp\nusing x = int;\n```\n\n## A\n\n```cpp\nusing y = x;\n```\n\n## B\n\n```cpp\nusing y = float;\n```\n", None),
    ("# P\n\n## A\n\n```cpp\nusing y = int;\n```\n\n## B\n\n```cpp\ny z;\n```\n", "does not compile"),
    ("# P\n\n```cpp\n#include <vector>\nstd::vector<int> v;\n```\n<!-- inside: int n -->\n```cpp\nv[0] = n;\n```\n", None),
    ("# P\n\n<!-- inside: int n -->\n```cpp\nn = m;\n```\n", "does not compile"),
    ("# P\n\n<!-- inside: auto n -->\n```cpp\nn = m;\n```\n", "a template is not compiled"),
    ("# P\n\n```cpp\nusing y = int;\n```\n\n<!-- own -->\n```cpp\nusing y = float;\n```\n", None),
    ("# P\n\n<!-- quote: one.txt -->\n```text\nif (b)\n  c;\n```\n", None),
    ("# P\n\n<!-- quote: one.txt -->\n```text\na\nc\n```\n", "do not stand in"),
    ("# P\n\n<!-- quote: two.txt -->\n```text\na\n```\n", "two.txt is not there"),
    ("# P\n\n```cpp\nusing y = int;\n```\n<!-- wrong: is not one -->\n```cpp\nstatic_assert(sizeof(y) == 1, \"y is not one\");\n```\n", None),
    ("# P\n\n```cpp\nusing y = int;\n```\n<!-- wrong: is not two -->\n```cpp\nstatic_assert(sizeof(y) == 1, \"y is not one\");\n```\n", "does not say"),
    ("# P\n\n```cpp\nusing y = int;\n```\n<!-- wrong: is not one -->\n```cpp\nstatic_assert(sizeof(y) == 4, \"y is not one\");\n```\n", "and must not"),
    ("# P\n\n```cuda\na\n```\n", "is quoted from a source"),
    ("# P\n\n- p\n  ```cpp\n  int a;\n  ```\n", "begins at the begin"),
]


def selftest(options):
    wrong = 0
    for text, expected in SELFTEST:
        with tempfile.TemporaryDirectory(prefix="shardwise-blocks-") as folder:
            root = pathlib.Path(folder)
            (root / "docs").mkdir()
            (root / "include/shardwise").mkdir(parents=True)
            (root / "include/shardwise/shardwise.hpp").write_text("namespace shardwise {}\n")
            (root / "one.txt").write_text("  a\n  if (b)\n    c;\n")
            (root / "docs/page.md").write_text(text)
            found = check(argparse.Namespace(compiler=options.compiler, system_include=[], pages=[], sample=None), root)
            if not any(expected in problem for problem in found) if expected else found:
                wrong += 1
                print(f"selftest: {text!r}: wanted {expected or 'no problem'!r}, got {found}")
    print(f"blocks selftest: {len(SELFTEST)} pages, {wrong} judged wrongly")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--system-include", action="append", default=[])
    parser.add_argument("--sample", metavar="I/N", help="every N-th page from number I (from 0; 'rotate': the commit's, else the day's)")
    parser.add_argument("--selftest", action="store_true")
    parser.add_argument("pages", nargs="*", help="docs/plans.md ...: compile these alone")
    options = parser.parse_args()
    if options.selftest:
        return selftest(options)
    return 1 if check(options, ROOT) else 0


if __name__ == "__main__":
    sys.exit(main())
