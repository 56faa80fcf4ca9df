// SPDX-License-Identifier: Apache-2.0
// Logits become their own gradient where nothing reads them later, and stay where something does; the values are the same.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <shardwise/shardwise.hpp>

namespace {

namespace sw = shardwise;

struct dp : sw::axis<1> {};
using mesh = sw::mesh<dp>;
constexpr int rows = 6, width = 5, classes = 64;

template <class Bound = sw::unbound>
struct head : sw::module<head<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<width, classes>, fc));
  constexpr auto forward(const auto& x) const { return fc(x); }
};

using x_type = sw::input_tensor<double, sw::shape<rows, width>, sw::on<dp, sw::replicate>>;
using ids_type = sw::input_tensor<std::int32_t, sw::shape<rows>, sw::on<dp, sw::replicate>>;
struct task {
  using inputs = sw::inputs<x_type, ids_type>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& ids) const {
    return sw::cross_entropy(model(x), ids);
  }
};
// Their squares go into the loss as well, and their gradient needs them.
struct squared_task {
  using inputs = sw::inputs<x_type, ids_type>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& ids) const {
    const auto logits = model(x);
    const auto squares = sw::mean(logits * logits);  // first, so that the backward pass comes to it last
    return squares + sw::cross_entropy(logits, ids);
  }
};
template <class Task>
using step = sw::train_step<head, Task, sw::plan<>, mesh, sw::sgd<>, sw::pipeline<>, double>;

// Whether the first gradient of logits lies where its logits do.
template <class Step>
constexpr bool lies_in_logits() {
  const auto& g = Step::program;
  const auto& p = Step::memory::value;
  for (int i = 0; i < g.node_count; ++i)
    if (g.nodes[i].op == sw::op_code::nll_dx) return p.owner[i] == p.owner[g.nodes[i].in[1]];
  return false;
}
static_assert(lies_in_logits<step<task>>());

// Parameters after two steps, by the program's plan; and gradients by the formula.
template <class Task>
std::vector<double> trained() {
  std::vector<double> all;
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<step<Task>, std::remove_reference_t<decltype(rank)>> run(rank);
    run.initialise(4);
    std::vector<double> x(rows * width);
    std::vector<std::int32_t> ids(rows);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i * 7 % 11) / 5 - 1;
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i * 13 % classes);
    run.set_input(0, x);
    run.set_input(1, ids);
    sw::step_env env;
    env.lr = 0.5;
    for (env.step = 1; env.step <= 2; ++env.step) {
      run.run(env);
      all.push_back(run.loss());
    }
    for (int k = 0; k < run.parameter_count(); ++k) {
      const auto block = run.parameter(k);
      all.insert(all.end(), block.begin(), block.end());
    }
  });
  return all;
}

// The same in plain loops: a step of gradient descent on mean(-log softmax) + `squares` * mean(logits^2).
std::vector<double> expected(double squares, const std::vector<double>& initial) {
  std::vector<double> w(initial), all;  // weight (classes, width), then bias
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<double> dw(w.size(), 0.0);
    double loss = 0;
    for (int r = 0; r < rows; ++r) {
      double logits[classes], x[width], sum = 0;
      for (int k = 0; k < width; ++k) x[k] = static_cast<double>((r * width + k) * 7 % 11) / 5 - 1;
      for (int c = 0; c < classes; ++c) {
        logits[c] = w[static_cast<std::size_t>(classes * width + c)];
        for (int k = 0; k < width; ++k) logits[c] += w[static_cast<std::size_t>(c * width + k)] * x[k];
        sum += std::exp(logits[c]);
      }
      const int id = r * 13 % classes;
      loss += (std::log(sum) - logits[id]) / rows;
      for (int c = 0; c < classes; ++c) {
        loss += squares * logits[c] * logits[c] / (rows * classes);
        const double d = (std::exp(logits[c]) / sum - (c == id ? 1 : 0)) / rows + squares * 2 * logits[c] / (rows * classes);
        dw[static_cast<std::size_t>(classes * width + c)] += d;
        for (int k = 0; k < width; ++k) dw[static_cast<std::size_t>(c * width + k)] += d * x[k];
      }
    }
    all.push_back(loss);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] -= 0.5 * dw[i];
  }
  all.insert(all.end(), w.begin(), w.end());
  return all;
}

template <class Task>
void check(double squares) {
  std::vector<double> initial;
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<step<Task>, std::remove_reference_t<decltype(rank)>> run(rank);
    run.initialise(4);
    for (int k = 0; k < run.parameter_count(); ++k) {
      const auto block = run.parameter(k);
      initial.insert(initial.end(), block.begin(), block.end());
    }
  });
  const std::vector<double> got = trained<Task>(), want = expected(squares, initial);
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-12));
}

}  // namespace

TEST_CASE("logits become their own gradient, which is right") { check<task>(0); }
TEST_CASE("logits that something reads later are kept") { check<squared_task>(1); }
