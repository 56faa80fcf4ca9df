// SPDX-License-Identifier: Apache-2.0
// Times a data-parallel training step with slowed collectives, as written and scheduled for overlap, turn by turn in one
// process; prints one JSON line per figure. Two rank threads, and their streams, which mostly sleep.
#include <shardwise/pass/overlap.hpp>
#include <shardwise/pass/waits.hpp>
#include <shardwise/shardwise.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

namespace sw = shardwise;

constexpr int ranks = 2, rows = 256, width = 256, layers = 12;

struct dp : sw::axis<ranks> {};
using mesh = sw::mesh<dp>;

template <class Bound = sw::unbound>
struct block : sw::module<block<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(block, (sw::linear<width, width, sw::child<Bound, 0>>, fc));
  constexpr auto forward(const auto& x) const { return sw::relu(fc(x)); }
};
template <class Bound>
using block_of = block<Bound>;
template <class Bound = sw::unbound>
struct stack : sw::module<stack<Bound>, Bound> {
  using list_type = sw::repeat<layers, block_of, sw::child<Bound, 0>>;
  BOOST_HANA_DEFINE_STRUCT(stack, (list_type, blocks));
  constexpr auto forward(const auto& x) const { return blocks(x); }
};
template <class B>
using model = stack<B>;
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<ranks * rows, width>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    const auto y = m(x);
    return sw::mean(y * y);
  }
};
using plan = sw::plan<sw::data_parallel<dp>>;

// One core of a few dozen gigaflops a second; collectives as slow as the largest share measured makes them.
struct this_host {
  template <class Graph>
  static constexpr double microseconds(const Graph& g, int i) {
    if (sw::is_collective(g, i)) return g.spec_of(i).rank == 2 ? 2000 : 200;
    return sw::run_time<30, 10>::compute(g, i);
  }
};

template <class Pipeline>
using step_with = sw::train_step<model, task, plan, mesh, sw::adamw<>, Pipeline>;
using as_written = step_with<sw::pipeline<>>;
using waits_only = step_with<sw::pipeline<sw::schedule_comm_wait>>;
using reordered = step_with<
    sw::pipeline<sw::expedite_comms, sw::reorder_compute_for_overlap<this_host>, sw::sink_waits, sw::raise_comms>>;

double seconds_of(auto&& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

double best(const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); }

// What the streams cost where there is nothing to gain.
void hand_over(auto& rank, int rounds) {
  sw::eager on(rank);
  using X = sw::dtensor_of<float, sw::shape<16>, mesh, sw::on<dp, sw::partial<>>>;
  const X x = X::ones(on);
  std::vector<double> at_once, stream;
  for (int r = 0; r < rounds; ++r) {
    at_once.push_back(seconds_of([&] {
      for (int k = 0; k < 100; ++k) const auto y = sw::redistribute<dp, sw::replicate>(x);
    }));
    stream.push_back(seconds_of([&] {
      for (int k = 0; k < 100; ++k) const auto y = sw::redistribute_async<dp, sw::replicate>(x).wait();
    }));
  }
  if (rank.index() == 0)
    std::printf("{\"what\":\"all_reduce_of_16_floats\",\"at_once_us\":%.1f,\"on_stream_us\":%.1f}\n", median(at_once) * 1e4,
                median(stream) * 1e4);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 15;
  constexpr const char* names[] = {"as written", "schedule_comm_wait", "reordered"};
  double compute = 0;  // by rank 0, before all measure with it
  sw::launch<mesh>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<as_written, rank_type> a(rank);
    sw::executor<waits_only, rank_type> b(rank);
    sw::executor<reordered, rank_type> c(rank);
    std::vector<float> x(static_cast<std::size_t>(ranks * rows * width));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) / 17 - 0.5F;
    const auto prepare = [&](auto& e) {
      e.initialise(3);
      e.set_input(0, x);
    };
    prepare(a), prepare(b), prepare(c);
    sw::step_env env;
    env.lr = 1e-3;
    const auto time = [&](auto& e) {
      rank.barrier();
      ++env.step;
      return seconds_of([&] {
        e.run(env);
        rank.barrier();
      });
    };
    time(a), time(b), time(c);
    std::vector<double> fast;
    for (int r = 0; r < rounds; ++r) fast.push_back(time(a));
    if (rank.index() == 0) {
      compute = median(fast);
      std::printf("{\"what\":\"step\",\"ranks\":%d,\"layers\":%d,\"width\":%d,\"rows\":%d,\"compute_ms\":%.2f,\"collectives\":%d}\n", ranks,
                  layers, width, rows, compute * 1e3, as_written::traffic.collectives);
    }
    rank.barrier();
    const double bytes = static_cast<double>(as_written::total_comm_bytes());
    for (const double share : {0.25, 0.5, 1.0, 2.0}) {
      const double communication = share * compute;  // wanted
      const sw::threads::link slow{communication / 2 / as_written::traffic.collectives, bytes / (communication / 2)};
      std::vector<double> t[3], plain;
      for (int r = 0; r < rounds; ++r) {
        rank.slow_down({});
        plain.push_back(time(a));
        rank.slow_down(slow);
        t[0].push_back(time(a));
        t[1].push_back(time(b));
        t[2].push_back(time(c));
      }
      rank.slow_down({});
      if (rank.index() != 0) continue;
      const double alone = median(plain), with = median(t[0]), sent = with - alone, bound = std::max(alone, sent);
      const double least = best(plain), least_bound = std::max(least, best(t[0]) - least);
      for (int k = 0; k < 3; ++k)
        std::printf(
            "{\"what\":\"%s\",\"share\":%.2f,\"compute_ms\":%.2f,\"communication_ms\":%.2f,\"step_ms\":%.2f,\"of_the_larger\":%.3f,"
            "\"of_the_sum\":%.3f,\"best_of_the_larger\":%.3f}\n",
            names[k], share, alone * 1e3, sent * 1e3, median(t[k]) * 1e3, median(t[k]) / bound, median(t[k]) / with,
            best(t[k]) / least_bound);
    }
    hand_over(rank, rounds);
  });
}
