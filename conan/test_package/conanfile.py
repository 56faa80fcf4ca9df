# SPDX-License-Identifier: Apache-2.0
"""Builds a consumer against the package that was just created, runs two steps of its training, and sees its wrong plan refused."""

import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout


class ShardwiseTest(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        options = self.dependencies["shardwise"].options
        components = ["core", "threads", "shardwise", "kernels"]
        for backend in ("blas", "cuda", "cudnn", "mpi", "onednn"):
            if options.get_safe(f"with_{backend}"):
                components.append(backend)
        if options.get_safe("with_cuda"):
            components.append("nccl")
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["CONSUMER_COMPONENTS"] = ";".join(components)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):
            self.run(os.path.join(self.cpp.build.bindir, "consumer"), env="conanrun")
