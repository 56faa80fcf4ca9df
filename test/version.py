#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that support/config.hpp alone types the version, and that the newest entry of CHANGELOG.md is of it.

  version.py [--project VERSION]    VERSION: what CMake has read of the header
  version.py --selftest             a file that types the version is found
"""

import argparse
import pathlib
import re
import sys
import tempfile

HEADER = "include/shardwise/support/config.hpp"
# what is built, packaged or told to users; CHANGELOG.md has a heading for each version
PLACES = ["CMakeLists.txt", "CMakePresets.json", "README.md", "quickstart", "cmake", "conan", "docs", "include", "test/install"]


def version_of(root):
    text = (root / HEADER).read_text()
    return ".".join(re.search(rf"^#define SHARDWISE_VERSION_{part} (\d+)$", text, re.M).group(1) for part in ("MAJOR", "MINOR", "PATCH"))


def mistakes(root, project):
    version = version_of(root)
    found = []
    if project and project != version:
        found.append(f"CMakeLists.txt has read {project} of {HEADER}, which says {version}")
    typed = re.compile(rf"(?<![\d.]){re.escape(version)}(?![\d.]*\d)")
    for place in PLACES:
        paths = sorted((root / place).rglob("*")) if (root / place).is_dir() else [root / place]
        for path in paths:
            if not path.is_file() or path.suffix not in ("", ".txt", ".json", ".md", ".py", ".sh", ".cmake", ".in", ".hpp", ".cuh", ".cpp"):
                continue
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                if typed.search(line):
                    found.append(f"{path.relative_to(root)}:{number}: types the version {version}; read it of {HEADER}")
    heading = re.search(r"^## \[([\d.]+)\]", (root / "CHANGELOG.md").read_text(), re.M)
    if not heading or heading.group(1) != version:
        found.append(f"CHANGELOG.md: the newest version is {heading and heading.group(1)}, {HEADER} says {version}")
    return found


def selftest():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / HEADER).parent.mkdir(parents=True)
        (root / HEADER).write_text("#define SHARDWISE_VERSION_MAJOR 3\n#define SHARDWISE_VERSION_MINOR 14\n#define SHARDWISE_VERSION_PATCH 1\n")
        (root / "CHANGELOG.md").write_text("## [3.14.1] - unreleased\n")
        (root / "CMakeLists.txt").write_text("other 13.14.1 3.14.15\n")
        assert mistakes(root, "3.14.1") == [], mistakes(root, "3.14.1")
        assert len(mistakes(root, "3.14.0")) == 1
        (root / "CMakeLists.txt").write_text("project(x VERSION 3.14.1)\n")
        assert len(mistakes(root, None)) == 1
        (root / "CHANGELOG.md").write_text("## [3.14.0] - 2000-01-01\n")
        assert len(mistakes(root, None)) == 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--project")
    parser.add_argument("--selftest", action="store_true")
    arguments = parser.parse_args()
    if arguments.selftest:
        return selftest()
    found = mistakes(pathlib.Path(__file__).resolve().parent.parent, arguments.project)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
