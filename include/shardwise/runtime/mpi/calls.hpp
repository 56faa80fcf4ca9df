// SPDX-License-Identifier: Apache-2.0
// calls: MPI's calls checked, the types that carry elements, and the process's own start and end of MPI.
#pragma once

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <shardwise/runtime/launcher.hpp>

namespace shardwise::inline v0_1::mpi {

inline std::string error_text(int code) {
  char text[MPI_MAX_ERROR_STRING + 1]{};
  int n = 0;
  MPI_Error_string(code, text, &n);
  return text;
}
inline void check(int code, const char* call) {
  if (code != MPI_SUCCESS) throw std::runtime_error(std::string("shardwise: ") + call + ": " + error_text(code));
}

// Elements travel as words of their size, whatever they mean.
template <std::size_t Bytes>
MPI_Datatype word() {
  static_assert(Bytes == 1 || Bytes == 2 || Bytes == 4 || Bytes == 8);
  if constexpr (Bytes == 1) return MPI_UINT8_T;
  else if constexpr (Bytes == 2) return MPI_UINT16_T;
  else if constexpr (Bytes == 4) return MPI_UINT32_T;
  else return MPI_UINT64_T;
}

// Whether MPI itself can add elements of T; it has none of two bytes.
template <class T>
inline constexpr bool has_number = std::is_same_v<T, float> || std::is_same_v<T, double> ||
                                   std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t>;
template <class T>
MPI_Datatype number() {
  static_assert(has_number<T>);
  if constexpr (std::is_same_v<T, float>) return MPI_FLOAT;
  else if constexpr (std::is_same_v<T, double>) return MPI_DOUBLE;
  else if constexpr (std::is_same_v<T, std::int32_t>) return MPI_INT32_T;
  else return MPI_INT64_T;
}

// MPI counts elements in an int.
inline int count(std::int64_t n) {
  if (n > 2147483647)
    throw std::length_error("shardwise: a collective of " + std::to_string(n) +
                            " elements is given to MPI, which counts to 2147483647; split the tensor over more ranks, or "
                            "redistribute it in parts");
  return static_cast<int>(n);
}

// Of this process: whether a launch has failed. MPI has no way back from that: what is under way can neither be finished nor taken
// back, so nothing more is launched, and MPI is not finalized.
inline std::atomic<bool>& broken() {
  static std::atomic<bool> is{false};
  return is;
}

// Who launches, and which other threads of a rank call MPI: for errors.
struct launched_by {
  const char* name = "launch_mpi";
  const char* threads = "a rank's communication stream is another one";
};
inline constexpr launched_by by_launch_mpi{};
inline constexpr launched_by by_launch_cuda_mpi{
    "launch_cuda_mpi", "the one that watches over a rank's device and those of its host functions are others"};

// MPI is started at the first launch, unless the program has, and finalized when the process exits, if no launch has failed. Ranks'
// own threads and their streams call it one at a time.
inline void start(const launched_by& by = by_launch_mpi) {
  const std::string from = std::string("shardwise: ") + by.name + ": ";
  int started = 0, finished = 0, level = MPI_THREAD_SINGLE;
  MPI_Finalized(&finished);
  if (finished || broken())
    throw std::logic_error(from + (finished
                                       ? "MPI has been finalized, and cannot be started again; launch before"
                                       : "an earlier launch has failed, after which MPI has no way back; end the process"));
  MPI_Initialized(&started);
  if (started) {
    MPI_Query_thread(&level);
  } else {
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // an error is an exception, of requests, too
    std::atexit([] {
      int over = 0;
      MPI_Finalized(&over);
      if (!over && !broken()) MPI_Finalize();
    });
  }
  if (level < MPI_THREAD_SERIALIZED)
    throw std::runtime_error(from +
                             (started
                                  ? "the program has initialised MPI for one thread, and "
                                  : "this MPI serves one thread of a process alone (below MPI_THREAD_SERIALIZED), and ") +
                             by.threads +
                             (started ? "; call MPI_Init_thread with MPI_THREAD_SERIALIZED or more"
                                      : "; use an MPI that was built with threads"));
}

}  // namespace shardwise::inline v0_1::mpi
