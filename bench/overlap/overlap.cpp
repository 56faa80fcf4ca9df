// SPDX-License-Identifier: Apache-2.0
// Times a data-parallel training step with slowed collectives, as written, scheduled for overlap, and with part of its
// gradients' reductions moved into the next iteration, turn by turn in one process. Rank threads compute; their streams
// mostly sleep: nothing spins while a slowed collective passes its time.
//   bench_overlap_overlap [--ranks 2|4] [--rounds N] [--json] [--check] [--trace FILE]
#include <shardwise/module/iterated.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/runtime/executor/iterated.hpp>
#include <shardwise/shardwise.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "slowed.hpp"

namespace {

namespace sw = shardwise;
using namespace slowed_bench;

constexpr int rows = 256, width = 512, layers = 18;  // of a rank; a layer's gradients are more than 1 MiB: a bucket

template <class Bound = sw::unbound>
struct block : sw::module<block<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<width, width>, fc));
  constexpr auto forward(const auto& x) const { return sw::relu(fc(x)); }
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
// One core of a few dozen gigaflops a second; collectives as slow as the largest share measured makes them.
struct this_host {
  template <class Graph>
  static constexpr double microseconds(const Graph& g, int i) {
    if (sw::is_collective(g, i)) return g.spec_of(i).rank > 0 ? 16000 : 1600;
    return sw::run_time<30, 10>::compute(g, i);
  }
};

// Gradients are summed layer by layer where their bucket lies. Parameters are updated as three lists, layers 3 to 17, 1 and
// 2, and 0, so that the most are updated while the last reductions, the first layers', are under way.
template <int N, class... Passes>
using step_with =
    sw::train_step<model, task<N, rows, width>, sw::plan<sw::data_parallel<dp<N>>>, mesh<N>, sw::adamw<>,
                   sw::pipeline<sw::fused_optimizer, sw::comm_fusion_in_place<1>, sw::remove_copy_from_optimizer,
                                sw::split_fused_optimizer<0, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17>,
                                sw::split_fused_optimizer<1, 1, 2>, Passes...>>;
template <int N>
using as_written = step_with<N>;
template <int N>
using waits_only = step_with<N, sw::schedule_comm_wait>;
template <int N>
using reordered =
    step_with<N, sw::expedite_comms, sw::reorder_compute_for_overlap<this_host>, sw::sink_waits, sw::raise_comms>;
// The sums of five of the layers travel during the next forward pass, which else has nothing to send: those of layers 4, 8,
// 11, 14 and 16, so that each has arrived when its layer needs the parameters if all sums together take as long as the step
// computes. More would make the forward pass wait, fewer leave it without anything to send. (Reduction number 0 is the
// loss's, number 18 - k layer k's.)
template <int N>
using moved = sw::iterated<step_with<N, sw::expedite_comms>, sw::iter_move_grads_and_optimizers<"all_reduce_14", "einsum_4">,
                           sw::iter_move_grads_and_optimizers<"all_reduce_10", "einsum_8">,
                           sw::iter_move_grads_and_optimizers<"all_reduce_7", "einsum_11">,
                           sw::iter_move_grads_and_optimizers<"all_reduce_4", "einsum_14">,
                           sw::iter_move_grads_and_optimizers<"all_reduce_2", "einsum_16">, sw::raise_comms, sw::sink_waits>;

constexpr const char* names[] = {"as written", "schedule_comm_wait", "reordered", "reordered, moved across iterations"};
constexpr int programs = 4;

// What the streams cost where there is nothing to gain.
template <int N>
void hand_over(auto& rank, const options& o) {
  sw::eager on(rank);
  using X = sw::dtensor_of<float, sw::shape<16>, mesh<N>, sw::on<dp<N>, sw::partial<>>>;
  const X x = X::ones(on);
  std::vector<double> at_once, stream;
  for (int r = 0; r < o.rounds; ++r) {
    at_once.push_back(seconds_of([&] {
      for (int k = 0; k < 100; ++k) const auto y = sw::redistribute<dp<N>, sw::replicate>(x);
    }));
    stream.push_back(seconds_of([&] {
      for (int k = 0; k < 100; ++k) const auto y = sw::redistribute_async<dp<N>, sw::replicate>(x).wait();
    }));
  }
  if (rank.index() == 0)
    std::printf(o.json ? "{\"what\":\"all_reduce_of_16_floats\",\"at_once_us\":%.1f,\"on_stream_us\":%.1f}\n"
                       : "\nan all-reduce of 16 floats: %.1f us at once, %.1f us on the stream\n",
                median(at_once) * 1e4, median(stream) * 1e4);
}

// Losses and parameters after some iterations: of every program the same, bit by bit.
template <class Executor>
std::vector<float> history(Executor& ex, auto& parameters_of) {
  std::vector<float> all;
  constexpr int iterations = 4;
  for (int s = 1; s <= iterations; ++s) {
    if constexpr (requires { ex.main(); }) ex.run(environment(s), s == iterations);
    else ex.run(environment(s));
    all.push_back(ex.loss());
  }
  for (int i = 0; i < parameters_of.parameter_count(); ++i)
    for (const float v : parameters_of.parameter(i)) all.push_back(v);
  return all;
}

template <int N>
struct measured {
  double compute_seconds = 0;  // by rank 0, before all measure with it
  bool too_slow = false;
  std::vector<sw::timeline> lines;

  void on_rank(auto& rank, const options& o) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    const bool speaks = rank.index() == 0;
    sw::executor<as_written<N>, rank_type> a(rank);
    sw::executor<waits_only<N>, rank_type> b(rank);
    sw::executor<reordered<N>, rank_type> c(rank);
    sw::iterated_executor<moved<N>, rank_type> d(rank);
    const std::vector<float> x = input_of(N * rows * width);
    const auto prepare = [&](auto& e) {
      e.initialise(3);
      e.set_input(0, x);
    };
    prepare(a), prepare(b), prepare(c), prepare(d.main());
    const std::vector<float> want = history(a, a);
    if (history(b, b) != want || history(c, c) != want || history(d, d.main()) != want)
      throw std::logic_error("bench_overlap: a scheduled step has other losses or parameters than the step as written");

    int step = 4;
    const auto time = [&](auto& e) {
      rank.barrier();
      ++step;
      return seconds_of([&] {
        e.run(environment(step));
        rank.barrier();
      });
    };
    time(a), time(b), time(c), time(d), time(d);  // of d the first iteration, which leaves out what is moved
    std::vector<double> fast;
    for (int r = 0; r < o.rounds; ++r) fast.push_back(time(a));
    if (speaks) {
      compute_seconds = best(fast);
      std::printf(
          o.json
              ? "{\"what\":\"step\",\"ranks\":%d,\"layers\":%d,\"width\":%d,\"rows\":%d,\"compute_ms\":%.2f,\"collectives\":%d}\n"
              : "%d ranks, %d layers of %d, %d rows a rank: %.2f ms, %d all-reduces\n\n"
                "program                             share  compute  communication     step  of the larger  of the best times\n",
          N, layers, width, rows, compute_seconds * 1e3, as_written<N>::traffic.collectives);
    }
    rank.barrier();
    const double bytes = static_cast<double>(as_written<N>::total_comm_bytes());
    for (const double share : {0.25, 0.5, 1.0, 2.0}) {
      const double communication = share * compute_seconds;  // wanted
      const sw::threads::link slow{0.1 * communication / as_written<N>::traffic.collectives, bytes / (0.9 * communication)};
      std::vector<double> t[programs], plain;
      for (int r = 0; r < o.rounds; ++r) {
        rank.slow_down({});
        plain.push_back(time(a));
        rank.slow_down(slow);
        t[0].push_back(time(a));
        t[1].push_back(time(b));
        t[2].push_back(time(c));
        t[3].push_back(time(d));
      }
      if (share == 1.0 && !o.trace.empty()) record(rank, time, a, b, c, d);
      rank.slow_down({});
      if (!speaks) continue;
      const double alone = median(plain), sent = median(t[0]) - alone;
      const double least = best(plain), least_bound = std::max(least, best(t[0]) - least);
      double least_ratio = 1e9;
      for (int k = 0; k < programs; ++k) {
        const double of_the_larger = ratio(t[k], [&](std::size_t i) { return std::max(plain[i], t[0][i] - plain[i]); });
        if (k > 0) least_ratio = std::min(least_ratio, of_the_larger);
        std::printf(o.json
                        ? "{\"what\":\"%s\",\"share\":%.2f,\"compute_ms\":%.2f,\"communication_ms\":%.2f,\"step_ms\":%.2f,"
                          "\"of_the_larger\":%.3f,\"best_of_the_larger\":%.3f}\n"
                        : "%-34s%7.2f%9.2f%15.2f%9.2f%15.3f%19.3f\n",
                    names[k], share, alone * 1e3, sent * 1e3, median(t[k]) * 1e3, of_the_larger, best(t[k]) / least_bound);
      }
      if (least_ratio > limit) too_slow = true;
      if (o.json)
        std::printf("{\"what\":\"limit\",\"share\":%.2f,\"of_the_larger\":%.3f,\"limit\":%.2f,\"holds\":%s}\n", share,
                    least_ratio, limit, least_ratio <= limit ? "true" : "false");
    }
    hand_over<N>(rank, o);
  }

  void record(auto& rank, auto& time, auto& a, auto& b, auto& c, auto& d) {
    sw::timeline* const t = &lines[static_cast<std::size_t>(rank.index())];
    a.record(t, names[0]), b.record(t, names[1]), c.record(t, names[2]), d.record(t);
    time(a), time(b), time(c), time(d);
    a.record(nullptr), b.record(nullptr), c.record(nullptr), d.record(nullptr);
  }
};

int number(const char* flag, const char* text, int least, int most) {
  char* end = nullptr;
  const long n = text ? std::strtol(text, &end, 10) : 0;
  if (!text || *text == '\0' || *end != '\0' || n < least || n > most)
    throw std::invalid_argument(std::string(flag) + " takes a whole number from " + std::to_string(least) + " to " +
                                std::to_string(most));
  return static_cast<int>(n);
}

options parse(int argc, char** argv) {
  options o;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const char* const value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (flag == "--json") o.json = true;
    else if (flag == "--check") o.check = true;
    else if (flag == "--rounds") o.rounds = number("--rounds", value, 1, 10'000), ++i;
    else if (flag == "--ranks") o.ranks = number("--ranks", value, 2, 4), ++i;
    else if (flag == "--trace" && value) o.trace = value, ++i;
    else
      throw std::invalid_argument(
          "the flags are --ranks 2|4, --rounds N, --json, --check (exit code 3 above the limit) and --trace FILE");
  }
  if (o.ranks == 3) throw std::invalid_argument("--ranks takes 2 or 4");
  return o;
}

template <int N>
int run(const options& o) {
  measured<N> m;
  measure_on<mesh<N>>(m, programs, o);
  return o.check && m.too_slow ? 3 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const options o = parse(argc, argv);
    return o.ranks == 2 ? run<2>(o) : run<4>(o);
  } catch (const std::invalid_argument& e) {
    std::fprintf(stderr, "bench_overlap: %s.\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
