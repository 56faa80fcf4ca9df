// SPDX-License-Identifier: Apache-2.0
// Times a fully sharded training step with slowed collectives, with each group's collectives in one batch, as written and with its
// groups prefetched, turn by turn in one process. Rank threads compute; their streams mostly sleep.
// "hidden" is the share of the collectives' time, as a timeline of rank 0 has it, that lies under kernels of that rank.
// With --pauses a layer's kernels are small, and beside them it sleeps for as long as a device would compute: then the order of
// collectives and kernels is measured, whatever else the machine does.
//   bench_fsdp_fsdp [--ranks 2|4] [--rounds N] [--pauses] [--json] [--check] [--trace FILE]
#include <shardwise/pass/communication/prefetch.hpp>
#include <shardwise/runtime/timeline/communication_time.hpp>
#include <shardwise/shardwise.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "../overlap/slowed.hpp"

namespace fsdp_bench {

namespace sw = shardwise;
using namespace slowed_bench;

constexpr int layers = 16;  // each a group

// Sizes of a layer on a rank.
struct computing {
  static constexpr int rows = 256, width = 512;
  static constexpr bool pauses = false;
};
struct pausing {
  static constexpr int rows = 8, width = 64;
  static constexpr bool pauses = true;
};

// Its operand, after a while; so is its adjoint, after twice as long.
constexpr double pause_seconds = 4e-3;
extern const sw::custom_operation pause;
constexpr void pull_pause(sw::autodiff::pullback& p);
inline constexpr sw::autodiff::adjoint_rule pause_adjoint = sw::autodiff::pulled<2>(&pull_pause);
inline constexpr sw::custom_operation pause{
    .name = "pause", .operands = 1, .record = sw::operations::pointwise(sw::linearity::first), .adjoint = &pause_adjoint};
constexpr void pull_pause(sw::autodiff::pullback& p) { p.give(0, p.make(pause, {{2, 0, 0, 0, 0, 0}}, 0, p.dy)); }

}  // namespace fsdp_bench

template <>
struct shardwise::host_kernel<fsdp_bench::pause> {
  template <class T>
  static void run(const kernel_arguments<T>& k) {
    shardwise::threads::pass_time(fsdp_bench::pause_seconds * (k.attribute(0) == 2 ? 2 : 1));
    for (std::int64_t i = 0; i < k.size(); ++i) k.out()[i] = k.in(0)[i];
  }
};

namespace fsdp_bench {

template <class Sizes>
struct models {
  template <class Bound = sw::unbound>
  struct block : sw::module<block<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::linear<Sizes::width, Sizes::width>, fc));
    constexpr auto forward(const auto& x) const {
      if constexpr (Sizes::pauses) return sw::relu(sw::call<pause>(fc(x)));
      else return sw::relu(fc(x));
    }
  };
  template <class Bound>
  using block_of = block<Bound>;
  template <class Bound = sw::unbound>
  struct stack : sw::module<stack<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::repeat<layers, block_of>, blocks));
    constexpr auto forward(const auto& x) const { return blocks(x); }
  };
  template <class B>
  using model = stack<B>;
};
// A plan with fully_shard implies batches, before passes that move collectives: this one takes them apart again.
struct apart {
  using shardwise_pass = void;
  using moves_collectives = void;
  template <class Graph>
  static constexpr sw::finding apply(Graph& g) {
    for (int i = 0; i < g.node_count; ++i)
      if (g.nodes[i].op == sw::op_code::redistribute) sw::set_batch(g.nodes[i], 0);
    return {};
  }
};
template <int N, class Sizes, class... Passes>
using step_with = sw::train_step<models<Sizes>::template model, task<N, Sizes::rows, Sizes::width>,
                                 sw::plan<sw::fully_shard<dp<N>>, sw::at<"blocks.*", sw::fully_shard<dp<N>>>>, mesh<N>,
                                 sw::adamw<>, sw::pipeline<Passes...>>;
template <int N, class Sizes>
using each_alone = step_with<N, Sizes, apart>;
template <int N, class Sizes>
using as_written = step_with<N, Sizes, sw::batch_collectives>;
template <int N, class Sizes>
using one_ahead = step_with<N, Sizes, sw::batch_collectives, sw::prefetch<1>>;
template <int N, class Sizes>
using two_ahead = step_with<N, Sizes, sw::batch_collectives, sw::prefetch<2>>;

constexpr const char* names[] = {"each collective alone", "batches", "batches, prefetch<1>", "batches, prefetch<2>"};
constexpr int programs = 4;

struct fsdp_options : options {
  bool pauses = false;
};

// Losses and parameters after some iterations: of every program the same, bit by bit.
std::vector<float> history(auto& ex) {
  std::vector<float> all;
  for (int s = 1; s <= 3; ++s) {
    ex.run(environment(s));
    all.push_back(ex.loss());
  }
  for (int i = 0; i < ex.parameter_count(); ++i)
    for (const float v : ex.parameter(i)) all.push_back(v);
  return all;
}

template <int N, class Sizes>
struct measured {
  double compute_seconds = 0;  // by rank 0, before all measure with it
  bool too_slow = false;
  std::vector<sw::timeline> lines;

  void on_rank(auto& rank, const options& o) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    const bool speaks = rank.index() == 0;
    sw::executor<each_alone<N, Sizes>, rank_type> a(rank);
    sw::executor<as_written<N, Sizes>, rank_type> b(rank);
    sw::executor<one_ahead<N, Sizes>, rank_type> c(rank);
    sw::executor<two_ahead<N, Sizes>, rank_type> d(rank);
    const std::vector<float> x = input_of(N * Sizes::rows * Sizes::width);
    const auto prepare = [&](auto& e) {
      e.initialise(3);
      e.set_input(0, x);
    };
    prepare(a), prepare(b), prepare(c), prepare(d);
    const std::vector<float> want = history(a);
    if (history(b) != want || history(c) != want || history(d) != want)
      throw std::logic_error("bench_fsdp: a step with batches has other losses or parameters than the step without");

    int step = 3;
    const auto time = [&](auto& e) {
      rank.barrier();
      return seconds_of([&] {
        e.run(environment(++step));
        rank.barrier();
      });
    };
    std::vector<double> compute;
    for (int r = 0; r < o.rounds; ++r) compute.push_back(time(b));
    if (speaks) compute_seconds = median(compute);
    rank.barrier();
    if (speaks) {
      std::printf(o.json ? "{\"what\":\"step\",\"ranks\":%d,\"layers\":%d,\"width\":%d,\"rows\":%d,\"compute_ms\":%.2f,"
                           "\"collectives\":%d,\"batches\":%d}\n"
                         : "%d ranks, %d layers of %d, %d rows each: %.2f ms; %d collectives, in %d batches\n",
                  N, layers, Sizes::width, Sizes::rows, compute_seconds * 1e3, each_alone<N, Sizes>::traffic.collectives,
                  as_written<N, Sizes>::traffic.collectives);
      const std::int64_t peaks[] = {each_alone<N, Sizes>::peak_bytes, as_written<N, Sizes>::peak_bytes,
                                    one_ahead<N, Sizes>::peak_bytes, two_ahead<N, Sizes>::peak_bytes};
      for (int k = 0; k < programs; ++k)
        std::printf(o.json ? "{\"what\":\"%s\",\"peak_bytes\":%lld}\n" : "%-24s arena of %lld bytes\n", names[k],
                    static_cast<long long>(peaks[k]));
      if (!o.json)
        std::printf("\n%-8s %-24s %8s %8s %8s %10s %10s %10s %8s\n", "asked", "program", "compute", "comm", "step",
                    "of larger", "by best", "of batches", "hidden");
    }
    for (const double asked : {0.25, 0.5, 1.0, 2.0}) {
      const double communication = asked * compute_seconds,
                   bytes = static_cast<double>(each_alone<N, Sizes>::total_comm_bytes());
      const sw::threads::link slow{0.1 * communication / as_written<N, Sizes>::traffic.collectives,
                                   bytes / (0.9 * communication)};
      std::vector<double> plain, steps[programs], hidden[programs];
      std::array<sw::timeline, programs> seen{sw::timeline(o.rounds), sw::timeline(o.rounds), sw::timeline(o.rounds),
                                              sw::timeline(o.rounds)};
      const auto watched = [&](auto& e, std::size_t k) {
        e.record(&seen[k]);
        steps[k].push_back(time(e));
        e.record(nullptr);
        hidden[k].push_back(sw::communication_time_of(seen[k], seen[k].runs().back()).hidden_share());
      };
      for (int r = 0; r < o.rounds; ++r) {
        rank.slow_down({});
        plain.push_back(time(b));
        rank.barrier();
        rank.slow_down(slow);
        rank.barrier();
        watched(a, 0);
        watched(b, 1);
        watched(c, 2);
        watched(d, 3);
      }
      if (speaks) report(asked, plain, steps, hidden, o);
      if (asked == 1.0 && !o.trace.empty()) {
        auto& line = lines[static_cast<std::size_t>(rank.index())];
        const auto record = [&](auto& e) {
          e.record(&line);
          time(e);
          e.record(nullptr);
        };
        record(a), record(b), record(c), record(d);
      }
    }
  }

  void report(double asked, const std::vector<double>& plain, const std::vector<double>* steps,
              const std::vector<double>* hidden, const options& o) {
    const double compute = median(plain), communication = median(steps[1]) - compute;
    const auto larger = [&](std::size_t i) { return std::max(plain[i], steps[1][i] - plain[i]); };
    double closest = 1e9;
    for (int k = 0; k < programs; ++k) {
      const double of_larger = ratio(steps[k], larger);
      const double of_batches = ratio(steps[k], [&](std::size_t i) { return steps[1][i]; });
      const double by_best = best(steps[k]) / std::max(best(plain), best(steps[1]) - best(plain));
      if (k > 1) closest = std::min(closest, of_larger);
      std::printf(o.json ? "{\"asked\":%.2f,\"what\":\"%s\",\"compute_ms\":%.2f,\"communication_ms\":%.2f,\"step_ms\":%.2f,"
                           "\"of_the_larger\":%.3f,\"by_best_times\":%.3f,\"of_batches\":%.3f,\"hidden\":%.3f}\n"
                         : "%-8.2f %-24s %8.2f %8.2f %8.2f %10.3f %10.3f %10.3f %8.3f\n",
                  asked, names[k], compute * 1e3, communication * 1e3, median(steps[k]) * 1e3, of_larger, by_best,
                  of_batches, median(hidden[k]));
    }
    too_slow = too_slow || closest > limit;
  }
};

template <int N, class Sizes>
int measure(const options& o) {
  measured<N, Sizes> m;
  measure_on<mesh<N>>(m, programs, o);
  if (!o.check || !m.too_slow) return 0;
  std::fprintf(stderr, "bench_fsdp: a prefetched step takes more than %.2f of the larger of computation and communication\n",
               limit);
  return 1;
}

}  // namespace fsdp_bench

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  using namespace fsdp_bench;
  fsdp_options o;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--json") o.json = true;
    else if (arg == "--check") o.check = true;
    else if (arg == "--pauses") o.pauses = true;
    else if (arg == "--ranks" && i + 1 < argc) o.ranks = std::atoi(argv[++i]);
    else if (arg == "--rounds" && i + 1 < argc) o.rounds = std::atoi(argv[++i]);
    else if (arg == "--trace" && i + 1 < argc) o.trace = argv[++i];
    else {
      std::fprintf(stderr, "usage: %s [--ranks 2|4] [--rounds N] [--pauses] [--json] [--check] [--trace FILE]\n", argv[0]);
      return 2;
    }
  }
  if (o.rounds < 1 || (o.ranks != 2 && o.ranks != 4)) {
    std::fprintf(stderr, "bench_fsdp: 2 or 4 ranks, at least one round\n");
    return 2;
  }
  if (o.pauses) return o.ranks == 2 ? measure<2, pausing>(o) : measure<4, pausing>(o);
  return o.ranks == 2 ? measure<2, computing>(o) : measure<4, computing>(o);
}
