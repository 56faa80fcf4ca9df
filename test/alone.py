#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Law: every source that has test cases links alone, for a sample builds any of them without the others. So a name that one
source gives to others stands in a source without test cases, which test/CMakeLists.txt adds to all of its folder.

Reads the objects of a build with nm: no object of a source with test cases defines what another object of the build needs."""

import argparse
import pathlib
import subprocess
import sys


def symbols(objects):
    """For each object the names that it defines for others (not those that every source may define, as templates) and needs."""
    listing = subprocess.run(["nm", "-A", "-g", *map(str, objects)], stdout=subprocess.PIPE, check=True, text=True).stdout
    defined, needed = {}, {}
    for line in listing.splitlines():
        place, _, rest = line.partition(".o:")
        words = rest.split()
        if len(words) < 2:
            continue
        kind, name = words[-2], words[-1]
        if kind == "U":
            needed.setdefault(name, set()).add(place + ".o")
        elif kind in "TDBRGSC":
            defined.setdefault(name, set()).add(place + ".o")
    return defined, needed


def faults(objects, serves):
    defined, needed = symbols(objects)
    return sorted(f"{owner} defines {name}, which {user} needs" for name, owners in defined.items() for owner in owners if not serves(owner)
                  for user in needed.get(name, ()) if user != owner)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="the build's test folder")
    parser.add_argument("sources", type=pathlib.Path, help="the folder of the tests' sources")
    parser.add_argument("--selftest", action="store_true", help="take every source for one with test cases: then there must be faults")
    options = parser.parse_args()

    found, count = [], 0
    for folder in sorted((options.build / "CMakeFiles").glob("test_*.dir")):
        objects = [o for part in ("unit", "dist", "golden") for o in sorted((folder / part).rglob("*.o"))]
        source = {str(o): options.sources / o.relative_to(folder).with_suffix("") for o in objects}
        objects = [o for o in objects if source[str(o)].exists()]  # not left from a source that is gone
        if len(objects) < 2:
            continue
        count += len(objects)
        found += faults(objects, lambda o: not options.selftest and "TEST_CASE" not in source[o].read_text(encoding="utf-8"))
    if options.selftest:
        sys.exit(None if found else "no object needs another one, so nothing is tested here")
    for fault in found:
        print(fault)
    if found or count == 0:
        sys.exit("test sources do not link alone: give what they share to a source without test cases" if count else "no objects to read")
    print(f"{count} objects of test sources link alone")


if __name__ == "__main__":
    main()
