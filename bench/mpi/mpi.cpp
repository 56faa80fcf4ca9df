// SPDX-License-Identifier: Apache-2.0
// What collectives and a training step cost on two ranks as processes under MPI, beside two threads and MPI's own call, and on four ranks as
// two processes of two threads, turn by turn.
//   mpirun -n 2 bench_mpi_mpi [--rounds N]
#include <shardwise/shardwise.hpp>
#include <shardwise/runtime/mpi/hybrid.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <time.h>
#include <vector>

#include <train_text/model.hpp>

namespace {

namespace sw = shardwise;
namespace tt = train_text;

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}
double microseconds() { return static_cast<double>(sw::runtime::now()) / 1000; }
int process() {
  sw::mpi::start();
  int r = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &r);
  return r;
}
// f() in the first process, while the others sleep.
template <class F>
void alone(const F& f) {
  if (process() == 0) f();
  MPI_Request r;
  MPI_Ibarrier(MPI_COMM_WORLD, &r);
  for (int done = 0; !done;) {
    MPI_Test(&r, &done, MPI_STATUS_IGNORE);
    const timespec t{0, 1'000'000};
    if (!done) nanosleep(&t, nullptr);
  }
}

struct pair : sw::axis<2> {};
struct inner : sw::axis<2> {};
using line = sw::mesh<pair>;
using grid = sw::mesh<pair, inner>;

// --- collectives: of n floats a rank, along the axis number `axis` -------------------------------------------------------------------

template <class Rank>
double time_of(Rank& rank, int axis, sw::transition kind, std::int64_t n, int times, std::vector<float>& got) {
  using mesh = typename Rank::mesh_type;
  sw::spec in = sw::detail::mesh_spec<mesh>(sw::dtype_v<float>);
  in.rank = 1;
  in.extent[0] = kind == sw::transition::all_gather ? 2 * n : n;
  sw::make_contiguous(in);
  sw::spec out = in;
  const auto at = static_cast<unsigned>(axis);
  in.place[at] = kind == sw::transition::all_gather ? sw::shard_value(0) : sw::partial_value();
  out.place[at] = kind == sw::transition::reduce_scatter ? sw::shard_value(0) : sw::replicate_value();
  sw::runtime::call c;
  c.l[0] = sw::runtime::local_layout(in, rank.coordinate().data());
  c.l[sw::runtime::result] = sw::runtime::local_layout(out, rank.coordinate().data());
  sw::runtime::lower_redistribute(c, axis, in, out, rank.coordinate().data());
  std::vector<float> from(static_cast<std::size_t>(n)), scratch(static_cast<std::size_t>(2 * n + 64));
  for (std::size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<float>(i % 13) + static_cast<float>(rank.coordinate(axis));
  got.resize(static_cast<std::size_t>(c.l[sw::runtime::result].numel()));
  c.p[0] = from.data();
  c.p[sw::runtime::result] = got.data();
  c.workspace = scratch.data();
  std::vector<double> took;
  for (int t = 0; t < times; ++t) {
    rank.barrier();
    const double begin = microseconds();
    sw::runtime::communicate<float>(c, rank);
    took.push_back(microseconds() - begin);
  }
  return median(took);
}
// MPI's own call, from the same memory each time.
double raw(sw::transition kind, std::int64_t n, int times) {
  const int count = static_cast<int>(n);
  std::vector<float> from(static_cast<std::size_t>(2 * n), 1), to(static_cast<std::size_t>(2 * n));
  std::vector<double> took;
  for (int t = 0; t < times; ++t) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = microseconds();
    if (kind == sw::transition::all_reduce) MPI_Allreduce(from.data(), to.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (kind == sw::transition::all_gather)
      MPI_Allgather(from.data(), count, MPI_FLOAT, to.data(), count, MPI_FLOAT, MPI_COMM_WORLD);
    if (kind == sw::transition::reduce_scatter)
      MPI_Reduce_scatter_block(from.data(), to.data(), count / 2, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    took.push_back(microseconds() - begin);
  }
  return median(took);
}

void compare_collective(const char* name, sw::transition kind, std::int64_t n, int rounds) {
  const int times = n > 100'000 ? 5 : 50;
  std::vector<double> took[5];
  for (int r = 0; r < rounds; ++r) {
    std::vector<float> want, got;
    alone([&] {
      sw::launch<line>([&](auto& rank) {
        std::vector<float> mine;
        const double t = time_of(rank, 0, kind, n, times, mine);
        if (rank.index() == 0) {
          took[0].push_back(t);
          want = mine;
        }
      });
    });
    const auto note = [&](auto& rank, int axis, int column) {
      std::vector<float> mine;
      const double t = time_of(rank, axis, kind, n, times, mine);
      if (rank.index() != 0) return;
      took[column].push_back(t);
      if (mine != want) throw std::runtime_error("the results differ");
    };
    sw::launch_mpi<line>([&](auto& rank) { note(rank, 0, 1); });
    sw::launch_mpi<line>([&](auto& rank) { note(rank, 0, 2); }, {60, true});
    took[3].push_back(raw(kind, n, times));
    sw::launch_mpi<grid, sw::within_process<inner>>([&](auto& rank) { note(rank, 1, 4); });
  }
  if (process() != 0) return;
  std::printf("| %s, %lld |", name, static_cast<long long>(n));
  for (const auto& t : took) std::printf(" %.1f |", median(t));
  std::printf("\n");
}

// --- steps --------------------------------------------------------------------------------------------------------------------

using size = tt::config<4, 64, 64, 4, 2>;
template <class Mesh, class Plan>
using step = sw::train_step<tt::gpt_of<size>::gpt, tt::next_byte<size, pair>, Plan, Mesh, sw::adamw<>>;
using step2 = step<line, sw::plan<sw::data_parallel<pair>>>;
using step4 = step<grid, tt::megatron<size, inner, sw::data_parallel<pair>>>;

template <class Step, class Rank>
double step_time(Rank& rank, double& loss) {
  sw::executor<Step, Rank> ex(rank);
  ex.initialise(1);
  std::vector<std::int32_t> in(4 * 64), next(4 * 64);
  for (std::size_t i = 0; i < in.size(); ++i) {
    in[i] = static_cast<std::int32_t>(i * 7919U % 251U);
    next[i] = static_cast<std::int32_t>((i + 1) * 7919U % 251U);
  }
  ex.set_input(0, in);
  ex.set_input(1, next);
  sw::step_env env;
  env.seed = 1;
  env.lr = 1e-3;
  env.weight_decay = 0;
  std::vector<double> took;
  for (int s = 1; s <= 11; ++s) {
    env.step = s;
    rank.barrier();
    const double begin = microseconds();
    ex.run(env);
    rank.barrier();
    if (s > 3) took.push_back(microseconds() - begin);
  }
  loss = static_cast<double>(ex.loss());
  return median(took);
}
template <class Step, class Launch>
void compare_steps(const char* name, int rounds, const Launch& launch) {
  std::vector<double> threads, processes;
  for (int r = 0; r < rounds; ++r) {
    double want = 0;
    alone([&] {
      sw::launch<typename Step::mesh_type>([&](auto& rank) {
        double loss = 0;
        const double t = step_time<Step>(rank, loss);
        if (rank.index() == 0) {
          want = loss;
          threads.push_back(t);
        }
      });
    });
    launch([&](auto& rank) {
      double loss = 0;
      const double t = step_time<Step>(rank, loss);
      if (rank.index() != 0) return;
      processes.push_back(t);
      if (loss != want) throw std::runtime_error("the losses differ");
    });
  }
  if (process() == 0) std::printf("| %s | %.2f | %.2f |\n", name, median(threads) / 1000, median(processes) / 1000);
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 5, processes = 0;
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], "--rounds") == 0) rounds = std::atoi(argv[i + 1]);
  const bool first = process() == 0;
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  if (processes != 2 || rounds < 1) {
    if (first) std::fprintf(stderr, "mpirun -n 2 bench_mpi_mpi [--rounds N]\n");
    return 1;
  }
  if (first)
    std::printf(
        "| us; floats a rank | 2 threads | 2 processes | fast_reduce | MPI's call | of 2 x 2, within a process |\n"
        "|---|---|---|---|---|---|\n");
  for (const std::int64_t n : {16, 4096, 262'144, 4'194'304}) {
    compare_collective("all-reduce", sw::transition::all_reduce, n, rounds);
    compare_collective("all-gather", sw::transition::all_gather, n, rounds);
    compare_collective("reduce-scatter", sw::transition::reduce_scatter, n, rounds);
  }
  if (first) std::printf("\n| ms a step | threads | processes |\n|---|---|---|\n");
  compare_steps<step2>("2 ranks, data parallel", rounds, [](const auto& f) { sw::launch_mpi<line>(f); });
  compare_steps<step4>("2 x 2 ranks, data and tensor parallel; 2 processes of 2 threads", rounds,
                       [](const auto& f) { sw::launch_mpi<grid, sw::within_process<inner>>(f); });
}
