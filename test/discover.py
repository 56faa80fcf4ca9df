#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks a doctest executable for its cases and writes one CTest test per case, whatever characters its name has."""

import argparse
import collections
import subprocess
import sys
import xml.etree.ElementTree


def bracket(text):
    """text as a CMake bracket argument."""
    return f"[==[{text}]==]"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("executable")
    parser.add_argument("output", help="the CTest script to write")
    parser.add_argument("--prefix", default="", help="tests are named '<prefix>: <case>'")
    parser.add_argument("--skip", help="a case that prints this regular expression counts as skipped")
    parser.add_argument("--labels", help="CTest labels of every case")
    parser.add_argument("--timeout", default="300", help="seconds per case")
    options = parser.parse_args()

    listing = subprocess.run([options.executable, "--list-test-cases", "--reporters=xml"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, check=True, timeout=60).stdout
    cases = [(case.get("name"), case.get("filename"), case.get("line"), case.get("skipped") == "true")
             for case in xml.etree.ElementTree.fromstring(listing).iter("TestCase")]
    counts = collections.Counter(name.lower() for name, *_ in cases)
    for name, file, line, _ in cases:
        if counts[name.lower()] > 1:
            sys.exit(f"{file}:{line}: another test case of this executable is named '{name}' too")
    if not cases:
        sys.exit(f"{options.executable} has no test case")

    with open(options.output, "w", encoding="utf-8") as script:
        for name, _, _, skipped in cases:
            test = bracket(f"{options.prefix}: {name}")
            pattern = name.replace("\\", "\\\\").replace(",", "\\,")
            script.write(f"add_test({test} {bracket(options.executable)} {bracket('--test-case=' + pattern)})\n"
                         f"set_tests_properties({test} PROPERTIES TIMEOUT {options.timeout}")
            if options.skip:
                script.write(f" SKIP_REGULAR_EXPRESSION {bracket(options.skip)}")
            if options.labels:
                script.write(f" LABELS {bracket(options.labels)}")
            # doctest exits 0 when no case matches the filter, so only its summary shows a case that did not run
            script.write(" DISABLED TRUE" if skipped else f" FAIL_REGULAR_EXPRESSION {bracket('test cases: +0 [|]')}")
            script.write(")\n")


if __name__ == "__main__":
    main()
