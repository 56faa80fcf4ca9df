# SPDX-License-Identifier: Apache-2.0
"""Conan 2 recipe of the header-only library; CUDA, NCCL and MPI come from the system, not from Conan."""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import cmake_layout
from conan.tools.files import copy, load

required_conan_version = ">=2.0"


class Shardwise(ConanFile):
    name = "shardwise"
    description = "Distributed tensor programs whose parallelism is checked by the compiler"
    license = "Apache-2.0"
    topics = ("tensor", "distributed", "compile-time", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"with_blas": [True, False]}
    default_options = {"with_blas": False, "boost/*:header_only": True}
    no_copy_source = True

    def set_version(self):
        # beside the recipe where the cache has exported it, in the tree else
        header = os.path.join("include", "shardwise", "support", "config.hpp")
        roots = (self.recipe_folder, os.path.dirname(self.recipe_folder))
        text = load(self, next(p for p in (os.path.join(root, header) for root in roots) if os.path.exists(p)))
        self.version = ".".join(re.search(rf"^#define SHARDWISE_VERSION_{part} (\d+)$", text, re.M).group(1)
                                for part in ("MAJOR", "MINOR", "PATCH"))

    def export(self):
        copy(self, "include/shardwise/support/config.hpp", src=os.path.dirname(self.recipe_folder), dst=self.export_folder)

    def export_sources(self):
        root = os.path.dirname(self.recipe_folder)
        for pattern in ("LICENSE", "include/*"):
            copy(self, pattern, src=root, dst=self.export_sources_folder)

    def layout(self):
        cmake_layout(self, src_folder=".")

    def requirements(self):
        self.requires("boost/[>=1.74 <2]", transitive_headers=True)
        if self.options.with_blas:
            self.requires("openblas/[>=0.3.20 <1]", transitive_headers=True, transitive_libs=True)

    def validate(self):
        check_min_cppstd(self, 20)

    def package_id(self):
        self.info.clear()

    def package(self):
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))
        copy(self, "*", src=os.path.join(self.source_folder, "include"), dst=os.path.join(self.package_folder, "include"))

    def package_info(self):
        # One component, since Conan resolves a system Boost only for a package as a whole; the other targets of the
        # plain CMake install are aliases of it.
        aliases = ["shardwise::core", "shardwise::threads"]
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.requires = ["boost::headers"]
        if self.options.with_blas:
            aliases.append("shardwise::blas")
            self.cpp_info.requires.append("openblas::openblas")
            self.cpp_info.defines = ["SHARDWISE_WITH_BLAS=1"]
        if self.settings.get_safe("os") in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["pthread"]
        self.cpp_info.set_property("cmake_file_name", "shardwise")
        self.cpp_info.set_property("cmake_target_name", "shardwise::shardwise")
        self.cpp_info.set_property("cmake_target_aliases", aliases)
