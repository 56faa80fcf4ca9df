// SPDX-License-Identifier: Apache-2.0
// What tests of flat_parameters share: a model of matrices, vectors and a scalar, and its training with and without.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <span>

#include <fsdp.hpp>
#include <running_norm.hpp>

namespace test::flat {

using namespace fsdp;
using running::numbers;

// Matrices, vectors and a scalar: 35 + 7 + 7 + 7 + 42 + 6 + 18 + 3 + 1 elements.
template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<5, 7>, in), (sw::layer_norm_module<7>, norm), (sw::linear<7, 6>, up),
                    (sw::parameter<sw::shape<>, sw::init::ones>, gain), (sw::linear<6, 3>, down));
  constexpr auto forward(const auto& x) const { return down(sw::relu(up(norm(sw::relu(in(x))))) * gain); }
};
template <int D>
using batch = batch_axes<dp<D>>;
template <int D, class T = double>
struct fit {
  using inputs = sw::inputs<split_rows_t<T, sw::shape<7, 5>, batch<D>>, split_rows_t<T, sw::shape<7, 3>, batch<D>>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& t) const {
    const auto apart = model(x) - t;
    return sw::mean(apart * apart);
  }
};

// The same with the batch split over a second axis, too.
struct copies : sw::axis<2> {};
struct fit_both {
  using inputs = sw::inputs<split_rows_t<double, sw::shape<7, 5>, batch_axes<dp<2>, copies>>,
                            split_rows_t<double, sw::shape<7, 3>, batch_axes<dp<2>, copies>>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& t) const { return fit<2>{}(model, x, t); }
};

// One group; a group of a module beside the rest's; one that frees nothing.
template <int D, class... Options>
using one = sw::plan<sw::fully_shard<dp<D>, Options...>>;
template <int D, class... Options>
using freed = sw::plan<sw::fully_shard<dp<D>, sw::reshard_after_forward<true>, Options...>>;
template <int D, class... Options>
using three = sw::plan<sw::fully_shard<dp<D>, Options...>, sw::at<"up", sw::fully_shard<dp<D>, Options...>>,
                       sw::at<"in", sw::fully_shard<dp<D>, sw::reshard_after_forward<false>, Options...>>>;
// Flat beside what is not.
template <int D, class... Options>
using some = sw::plan<sw::fully_shard<dp<D>>, sw::at<"up", sw::fully_shard<dp<D>, Options...>>>;

template <int D, class Plan, class Optimizer, class... P>
using step = sw::train_step<net, fit<D>, Plan, sw::mesh<dp<D>>, Optimizer, sw::pipeline<P...>, double>;

// Everything that can be read of a training, by name.
struct record {
  std::vector<double> first, losses, last, moments;
  bool operator==(const record&) const = default;
};

template <class Step, class Rank>
std::vector<double> all_of(sw::executor<Step, Rank>& run) {
  std::vector<double> all;
  for (int i = 0; i < run.parameter_count(); ++i) {
    const auto one = run.full_parameter(run.parameter_name(i));
    CHECK(static_cast<std::int64_t>(one.size()) == numel(run.parameter_spec(i)));
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}
template <class Step, class Rank>
std::vector<double> moments_of(sw::executor<Step, Rank>& run) {
  std::vector<double> all;
  for (int k = 0; k < Step::optimizer::states; ++k)
    for (int i = 0; i < run.parameter_count(); ++i) {
      const auto one = run.full_state(run.parameter_name(i), static_cast<sw::moment>(k));
      all.insert(all.end(), one.begin(), one.end());
    }
  return all;
}

inline sw::step_env numbers_of(int s) {
  sw::step_env env = running::step_numbers(s);
  env.weight_decay = 0.1;
  env.max_norm = 0.05;
  return env;
}
template <class Run>
void one_step(Run& run, int s) {
  run.set_input(0, numbers<double>(35, s));
  run.set_input(1, numbers<double>(21, s + 20));
  run.run(numbers_of(s));
}

// Memory full of NaN.
struct dynamic_bytes {
  std::vector<double> all;
  explicit dynamic_bytes(std::int64_t n) : all(static_cast<std::size_t>(n / 8 + 8), std::nan("")) {}
  std::span<std::byte> span() {
    void* at = all.data();
    std::size_t room = all.size() * 8;
    at = std::align(64, room - 64, at, room);
    return {static_cast<std::byte*>(at), room};
  }
};

// What lies behind the last parameter of each flat one, and of its states.
template <class Step, class Rank>
bool padding_is_zero(sw::executor<Step, Rank>& run) {
  constexpr const auto& flat = sw::executor<Step, Rank>::flat;
  bool zero = true;
  for (int i = 0; i < Step::program.node_count; ++i) {
    const sw::node& n = Step::program.nodes[i];
    const auto of = sw::attributes_of<sw::leaf_attributes>(n.a);
    const bool leaf = n.op == sw::op_code::param, state = n.op == sw::op_code::state && of.which < 2;
    const int number = static_cast<int>(leaf ? of.index : of.parameter);
    if (!(leaf || state) || !flat.is_flat(number)) continue;
    const auto& l = run.layout_of(i);
    const auto block = run.value(i);
    for (std::int64_t k = 0; k < l.ext[0]; ++k)
      if (l.origin[0] + k >= flat.end_of(number)) zero = zero && block[static_cast<std::size_t>(k)] == 0;
  }
  return zero;
}

constexpr auto every_check = sw::executor_checks::poison | sw::executor_checks::finite;
template <class Step>
record trained(int steps, sw::executor_checks checks) {
  record r;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> run(rank, checks);
    run.initialise(5);
    record own;
    own.first = all_of(run);
    for (int s = 1; s <= steps; ++s) {
      one_step(run, s);
      own.losses.push_back(run.loss());
    }
    own.last = all_of(run);
    own.moments = moments_of(run);
    CHECK(padding_is_zero(run));
    if (rank.index() == 0) r = own;
  });
  return r;
}

template <class T>
double apart(const std::vector<T>& a, const std::vector<T>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return most;
}

template <int D, template <int, class...> class Plan, class Optimizer, class... P>
void check_same(double bound, sw::executor_checks checks = every_check) {
  const record flat = trained<step<D, Plan<D, sw::flat_parameters>, Optimizer, P...>>(4, checks);
  const record plain = trained<step<D, Plan<D>, Optimizer, P...>>(4, checks);
  CHECK(flat.first == plain.first);
  CHECK(apart(flat.losses, plain.losses) <= bound);
  CHECK(apart(flat.last, plain.last) <= bound);
  CHECK(apart(flat.moments, plain.moments) <= bound);
  CHECK(plain.losses.front() != plain.losses.back());
}

}  // namespace test::flat
