# SPDX-License-Identifier: Apache-2.0
"""Conan 2 recipe of the header-only library. The package has the config file of the plain CMake install, so its targets and components
are the same; an option adds the component of a backend. CUDA, NCCL, cuDNN, MPI and oneDNN come from the system, not from Conan."""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

required_conan_version = ">=2.0"

# SHARDWISE_WITH_... of CMakeLists.txt
BACKENDS = ("blas", "cuda", "cudnn", "mpi", "onednn")


class Shardwise(ConanFile):
    name = "shardwise"
    description = "Distributed tensor programs whose parallelism is checked by the compiler"
    license = "Apache-2.0"
    topics = ("tensor", "distributed", "compile-time", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {f"with_{backend}": [True, False] for backend in BACKENDS}
    default_options = {**{f"with_{backend}": False for backend in BACKENDS}, "boost/*:header_only": True}
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
        for pattern in ("LICENSE", "CMakeLists.txt", "cmake/*", "include/*"):
            copy(self, pattern, src=root, dst=self.export_sources_folder)

    def layout(self):
        cmake_layout(self, src_folder=".")

    def requirements(self):
        self.requires("boost/[>=1.74 <2]", transitive_headers=True)
        if self.options.with_blas:
            self.requires("openblas/[>=0.3.20 <1]", transitive_headers=True, transitive_libs=True)

    def validate(self):
        check_min_cppstd(self, 20)
        if self.options.with_cudnn and not self.options.with_cuda:
            raise ConanInvalidConfiguration("with_cudnn is given without with_cuda: cuDNN's convolutions and attention run on GPUs, so give both")

    def package_id(self):
        # no compiler has a part in the package, and which components it has is in its options
        self.info.settings.clear()
        self.info.requires.clear()

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for part in ("BUILD_TESTS", "BUILD_EXAMPLES", "BUILD_BENCH"):
            toolchain.cache_variables[f"SHARDWISE_{part}"] = False
        toolchain.cache_variables["SHARDWISE_INSTALL"] = True
        for backend in BACKENDS:
            toolchain.cache_variables[f"SHARDWISE_WITH_{backend.upper()}"] = bool(self.options.get_safe(f"with_{backend}"))
        toolchain.generate()

    def build(self):
        CMake(self).configure()  # finds what the options ask for, or says what is missing

    def package(self):
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        # find_package(shardwise COMPONENTS ...) reads the package's own config file
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [""]
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        if self.settings.get_safe("os") in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["pthread"]
        if self.options.with_blas:
            self.cpp_info.defines = ["SHARDWISE_WITH_BLAS=1"]  # of consumers that are not built by CMake
