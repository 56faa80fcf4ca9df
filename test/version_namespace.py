#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every namespace of the headers lies in the inline namespace of the library's version, or writes it so.

Two versions in one program are then two sets of symbols, and users go on to write shardwise::x. The name stands in
support/config.hpp and follows from the version there. --write puts it into every header: what a new version needs. A header
that opens a namespace whose name is a macro must include what defines it.
"""

import argparse
import pathlib
import re
import sys
import tempfile

INCLUDE = pathlib.Path(__file__).resolve().parent.parent / "include" / "shardwise"
OPENED = re.compile(r"^([ \t]*(?:\}[ \t]*//[ \t]*)?namespace shardwise)(?:::inline \w+)?(?=[ \t:{\n])", re.MULTILINE)
OPENING = re.compile(r"^[ \t]*(?:inline )?namespace shardwise\b.*$", re.MULTILINE)
BY_MACRO = re.compile(r"^[ \t]*inline namespace (SHARDWISE_\w+)", re.MULTILINE)  # see config.hpp
PART = re.compile(r"#define SHARDWISE_VERSION_(MAJOR|MINOR) (\d+)")
NAME = re.compile(r'(#define SHARDWISE_VERSION_NAMESPACE )"\w*"')


def check(include, write):
    """How many headers are wrong, or were."""
    config = include / "support" / "config.hpp"
    text = config.read_text(encoding="utf-8")
    part = dict(PART.findall(text))
    name = f"v{part['MAJOR']}_{part['MINOR']}"
    wrong = headers = 0
    macros = {macro for macro in re.findall(r"#define (SHARDWISE_\w+_BUILD)\b", text)}
    for path in sorted(include.rglob("*")):
        if path.suffix not in (".hpp", ".cuh"):
            continue
        headers += 1
        old = path.read_text(encoding="utf-8")
        new = OPENED.sub(rf"\1::inline {name}", old)
        for macro in sorted(macros & set(BY_MACRO.findall(old))):
            if path != config and "#include <shardwise/support/config.hpp>" not in old:
                sys.exit(f"{path.relative_to(include)}: namespace {macro} without #include <shardwise/support/config.hpp>: without it the "
                         "namespace has the macro's own name")
        if path == config:
            new = NAME.sub(rf'\1"{name}"', new)
        for line in OPENING.findall(new):
            if not line.startswith(f"namespace shardwise::inline {name}"):
                sys.exit(f"{path.relative_to(include)}: '{line}' is no opening that this script reads")
        if new == old:
            continue
        wrong += 1
        if write:
            path.write_text(new, encoding="utf-8")
        else:
            is_so, is_to_be = next(pair for pair in zip(old.splitlines(), new.splitlines()) if pair[0] != pair[1])
            print(f"{path.relative_to(include)}: '{is_so}' is to be '{is_to_be}'")
    print(f"version namespace: {headers} headers, {wrong} {'written anew' if write else 'that are not in ' + name}")
    return wrong


def selftest():
    """A header without the namespace and one of another version are found and written anew; the words in a text stay."""
    with tempfile.TemporaryDirectory() as folder:
        include = pathlib.Path(folder)
        (include / "support").mkdir()
        (include / "support" / "config.hpp").write_text('#define SHARDWISE_VERSION_MAJOR 3\n#define SHARDWISE_VERSION_MINOR 4\n'
                                                        '#define SHARDWISE_VERSION_NAMESPACE "v3_3"\n')
        (include / "one.hpp").write_text("namespace shardwise {\nnamespace detail {\n}  // namespace detail\n}  // namespace shardwise\n")
        (include / "two.cuh").write_text("namespace shardwise::inline v3_3::host {\nint shardwise_x;\n}  // namespace shardwise::inline v3_3::host\n")
        (include / "three.hpp").write_text("namespace sw = other;\n// of namespace shardwise\n")
        good = check(include, False) == 3 and check(include, True) == 3 and check(include, False) == 0
        good = good and (include / "one.hpp").read_text() == ("namespace shardwise::inline v3_4 {\nnamespace detail {\n}  // namespace detail\n"
                                                              "}  // namespace shardwise::inline v3_4\n")
        good = good and (include / "two.cuh").read_text() == ("namespace shardwise::inline v3_4::host {\nint shardwise_x;\n"
                                                              "}  // namespace shardwise::inline v3_4::host\n")
    print(f"version namespace selftest: {'as it should be' if good else 'something is judged wrongly'}")
    return 0 if good else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--include", default=INCLUDE, type=pathlib.Path, help="the folder of the headers")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--selftest", action="store_true")
    options = parser.parse_args()
    if options.selftest:
        return selftest()
    return 1 if check(options.include, options.write) and not options.write else 0


if __name__ == "__main__":
    sys.exit(main())
