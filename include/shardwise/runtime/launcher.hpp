// SPDX-License-Identifier: Apache-2.0
// launcher: who this process is among those that run one program, by its arguments or by what started it, and which of the
// meshes that a binary was built for that makes.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <shardwise/support/diagnose.hpp>
#include <shardwise/vocabulary/mesh.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

template <class... Meshes>
constexpr bool different_sizes() {
  if constexpr (sizeof...(Meshes) == 0 || !(is_mesh<Meshes> && ...)) {
    return false;
  } else {
    const int sizes[] = {Meshes::size...};
    for (unsigned i = 0; i < sizeof...(Meshes); ++i)
      for (unsigned k = 0; k < i; ++k)
        if (sizes[i] == sizes[k]) return false;
    return true;
  }
}

}  // namespace detail

// The meshes that a binary was built for, of different numbers of ranks: launch<mesh_choice<a, b>>(argc, argv, f) takes the one with
// as many ranks as there are, and the first where nothing says how many. Price: f is compiled for each.
template <class... Meshes>
struct mesh_choice {
  static constexpr bool good = detail::different_sizes<Meshes...>();
  static_assert(raise<(good ? problem::none : problem::mesh_choice_sizes), Meshes...>::ok);
};

namespace runtime {

// The variables by which a launcher tells a process who it is, in the order in which they are believed.
struct starter {
  const char *started_by, *rank, *size, *local;
};
inline constexpr starter starters[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
};

// Throws what a format of printf says. Chains of strings would cost every program, since threads launch by this header, too.
[[noreturn]] inline void refuse(const char* format, ...) {
  char text[800];
  std::va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  throw std::runtime_error(std::string("shardwise: ") + text);
}

// The first of which rank and size are set, else the first of which one of them is, else none.
inline const starter* find_starter() {
  for (const starter& l : starters)
    if (std::getenv(l.rank) && std::getenv(l.size)) return &l;
  for (const starter& l : starters)
    if (std::getenv(l.rank) || std::getenv(l.size)) return &l;
  return nullptr;
}

// A whole number from 0; -1 for any other text.
inline int whole_number(const char* text) {
  if (*text < '0' || *text > '9') return -1;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  return *end == '\0' && value <= 2147483647L ? static_cast<int>(value) : -1;
}

inline int number_in(const starter& l, const char* variable) {
  const char* const text = std::getenv(variable);
  if (!text)
    refuse("the environment variable %s is missing; start the program with %s, which sets %s, %s and %s", variable,
           l.started_by, l.rank, l.size, l.local);
  const int value = whole_number(text);
  if (value < 0) refuse("the environment variable %s is '%s'; it must be a number from 0", variable, text);
  return value;
}

// Who a process is: rank `rank` of `size`, by the word of `by`, whose names for the size and for its number among the processes of its
// host are `said` and `local_said`; that number is -1 where it is not told.
struct process_place {
  const char *by = nullptr, *said = nullptr, *local_said = "";  // null: nobody says anything, so it is alone
  int rank = 0, size = 1, local = -1;
};

inline process_place place_by(const starter& l) {
  process_place p{l.started_by, l.size, l.local, number_in(l, l.rank), number_in(l, l.size), -1};
  if (p.rank >= p.size) refuse("%s is %d; it must be below %s, which is %d", l.rank, p.rank, l.size, p.size);
  if (std::getenv(l.local)) p.local = number_in(l, l.local);
  return p;
}

// What a program's arguments say of its ranks. Others are the program's own.
struct launch_arguments {
  int ranks = -1;            // --ranks N: as many, as threads of this process
  int rank = -1, size = -1;  // --rank R --world-size N: this process is rank R of N
};

inline launch_arguments launch_arguments_of(int argc, char** argv) {
  launch_arguments a;
  const struct {
    const char* name;
    int launch_arguments::* to;
  } options[] = {
      {"--ranks", &launch_arguments::ranks}, {"--rank", &launch_arguments::rank}, {"--world-size", &launch_arguments::size}};
  for (int i = 1; i < argc; ++i)
    for (const auto& o : options) {
      const std::size_t n = std::strlen(o.name);
      if (std::strncmp(argv[i], o.name, n) != 0 || (argv[i][n] != '\0' && argv[i][n] != '=')) continue;
      const char* const text = argv[i][n] == '=' ? argv[i] + n + 1 : i + 1 < argc ? argv[i + 1] : "";
      a.*o.to = whole_number(text);
      if (a.*o.to < (o.to == &launch_arguments::rank ? 0 : 1))
        refuse("%s is given '%s'; it must be a number from %s", o.name, text, o.to == &launch_arguments::rank ? "0" : "1");
    }
  if ((a.rank < 0) != (a.size < 0)) refuse("of --rank and --world-size one is given; give both, or none");
  if (a.rank >= 0 && a.rank >= a.size) refuse("--rank is %d; it must be below --world-size, which is %d", a.rank, a.size);
  return a;
}

// By the arguments, else by the launcher that is believed first, else alone.
inline process_place place_of_process(const launch_arguments& a = {}) {
  if (a.rank >= 0) return {"the program's arguments", "--world-size", "the rank by GPUs", a.rank, a.size, -1};
  const starter* const l = find_starter();
  return l ? place_by(*l) : process_place{};
}

// "2 x 2": axes are types, whose names no program can print portably.
template <class Mesh>
std::string mesh_sizes() {
  std::string s;
  for (int n : Mesh::sizes) s += (s.empty() ? "" : " x ") + std::to_string(n);
  return s;
}

// A mesh, or a choice of them, as launch takes it; what is neither is not good, and launch<Mesh>(f) has the sentence.
template <class Mesh>
struct choice_of {
  static constexpr bool good = shardwise::detail::is_mesh<Mesh>;
  template <class F>
  static void each(F&& f) {
    f.template operator()<Mesh>();
  }
};
template <class... Meshes>
struct choice_of<mesh_choice<Meshes...>> {
  static constexpr bool good = mesh_choice<Meshes...>::good;
  template <class F>
  static void each(F&& f) {
    (f.template operator()<Meshes>(), ...);
  }
};

template <class Choice>
bool has_mesh_of(int ranks) {
  bool has = false;
  choice_of<Choice>::each([&]<class Mesh>() { has = has || Mesh::size == ranks; });
  return has;
}

// f.operator()<Mesh>() of the mesh that has `ranks` ranks, the first one for -1; `said` is where that number stands.
template <class Choice, class F>
void with_mesh(int ranks, const std::string& said, F&& f) {
  bool done = false;
  std::string built;
  choice_of<Choice>::each([&]<class Mesh>() {
    if (!done && (ranks < 0 || Mesh::size == ranks)) {
      done = true;
      f.template operator()<Mesh>();
    }
    built += (built.empty() ? "" : " or ") + std::to_string(Mesh::size) + " (" + mesh_sizes<Mesh>() + ")";
  });
  if (!done)
    throw std::runtime_error(
        "shardwise: there are " + std::to_string(ranks) + " ranks by " + said + ", and this program was built for " + built +
        "; start it with such a number, or add a mesh of " + std::to_string(ranks) + " ranks to its mesh_choice");
}

// The number of ranks that a program shall run as threads of this process, -1 where nothing says so. Throws where the process is one
// of several: each would run the whole program by itself. A job of Slurm has its variables without srun, too.
inline int threads_asked_for(const launch_arguments& a) {
  const process_place p = place_of_process(a);
  const bool is_batch = p.by == starters[3].started_by && !std::getenv("SLURM_STEP_NUM_TASKS");
  if (p.size > 1 && !is_batch)
    refuse(
        "this process is rank %d of %d by the word of %s (%s), and %s", p.rank, p.size, p.by, p.said,
        a.ranks > 0
            ? "--ranks asks for ranks that are threads of one process; start it once, or leave --ranks out where the program "
              "can launch ranks as processes"
            : "the program runs its ranks as threads of one process; start it once, or let it launch ranks as processes: "
              "launch_mpi, or launch_cuda on GPUs");
  return a.ranks;
}

}  // namespace runtime

}  // namespace shardwise::inline v0_1
