// SPDX-License-Identifier: Apache-2.0
// Opaque functions on GPUs: they run on the host, in the stream's order, in a captured graph too; their results and gradients are those
// of host ranks, and what they throw ends the run with its place.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <place.hpp>
#include <shardwise/module/function.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace device_opaque {

namespace sw = shardwise;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
using mesh = sw::mesh<dp<N>>;

std::atomic<int> calls{0};

// Rows of four elements: y = x w + x x.
struct rows {
  template <class T>
  void operator()(std::span<T> y, std::span<const T> x, std::span<const T> w) const {
    ++calls;
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (x[i] > 1000) throw std::invalid_argument("rows: " + std::to_string(x[i]) + " is too large");
      y[i] = x[i] * w[i % 4] + x[i] * x[i];
    }
  }
  template <int K, class T>
  static void adjoint(std::span<T> d, std::span<const T> dy, std::span<const T> x, std::span<const T> w) {
    if constexpr (K == 0) {
      for (std::size_t i = 0; i < d.size(); ++i) d[i] = dy[i] * w[i % 4] + 2 * dy[i] * x[i];
    } else {
      for (T& e : d) e = 0;
      for (std::size_t i = 0; i < x.size(); ++i) d[i % 4] += dy[i] * x[i];
    }
  }
};
struct through_rows {
  constexpr auto operator()(const auto& x, const auto& w) const { return sw::opaque<rows>(x * 0.5, w) * 0.25; }
};
template <int N, class Backend>
using program = sw::gradient_step<through_rows, mesh<N>,
                                  sw::inputs<sw::input_tensor<double, sw::shape<7, 4>, sw::on<dp<N>, sw::shard<0>>>,
                                             sw::input_tensor<double, sw::shape<4>, sw::on<dp<N>, sw::reduced>>>,
                                  sw::wrt<0, 1>, sw::pipeline<>, Backend>;

std::vector<double> some(std::size_t n, int seed) {
  std::vector<double> r(n);
  for (std::size_t i = 0; i < n; ++i)
    r[i] = static_cast<double>((i * 37 + static_cast<std::size_t>(seed) * 11) % 23) / 8 - 1.25;
  return r;
}

// All outputs of three runs on other inputs, on rank `r` of N.
template <class Step, class Rank, class... How>
std::vector<double> three_runs(Rank& rank, How... how) {
  sw::executor<Step, Rank> run(rank, how...);
  std::vector<double> all;
  for (int k = 0; k < 3; ++k) {
    run.set_input(0, some(28, k));
    run.set_input(1, some(4, k + 5));
    run.run(sw::step_env{});
    for (int o = 0; o < 3; ++o) {
      const auto block = run.template output<double>(o);
      all.insert(all.end(), block.begin(), block.end());
    }
  }
  return all;
}
template <int N>
std::vector<std::vector<double>> on_host() {
  std::vector<std::vector<double>> r(N);
  sw::launch<mesh<N>>(
      [&](auto& rank) { r[static_cast<std::size_t>(rank.index())] = three_runs<program<N, sw::host_backend>>(rank); });
  return r;
}

template <int N>
void check_runs(sw::device_execution how) {
  if (!test::place::has(N)) return;
  const auto want = on_host<N>();
  calls = 0;
  std::vector<std::vector<double>> got(N);
  sw::launch_cuda<mesh<N>>([&](auto& rank) {
    got[static_cast<std::size_t>(rank.index())] = three_runs<program<N, sw::cuda_backend>>(rank, how);
  });
  CHECK(calls == 3 * N);  // the run on zeros with which an executor begins calls nobody
  for (std::size_t r = 0; r < N; ++r) {
    REQUIRE(got[r].size() == want[r].size());
    for (std::size_t i = 0; i < want[r].size(); ++i) CHECK(got[r][i] == doctest::Approx(want[r][i]).epsilon(1e-13));
  }
}

TEST_CASE("opaque: values and gradients on GPUs are those of host ranks, launched call by call") {
  check_runs<1>(sw::device_execution::stream);
  check_runs<2>(sw::device_execution::stream);
}

TEST_CASE("opaque: the same of a captured graph that is replayed") {
  check_runs<1>(sw::device_execution::graph);
  check_runs<2>(sw::device_execution::graph);
}

TEST_CASE("opaque: pinned memory holds the largest call's blocks") {
  if (!test::place::has(1)) return;
  std::size_t bytes = 0;
  sw::launch_cuda<mesh<1>>([&](auto& rank) {
    sw::executor<program<1, sw::cuda_backend>, std::remove_reference_t<decltype(rank)>> run(rank);
    bytes = run.opaque_bytes();
  });
  CHECK(bytes >= (28 + 28 + 4 + 28) * sizeof(double));  // the adjoint of operand 0: both cotangents and both operands
  CHECK(bytes < 2048);
}

// What a function throws is said where the rank next waits, with node and rank, and the next run is a run as any.
template <int N>
void check_thrown(sw::device_execution how, sw::executor_checks checks) {
  if (!test::place::has(N)) return;
  sw::launch_cuda<mesh<N>>([&](auto& rank) {
    using Rank = std::remove_reference_t<decltype(rank)>;
    using step = program<N, sw::cuda_backend>;
    sw::executor<step, Rank> run(rank, how, checks);
    const std::vector<double> w = some(4, 5);
    std::vector<double> bad(28, 4000.0);
    const auto said = [&](bool waits) -> std::string {
      try {
        run.set_input(0, bad);
        run.set_input(1, w);
        run.run(sw::step_env{});
        if (waits) {
          run.synchronize();
        } else {
          cudaStreamSynchronize(run.stream());
          run.run(sw::step_env{});
        }
      } catch (const std::runtime_error& e) {
        return e.what();
      }
      return "nothing was thrown";
    };
    for (const bool waits : {true, false}) {
      const std::string text = said(waits);
      if (text.find("rows: 2000.000000 is too large (in opaque") != 0 ||
          text.find("rank " + std::to_string(rank.index()) + ")") == std::string::npos)
        throw std::logic_error("it says: " + text);
      rank.barrier();
    }
    run.set_input(0, some(28, 0));
    run.set_input(1, w);
    run.run(sw::step_env{});
    const auto y = run.template output<double>(0);
    const double x = some(28, 0)[0] * 0.5;
    if (rank.index() == 0 && std::abs(y[0] - 0.25 * (x * w[0] + x * x)) > 1e-12)
      throw std::logic_error("a run after one that failed gives another result");
  });
}

TEST_CASE("opaque: an exception is thrown where the rank next waits") {
  check_thrown<1>(sw::device_execution::graph, sw::executor_checks::none);
  check_thrown<1>(sw::device_execution::stream, sw::executor_checks::none);
  check_thrown<1>(sw::device_execution::graph, sw::executor_checks::finite);
  check_thrown<2>(sw::device_execution::graph, sw::executor_checks::none);
}

// --- a train step ---------------------------------------------------------------------------------------------------------------

struct product {
  template <class T>
  void operator()(std::span<T> y, std::span<const T> a, std::span<const T> b) const {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = a[i] * b[i];
  }
  template <int K, class T>
  static void adjoint(std::span<T> d, std::span<const T> dy, std::span<const T> a, std::span<const T> b) {
    for (std::size_t i = 0; i < d.size(); ++i) d[i] = (K == 0 ? b[i] : a[i]) * dy[i];
  }
};
template <class Bound = sw::unbound>
struct gated : sw::module<gated<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<6, 4>, up), (sw::linear<4, 4>, beside), (sw::linear<4, 6>, down));
  constexpr auto forward(const auto& x) const {
    const auto h = up(x);
    return down(sw::opaque<product>(h, sw::tanh(beside(h))));
  }
};
template <int N>
struct task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<12, 6>, sw::on<dp<N>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const {
    const auto y = model(x);
    return sw::mean(y * y);
  }
};
template <int N, class Backend>
using step =
    sw::train_step<gated, task<N>, sw::plan<sw::data_parallel<dp<N>>>, mesh<N>, sw::adam<>, sw::pipeline<>, double, Backend>;
template <class Step, class Rank>
std::vector<double> losses(Rank& rank) {
  sw::executor<Step, Rank> run(rank);
  run.initialise(1);
  sw::step_env env;
  env.lr = 0.01;
  std::vector<double> all;
  for (env.step = 1; env.step <= 4; ++env.step) {
    run.set_input(0, some(72, 2));
    run.run(env);
    all.push_back(run.loss());
  }
  return all;
}
template <int N>
void check_training() {
  if (!test::place::has(N)) return;
  std::vector<double> want, got;
  sw::launch<mesh<N>>([&](auto& rank) {
    const auto l = losses<step<N, sw::host_backend>>(rank);
    if (rank.index() == 0) want = l;
  });
  sw::launch_cuda<mesh<N>>([&](auto& rank) {
    const auto l = losses<step<N, sw::cuda_backend>>(rank);
    if (rank.index() == 0) got = l;
  });
  REQUIRE(got.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-11));
  CHECK(got[3] < got[0]);
}

TEST_CASE("opaque: a train step on one GPU and on two learns as on host ranks") {
  check_training<1>();
  check_training<2>();
}

}  // namespace device_opaque
