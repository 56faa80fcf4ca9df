#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the inline namespaces of the headers, or writes them (--write).

Every namespace lies in that of the library's version, so that two versions in one program are two sets of symbols; users go on
to write shardwise::x. Its name stands in support/config.hpp and follows from the version there: --write is what a new version
needs. Kernels lie in one that is named after the options that alter them, and hidden: a macro of that header, which every header
that opens such a namespace must include, or the namespace would have the macro's own name.
"""

import argparse
import pathlib
import re
import sys
import tempfile

INCLUDE = pathlib.Path(__file__).resolve().parent.parent / "include" / "shardwise"
CONFIG = "#include <shardwise/support/config.hpp>\n"
OPENED = re.compile(r"^([ \t]*(?:\}[ \t]*//[ \t]*)?namespace shardwise)(?:::inline v\d+_\d+)?(?=[ \t:{\n])", re.MULTILINE)
OPENING = re.compile(r"^[ \t]*(?:inline )?namespace shardwise\b.*$", re.MULTILINE)
PART = re.compile(r"#define SHARDWISE_VERSION_(MAJOR|MINOR) (\d+)")
NAME = re.compile(r'(#define SHARDWISE_VERSION_NAMESPACE )"\w*"')
BY_MACRO = re.compile(r"\bSHARDWISE_(?:\w+_BUILD|HIDDEN|VISIBLE)\b")
# (namespace, the one inside it, headers that have kernels in it). custom.cuh has the list of users' kernels: one for a program.
KERNELS = (("host", "SHARDWISE_HOST_BUILD", re.compile(r"")),
           ("cuda", "SHARDWISE_DEVICE_BUILD", re.compile(r"^operations/\w+/device\w*\.cuh$|^runtime/cuda/kernels\.cuh$|"
                                                         r"^runtime/cuda/device/(?!custom\.cuh)\w+\.cuh$")))


def in_version(text, name):
    """The text with every opening of the library's namespace, and the comment at its end, in the version's."""
    return OPENED.sub(rf"\1::inline {name}", text)


def with_kernels_apart(text, header):
    """The text with the inline namespace of kernels, and what defines its name included."""
    for outer, macro, headers in KERNELS:
        if not headers.search(header):
            continue
        path = rf"namespace (?:shardwise(?:::inline \w+)?::)?{outer}"
        deeper = re.search(rf"^{path}::.*\{{", text, re.MULTILINE)
        if deeper:
            sys.exit(f"{header}: '{deeper.group()}': open {outer} alone, and within it the other one")
        text = re.sub(rf"^({path} \{{\n)(?!inline namespace {macro} \{{)", rf"\1inline namespace {macro} {{\n", text, flags=re.MULTILINE)
        text = re.sub(rf"(?<!// namespace {macro}\n)^(\}}  // {path}\n)", rf"}}  // namespace {macro}\n\1", text, flags=re.MULTILINE)
        if len(re.findall(rf"^inline namespace {macro} \{{", text, re.MULTILINE)) != text.count(f"}}  // namespace {macro}\n"):
            sys.exit(f"{header}: a namespace {outer} has no comment at its end")
    if BY_MACRO.search(text) and CONFIG not in text:
        included = list(re.finditer(r"^#include <shardwise/.*>\n", text, re.MULTILINE))
        if included:
            end = next((one.end() for one, other in zip(included, included[1:]) if one.end() != other.start()), included[-1].end())
            at = next((one.start() for one in included if one.start() < end and one.group() > CONFIG), end)
            text = text[:at] + CONFIG + text[at:]
        else:
            standard = list(re.finditer(r"^#(?:include <.*>|pragma once)\n", text, re.MULTILINE))
            text = text[:standard[-1].end()] + "\n" + CONFIG + text[standard[-1].end():]
    return text


def check(include, write):
    """How many headers are wrong, or were."""
    config = include / "support" / "config.hpp"
    part = dict(PART.findall(config.read_text(encoding="utf-8")))
    name = f"v{part['MAJOR']}_{part['MINOR']}"
    wrong = headers = 0
    for path in sorted(include.rglob("*")):
        if path.suffix not in (".hpp", ".cuh"):
            continue
        headers += 1
        header, old = path.relative_to(include).as_posix(), path.read_text(encoding="utf-8")
        new = in_version(old, name)
        new = NAME.sub(rf'\1"{name}"', new) if path == config else with_kernels_apart(new, header)
        for line in OPENING.findall(new):
            if not line.startswith(f"namespace shardwise::inline {name}"):
                sys.exit(f"{header}: '{line}' is no opening that this script reads")
        if new == old:
            continue
        wrong += 1
        if write:
            path.write_text(new, encoding="utf-8")
        else:
            number, (is_so, is_to_be) = next((n, pair) for n, pair in enumerate(zip(old.splitlines(), new.splitlines()), 1) if pair[0] != pair[1])
            print(f"{header}:{number}: is '{is_so}', and is to be '{is_to_be}'")
    print(f"namespaces: {headers} headers, {wrong} {'written anew' if write else 'not in ' + name + ' or with kernels that are not apart'}")
    return wrong


# (header, its text, what --write makes of it)
SELFTEST = [
    ("one.hpp", "namespace shardwise {\nnamespace detail {\n}  // namespace detail\n}  // namespace shardwise\n",
     "namespace shardwise::inline v3_4 {\nnamespace detail {\n}  // namespace detail\n}  // namespace shardwise::inline v3_4\n"),
    ("two.cuh", "namespace shardwise::inline v3_3::cuda {\nint shardwise_x;\n}  // namespace shardwise::inline v3_3::cuda\n",
     "namespace shardwise::inline v3_4::cuda {\nint shardwise_x;\n}  // namespace shardwise::inline v3_4::cuda\n"),
    ("three.hpp", "namespace sw = other;\n// of namespace shardwise\n", "namespace sw = other;\n// of namespace shardwise\n"),
    ("four.hpp", "#pragma once\n\n#include <shardwise/one.hpp>\n#include <shardwise/two.cuh>\n\nnamespace shardwise::host {\n}  // namespace shardwise::host\n",
     "#pragma once\n\n#include <shardwise/one.hpp>\n#include <shardwise/support/config.hpp>\n#include <shardwise/two.cuh>\n\n"
     "namespace shardwise::inline v3_4::host {\ninline namespace SHARDWISE_HOST_BUILD {\n}  // namespace SHARDWISE_HOST_BUILD\n"
     "}  // namespace shardwise::inline v3_4::host\n"),
    ("operations/fill/device.cuh", "#pragma once\nnamespace shardwise::cuda {\n}  // namespace shardwise::cuda\n",
     f"#pragma once\n\n{CONFIG}namespace shardwise::inline v3_4::cuda {{\ninline namespace SHARDWISE_DEVICE_BUILD {{\n"
     "}  // namespace SHARDWISE_DEVICE_BUILD\n}  // namespace shardwise::inline v3_4::cuda\n"),
]


def selftest():
    """Headers that are outside are found and written as they should be; those written are found good."""
    with tempfile.TemporaryDirectory() as folder:
        include = pathlib.Path(folder)
        (include / "support").mkdir()
        config = include / "support" / "config.hpp"
        config.write_text('#define SHARDWISE_VERSION_MAJOR 3\n#define SHARDWISE_VERSION_MINOR 4\n#define SHARDWISE_VERSION_NAMESPACE "v3_3"\n')
        for name, text, _ in SELFTEST:
            (include / name).parent.mkdir(parents=True, exist_ok=True)
            (include / name).write_text(text)
        wrong = 1 + sum(text != made for _, text, made in SELFTEST)
        good = check(include, False) == wrong and check(include, True) == wrong and check(include, False) == 0
        for name, _, made in SELFTEST:
            if (include / name).read_text() != made:
                good = False
                print(f"selftest: {name}: made\n{(include / name).read_text()}instead of\n{made}")
        good = good and config.read_text().endswith('"v3_4"\n')
    print(f"namespaces selftest: {'as it should be' if good else 'something is judged wrongly'}")
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
