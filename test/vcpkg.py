#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the vcpkg port in vcpkg/ports against vcpkg's rules for ports (learn.microsoft.com/vcpkg: maintainer guide, vcpkg.json
reference, usage files, what is checked after a build), where vcpkg itself cannot be had.

  vcpkg.py                     the manifest, the portfile and the usage file
  vcpkg.py --install FOLDER    runs the portfile with every feature that this machine has, looks at what it has installed, and builds a
                               consumer as the usage file says
  vcpkg.py --selftest          a port that breaks a rule is found
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = "include/shardwise/support/config.hpp"
PORT = "vcpkg/ports/shardwise"
# in the order in which `vcpkg format-manifest` writes them
FIELDS = ["name", "version", "port-version", "maintainers", "description", "homepage", "documentation", "license", "supports",
          "dependencies", "default-features", "features"]
# what a portfile calls, and the port that it comes from
HELPERS = {"vcpkg_cmake_configure": "vcpkg-cmake", "vcpkg_cmake_install": "vcpkg-cmake", "vcpkg_cmake_config_fixup": "vcpkg-cmake-config"}
OF_VCPKG = {"vcpkg_check_features", "vcpkg_fixup_pkgconfig", "vcpkg_install_copyright"}
OF_CMAKE = {"get_filename_component", "set", "file"}
# features that need no option of the build, and why
PLAIN = {"hana": "the target is always installed; the feature brings Boost.Hana"}


def version_of(root):
    text = (root / HEADER).read_text()
    return ".".join(re.search(rf"^#define SHARDWISE_VERSION_{part} (\d+)$", text, re.M).group(1) for part in ("MAJOR", "MINOR", "PATCH"))


def name_of(dependency):
    return dependency if isinstance(dependency, str) else dependency["name"]


def mistakes(root):
    found = []
    port = root / PORT
    missing = [name for name in ("vcpkg.json", "portfile.cmake", "usage") if not (port / name).is_file()]
    if missing:
        return [f"{PORT} has no {', '.join(missing)}"]
    text = (port / "vcpkg.json").read_text()
    try:
        manifest = json.loads(text)
    except json.JSONDecodeError as error:
        return [f"vcpkg.json is not strict JSON: {error}"]
    if text != json.dumps(manifest, indent=2) + "\n":
        found.append("vcpkg.json is not written as `vcpkg format-manifest` writes it: two spaces, a line for each value")
    unknown = [field for field in manifest if field not in FIELDS]
    if unknown:
        found.append(f"vcpkg.json: no field is named {', '.join(unknown)}")
    if [field for field in FIELDS if field in manifest] != [field for field in manifest if field in FIELDS]:
        found.append("vcpkg.json: its fields are in another order than `vcpkg format-manifest` writes: " + ", ".join(FIELDS))
    for field in ("name", "version", "description", "license", "dependencies"):
        if not manifest.get(field):
            found.append(f"vcpkg.json has no {field}")
    if found:
        return found
    identifier = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
    features = manifest.get("features", {})
    for name in [manifest["name"], *features, *map(name_of, manifest["dependencies"])]:
        if not identifier.fullmatch(name):
            found.append(f"vcpkg.json: '{name}' is no name: lower-case letters, digits and single hyphens")
    if manifest["name"] != port.name:
        found.append(f"vcpkg.json: the port is named {manifest['name']}, and its folder {port.name}")
    if manifest["version"] != version_of(root):
        found.append(f"vcpkg.json says version {manifest['version']}, and {HEADER} {version_of(root)}")
    if not (root / "LICENSE").read_text().lstrip().startswith("Apache License") or manifest["license"] != "Apache-2.0":
        found.append("vcpkg.json: the license is not that of LICENSE")
    lists = {"the port": manifest["dependencies"], **{f"feature {name}": f.get("dependencies", []) for name, f in features.items()}}
    for of, dependencies in lists.items():
        names = [name_of(d) for d in dependencies]
        if names != sorted(names) or len(names) != len(set(names)):
            found.append(f"vcpkg.json: the dependencies of {of} are not in alphabetical order, or one is there twice")
    if list(features) != sorted(features):
        found.append("vcpkg.json: the features are not in alphabetical order")
    for name, feature in features.items():
        if not feature.get("description"):
            found.append(f"vcpkg.json: feature {name} has no description")

    portfile = (port / "portfile.cmake").read_text()
    code = re.sub(r"#[^\n]*", "", portfile)
    calls = set(re.findall(r"^([A-Za-z_]\w*)\(", code, re.M))
    hosts = {d["name"] for d in manifest["dependencies"] if isinstance(d, dict) and d.get("host")}
    for call in sorted(calls - OF_CMAKE - OF_VCPKG - set(HELPERS)):
        found.append(f"portfile.cmake calls {call}, which vcpkg deprecates or does not have")
    asked = {HELPERS[call] for call in calls if call in HELPERS}
    if asked != hosts:
        found.append(f"vcpkg.json: host dependencies are {sorted(hosts)}, and portfile.cmake calls functions of {sorted(asked)}")
    if "vcpkg_install_copyright" not in calls:
        found.append("portfile.cmake installs no copyright: call vcpkg_install_copyright")
    if not re.search(r'file\(INSTALL "\$\{CMAKE_CURRENT_LIST_DIR\}/usage" DESTINATION "\$\{CURRENT_PACKAGES_DIR\}/share/\$\{PORT\}"\)', code):
        found.append("portfile.cmake does not install the usage file into share/${PORT}")
    block = re.search(r"FEATURES\s+((?:[a-z0-9-]+\s+\w+\s+)*)\)", code)
    pairs = dict(re.findall(r"([a-z0-9-]+)\s+(\w+)", block.group(1))) if block else {}
    options = set(re.findall(r"^option\((\w+)", (root / "CMakeLists.txt").read_text(), re.M))
    for name in sorted(set(features) - set(pairs) - set(PLAIN)):
        found.append(f"vcpkg.json: feature {name} sets no option in portfile.cmake")
    for name, option in pairs.items():
        if name not in features:
            found.append(f"portfile.cmake: {option} is set by feature {name}, which vcpkg.json does not have")
        if option not in options:
            found.append(f"portfile.cmake sets {option}, which is no option of CMakeLists.txt")
    for option in re.findall(r"-D(\w+)=", code):
        if option not in options:
            found.append(f"portfile.cmake sets {option}, which is no option of CMakeLists.txt")

    usage = (port / "usage").read_text()
    if not usage.startswith(f"{manifest['name']} provides CMake targets:\n\n") or f"find_package({manifest['name']} CONFIG REQUIRED)" not in usage:
        found.append(f"usage does not begin as vcpkg's pattern does: {manifest['name']} provides CMake targets:, an empty line, find_package(...)")
    made = set(re.findall(r"shardwise_add_component\((\w+)", (root / "CMakeLists.txt").read_text()))
    for target in re.findall(r"shardwise::(\w+)", usage):
        if target not in made:
            found.append(f"usage names shardwise::{target}, which is no target of the package")
    for name in features:
        if f"shardwise::{name}" not in usage:
            found.append(f"usage does not name shardwise::{name}, the target of feature {name}")
    return found


def after_install(packages, forbidden):
    """What vcpkg looks at after a build."""
    found = []
    share = packages / "share" / "shardwise"
    for path in ("include", "share/shardwise/copyright", "share/shardwise/usage", "share/shardwise/shardwise-config.cmake",
                 "share/pkgconfig/shardwise.pc"):
        if not (packages / path).exists():
            found.append(f"{path} is not installed")
    for path in ("debug", "bin", "lib", "lib/cmake", "include/lib"):
        if (packages / path).exists():
            found.append(f"{path} is installed, and the port has headers alone")
    for path in packages.rglob("*"):
        if path.is_dir() and not any(path.iterdir()):
            found.append(f"{path.relative_to(packages)} is an empty folder")
        if path.is_file() and path.suffix in (".cmake", ".pc", ""):
            text = path.read_text(errors="replace")
            for place in forbidden:
                if str(place) in text:
                    found.append(f"{path.relative_to(packages)} names {place}: packages are moved")
    if not share.is_dir():
        found.append("share/shardwise is not there")
    return found


def install(folder, cmake, compiler):
    work = pathlib.Path(folder).resolve()
    features = [name for name, there in (("mpi", shutil.which("mpicxx")), ("blas", pathlib.Path("/usr/include/x86_64-linux-gnu/cblas.h").exists()),
                                         ("hana", pathlib.Path("/usr/include/boost/hana.hpp").exists())) if there]
    packages = work / "packages"
    subprocess.run([cmake, f"-DPORTFILE={ROOT / PORT / 'portfile.cmake'}", f"-DFEATURES={';'.join(features)}", f"-DPACKAGES={packages}",
                    f"-DBUILD={work / 'build'}", f"-DCXX={compiler}", "-P", ROOT / "test/vcpkg/functions.cmake"], check=True)
    found = after_install(packages, [ROOT, packages, work / "build"])
    if found:
        return found
    moved = work / "moved"
    shutil.rmtree(moved, ignore_errors=True)
    packages.rename(moved)
    consumer = work / "consumer"
    shutil.rmtree(consumer, ignore_errors=True)
    targets = ";".join(["shardwise::shardwise", *(f"shardwise::{name}" for name in features)])
    subprocess.run([cmake, "-G", "Ninja", "-S", ROOT / "test/vcpkg", "-B", consumer, f"-DCMAKE_PREFIX_PATH={moved}", f"-DCMAKE_CXX_COMPILER={compiler}",
                    f"-DCONSUMER_TARGETS={targets}"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([cmake, "--build", consumer], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([consumer / "consumer"], check=True)
    print(f"installed with features {', '.join(features) or 'none'}, and a consumer trains two steps")
    return []


def selftest():
    broken = [
        ("vcpkg.json", '"version": "', '"version": "9', "says version"),
        ("vcpkg.json", '"name": "shardwise"', '"name": "Shardwise"', "is no name"),
        ("vcpkg.json", '"license": "Apache-2.0",', '"license": "MIT",', "license is not that"),
        ("vcpkg.json", '"mpi": {', '"a-mpi": {', "in alphabetical order"),
        ("vcpkg.json", '"name": "vcpkg-cmake-config"', '"name": "zlib"', "host dependencies are"),
        ("vcpkg.json", '  "description"', '    "description"', "not written as"),
        ("portfile.cmake", "vcpkg_install_copyright(", "vcpkg_copy_pdbs() #", "installs no copyright"),
        ("portfile.cmake", "vcpkg_cmake_install()", "vcpkg_install_cmake()", "calls vcpkg_install_cmake"),
        ("portfile.cmake", "        mpi  SHARDWISE_WITH_MPI\n", "", "feature mpi sets no option"),
        ("portfile.cmake", "SHARDWISE_BUILD_BENCH", "SHARDWISE_BUILD_BENCHES", "is no option of CMakeLists.txt"),
        ("portfile.cmake", 'LIST_DIR}/usage"', 'LIST_DIR}/README"', "does not install the usage file"),
        ("usage", "shardwise::mpi", "shardwise::openmpi", "which is no target"),
    ]
    failed = 0
    for name, old, new, sentence in broken:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path in (HEADER, "LICENSE", "CMakeLists.txt", *(f"{PORT}/{file}" for file in ("vcpkg.json", "portfile.cmake", "usage"))):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / path, root / path)
            path = root / PORT / name
            text = path.read_text()
            assert old in text, f"{name} has no {old}"
            path.write_text(text.replace(old, new, 1))
            if not any(sentence in line for line in mistakes(root)):
                print(f"not found: {name} with {new!r} for {old!r}: {mistakes(root)}")
                failed += 1
    print(f"{len(broken) - failed} of {len(broken)} broken ports found")
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--install", metavar="FOLDER")
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--selftest", action="store_true")
    args = parser.parse_args()
    if args.selftest:
        sys.exit(1 if selftest() else 0)
    found = install(args.install, args.cmake, args.compiler) if args.install else mistakes(ROOT)
    for line in found:
        print(line)
    sys.exit(1 if found else 0)


main()
