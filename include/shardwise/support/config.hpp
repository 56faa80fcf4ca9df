// SPDX-License-Identifier: Apache-2.0
// The only file that asks which compiler and language level is at work.
#pragma once

#if defined(__cplusplus) && __cplusplus < 202002L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 202002L)
#error "shardwise needs C++20: compile with -std=c++20 (CMake: target_compile_features(... cxx_std_20))"
#endif
#if defined(_MSC_VER) && !defined(__clang__)
#error "shardwise needs g++ 12, clang 16 or nvcc with one of them: MSVC is not supported"
#endif
#if !defined(__cpp_exceptions) && !defined(_MSC_VER)
#error "shardwise needs exceptions, by which it reports what only a run can show: compile without -fno-exceptions"
#endif

// The version: typed here and nowhere else. CMakeLists.txt and conan/conanfile.py read these three lines, test/version.py checks it.
#define SHARDWISE_VERSION_MAJOR 0
#define SHARDWISE_VERSION_MINOR 1
#define SHARDWISE_VERSION_PATCH 0
// The three as a text, "MAJOR.MINOR.PATCH", and as a number that #if compares: 1000 for each minor version, 1000000 for each major one.
#define SHARDWISE_TEXT_OF_3(major, minor, patch) #major "." #minor "." #patch
#define SHARDWISE_TEXT_OF_VERSION(major, minor, patch) SHARDWISE_TEXT_OF_3(major, minor, patch)
#define SHARDWISE_VERSION \
  SHARDWISE_TEXT_OF_VERSION(SHARDWISE_VERSION_MAJOR, SHARDWISE_VERSION_MINOR, SHARDWISE_VERSION_PATCH)
#define SHARDWISE_VERSION_NUMBER \
  (SHARDWISE_VERSION_MAJOR * 1000000 + SHARDWISE_VERSION_MINOR * 1000 + SHARDWISE_VERSION_PATCH)
// The inline namespace that everything lies in, so that two versions in one program do not meet. g++ and nvcc print it, clang
// does not. test/namespaces.py writes it here and into every header.
#define SHARDWISE_VERSION_NAMESPACE "v0_1"

// nvcc reads a file once for the host and once for the device. What the host pass has checked and computed need not be
// evaluated again where no kernel depends on it: for a train step of 48 layers that is most of the device pass.
#if defined(__CUDA_ARCH__)
#define SHARDWISE_DEVICE_PASS 1
#else
#define SHARDWISE_DEVICE_PASS 0
#endif

// nvcc's front end does not know these pragmas; g++ and clang use them.
#if defined(__CUDACC__)
#define SHARDWISE_IVDEP
#elif defined(__clang__)
#define SHARDWISE_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define SHARDWISE_IVDEP _Pragma("GCC ivdep")
#else
#define SHARDWISE_IVDEP
#endif

// Between the two, clang fuses no product with a sum, by which results would depend on what instruction set runs them. g++ takes
// that from the loops of runtime/host/isa.hpp. Around whole headers, outside all namespaces.
#if defined(__clang__) && defined(__x86_64__) && !defined(__CUDACC__)
#define SHARDWISE_UNFUSED_BEGIN _Pragma("float_control(push)") _Pragma("clang fp contract(off)")
#define SHARDWISE_UNFUSED_END _Pragma("float_control(pop)")
#else
#define SHARDWISE_UNFUSED_BEGIN
#define SHARDWISE_UNFUSED_END
#endif

// A checked build looks for mistakes of the program while it runs, and ends where there is no other way to tell: a pending
// tensor that nobody waits for. By default as assert: on unless NDEBUG is defined.
#if !defined(SHARDWISE_CHECKED)
#if defined(NDEBUG)
#define SHARDWISE_CHECKED 0
#else
#define SHARDWISE_CHECKED 1
#endif
#endif

// 1: every compiled program writes what it is and costs, as Markdown and as an HTML page, when its first executor is made
// (io/explanation/programs.hpp, which the umbrella headers then include; else nothing of it is compiled).
#if !defined(SHARDWISE_EXPLAIN)
#define SHARDWISE_EXPLAIN 0
#endif

// Code that options alter has the option in its name, so that objects compiled with different ones go together in one program:
// an inline namespace, which users do not write. A rank's type is in that of the options, and so differs in name all that is
// made for it: eager tensors, executors, the calls of both. A program that hands such a thing from one object to another of
// other options does not link. The other macros of this file follow from the compiler, its language level or its pass alone.
#if SHARDWISE_EXPLAIN && SHARDWISE_CHECKED && defined(SHARDWISE_WITH_BLAS)
#define SHARDWISE_RANK_BUILD explaining_checked_with_blas
#elif SHARDWISE_EXPLAIN && SHARDWISE_CHECKED
#define SHARDWISE_RANK_BUILD explaining_checked
#elif SHARDWISE_EXPLAIN && defined(SHARDWISE_WITH_BLAS)
#define SHARDWISE_RANK_BUILD explaining_unchecked_with_blas
#elif SHARDWISE_EXPLAIN
#define SHARDWISE_RANK_BUILD explaining_unchecked
#elif SHARDWISE_CHECKED && defined(SHARDWISE_WITH_BLAS)
#define SHARDWISE_RANK_BUILD checked_with_blas
#elif SHARDWISE_CHECKED
#define SHARDWISE_RANK_BUILD checked
#elif defined(SHARDWISE_WITH_BLAS)
#define SHARDWISE_RANK_BUILD unchecked_with_blas
#else
#define SHARDWISE_RANK_BUILD unchecked
#endif

// The kernels of the host, with their tables. They are hidden, so that a shared object runs its own and exports none: each one
// that has kernels compiled apart (SHARDWISE_EXTERN_KERNELS) links them itself. nvcc's choose no instruction set at run time.
#define SHARDWISE_HIDDEN __attribute__((visibility("hidden")))
#define SHARDWISE_VISIBLE __attribute__((visibility("default")))
#if defined(__CUDACC__) && !defined(SHARDWISE_EXTERN_KERNELS) && defined(SHARDWISE_WITH_BLAS)
#define SHARDWISE_HOST_BUILD with_blas_by_nvcc SHARDWISE_HIDDEN
#elif defined(__CUDACC__) && !defined(SHARDWISE_EXTERN_KERNELS)
#define SHARDWISE_HOST_BUILD built_in_by_nvcc SHARDWISE_HIDDEN
#elif defined(SHARDWISE_WITH_BLAS)
#define SHARDWISE_HOST_BUILD with_blas SHARDWISE_HIDDEN
#else
#define SHARDWISE_HOST_BUILD built_in SHARDWISE_HIDDEN
#endif

// Those of devices, which no option alters.
#define SHARDWISE_DEVICE_BUILD launched SHARDWISE_HIDDEN

// Nodes that a pass handles in one constant, see graph/stage.hpp. clang allows a million evaluation steps per constant.
// g++ and nvcc's front end manage more than twice 4000 nodes of a GPT, and every further constant costs them its size.
#if defined(__clang__)
#define SHARDWISE_STAGE_NODES 2000
#else
#define SHARDWISE_STAGE_NODES 4000
#endif

// Whether a static_assert takes a text that is computed (C++26, since g++ 14 and clang 17): an error then says the values
// themselves.
#if defined(__cpp_static_assert) && __cpp_static_assert >= 202306L
#define SHARDWISE_COMPUTED_MESSAGES 1
#else
#define SHARDWISE_COMPUTED_MESSAGES 0
#endif
