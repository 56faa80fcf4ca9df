#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries the library as a newcomer does on a Debian that has nothing: in a root made by debootstrap, by the commands of README.md and
docs/getting-started.md, each way in a fresh copy. Needs root's rights, debootstrap, and a mirror of Debian.

    test/minimal_root.py DIRECTORY                    all ways; prints a table of commands and minutes
    test/minimal_root.py DIRECTORY --only conan ...   these alone; `test` runs ./quickstart test, half an hour

Every way but `train` and `test` builds examples/03_plan.cpp, which must train, and the same with a wrong plan, which must be refused by
the sentence that README.md shows. A command is a line that a user types; those that install Debian's packages, clone and build the
project count, what is written into files does not.
"""

import argparse
import pathlib
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SENTENCE = "colwise: the input must be replicate or reduced on the style's axis"
TRAINED = "loss"
RIGHT, WRONG = 'sw::at<"net2", sw::rowwise<tp>>', 'sw::at<"net2", sw::colwise<tp>>'
GET = "apt-get install -y --no-install-recommends git ca-certificates "
CLONE = "git clone -q /srv/shardwise.git shardwise"
PROJECT = "cmake_minimum_required(VERSION 3.25)\nproject(mine LANGUAGES CXX)\n{find}\nadd_executable(mine main.cpp)\ntarget_link_libraries(mine PRIVATE shardwise::shardwise)\n"
PACKAGE = PROJECT.format(find="find_package(shardwise 0.1 CONFIG REQUIRED)")
INSTALL = ["cmake -S shardwise -B build -DSHARDWISE_BUILD_TESTS=OFF -DSHARDWISE_BUILD_EXAMPLES=OFF", "cmake --install build --prefix /root/prefix"]
TOOLS = GET + "g++ cmake make"
CONANFILE = "[requires]\nshardwise/0.1.0\n[generators]\nCMakeDeps\nCMakeToolchain\n"

# --only's name: (its title, CMakeLists.txt or nothing, commands before the build, the build, the program)
WAYS = {
    "train": ("`./quickstart train`", "", [GET, CLONE, "cd shardwise && ./quickstart train"], "", ""),
    "include": ("`-I` alone", "", [GET + "g++", CLONE], "g++ -std=c++20 -Ishardwise/include mine/main.cpp -pthread -o program", "./program"),
    "subdirectory": ("`add_subdirectory`", PROJECT.format(find="add_subdirectory(../shardwise shardwise)"), [TOOLS, CLONE, "cmake -S mine -B mine/build"],
                           "cmake --build mine/build", "mine/build/mine"),
    "fetch": ("FetchContent", PROJECT.format(find="include(FetchContent)\nFetchContent_Declare(shardwise GIT_REPOSITORY /srv/shardwise.git GIT_TAG HEAD)\nFetchContent_MakeAvailable(shardwise)"),
                     [TOOLS, "cmake -S mine -B mine/build"], "cmake --build mine/build", "mine/build/mine"),
    "installed": ("installed, `find_package`", PACKAGE, [TOOLS, CLONE, *INSTALL, "cmake -S mine -B mine/build -DCMAKE_PREFIX_PATH=/root/prefix"],
                                  "cmake --build mine/build", "mine/build/mine"),
    "pkg-config": ("installed, pkg-config", "", [TOOLS + " pkg-config", CLONE, *INSTALL],
                              "PKG_CONFIG_PATH=/root/prefix/share/pkgconfig; export PKG_CONFIG_PATH; g++ -std=c++20 mine/main.cpp $(pkg-config --cflags --libs shardwise) -o program", "./program"),
    "conan": ("Conan 2", PACKAGE, [TOOLS + " python3-venv libboost1.81-dev", CLONE, "python3 -m venv venv && . venv/bin/activate && pip install -q 'conan>=2.9,<3' && conan profile detect",
                          "venv/bin/conan create shardwise/conan -s compiler.cppstd=20 --no-remote -pr:a default -pr:a shardwise/conan/profiles/system",
                          "venv/bin/conan install mine -s compiler.cppstd=20 --no-remote -pr:a default -pr:a shardwise/conan/profiles/system -of mine/build",
                          "cmake -S mine -B mine/build -DCMAKE_TOOLCHAIN_FILE=/root/mine/build/conan_toolchain.cmake -DCMAKE_BUILD_TYPE=Release"],
                "cmake --build mine/build", "mine/build/mine"),
    "test": ("`./quickstart test`", "", [GET, CLONE, "cd shardwise && ./quickstart test"], "", ""),
}


class Root:
    """A copy of the base root, into which commands are typed."""

    def __init__(self, base, path, carried):
        self.path = path
        if path.exists():
            shutil.rmtree(path)
        subprocess.run(["cp", "-a", str(base), str(path)], check=True)
        for file in ("/etc/resolv.conf", "/etc/hosts"):  # without a line for this host each launch of MPI waits seconds for its name
            shutil.copy(file, path / "etc")
        for file in carried:
            (path / file.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, path / file.lstrip("/"))
        subprocess.run(["git", "clone", "-q", "--bare", str(ROOT), str(path / "srv/shardwise.git")], check=True)
        self.log = (path.parent / f"{path.name}.log").open("w", encoding="utf-8")

    def __enter__(self):
        subprocess.run(["mount", "-t", "proc", "proc", str(self.path / "proc")], check=True)
        subprocess.run(["mount", "--rbind", "/dev", str(self.path / "dev")], check=True)
        return self

    def __exit__(self, *failure):
        subprocess.run(["umount", "-R", "-l", str(self.path / "dev")], check=True)
        subprocess.run(["umount", str(self.path / "proc")], check=True)
        self.log.close()

    def type(self, command):
        """(status, what it printed)"""
        line = ["chroot", str(self.path), "/usr/bin/env", "-i", "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "DEBIAN_FRONTEND=noninteractive",
                "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "bash", "-c", "cd && " + command]
        done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        text = done.stdout.decode("utf-8", errors="replace")
        self.log.write(f"$ {command}\n{text}\n")
        self.log.flush()
        return done.returncode, text


def must(done, command, wants=""):
    status, text = done
    if status != 0 or wants not in text:
        raise SystemExit(f"minimal root: {command}: status {status}{f', without {wants!r}' if wants else ''}\n{text[-3000:]}")
    return text


def attempt(root, project, before, build, program):
    """(commands, seconds)"""
    source = (ROOT / "examples/03_plan.cpp").read_text(encoding="utf-8")
    if RIGHT not in source:
        raise SystemExit(f"minimal root: examples/03_plan.cpp has no {RIGHT}")
    mine = root.path / "root/mine"
    mine.mkdir(parents=True)
    (mine / "main.cpp").write_text(source, encoding="utf-8")
    (mine / "conanfile.txt").write_text(CONANFILE, encoding="utf-8")
    if project:
        (mine / "CMakeLists.txt").write_text(project, encoding="utf-8")
    began, commands = time.monotonic(), ["apt-get update", *before, *([build, program] if build else [])]
    for command in commands:
        must(root.type(command), command, TRAINED if command == program else "")
    seconds = time.monotonic() - began
    if build:
        (mine / "main.cpp").write_text(source.replace(RIGHT, WRONG), encoding="utf-8")
        status, text = root.type(build)
        if status == 0 or SENTENCE not in " ".join(text.split()):
            raise SystemExit(f"minimal root: {build}: of a wrong plan status {status}\n{text[-3000:]}")
    return len(commands), seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", choices=WAYS, default=[way for way in WAYS if way != "test"])
    parser.add_argument("--suite", default="bookworm")
    parser.add_argument("--mirror", default="http://deb.debian.org/debian")
    parser.add_argument("--carry", nargs="*", default=[], metavar="FILE", help="files of this machine that its network asks for, such as certificates")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("minimal root: ended"))  # what is mounted is unmounted
    base = options.directory.resolve() / "base"
    if not base.exists():
        if not shutil.which("debootstrap"):
            raise SystemExit("minimal root: debootstrap is not installed; install Debian's package debootstrap")
        base.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["debootstrap", "--variant=minbase", options.suite, str(base), options.mirror], check=True, stdout=subprocess.DEVNULL)
    rows = []
    for short in options.only:
        title, *way = WAYS[short]
        path = base.parent / short
        with Root(base, path, options.carry) as root:
            commands, seconds = attempt(root, *way)
        shutil.rmtree(path)
        rows.append(f"| {title} | {commands} | {seconds / 60:.1f} |")
        print(rows[-1], flush=True)
    print("\n| way | commands | minutes |\n|---|---|---|\n" + "\n".join(rows))


if __name__ == "__main__":
    sys.exit(main())
