// SPDX-License-Identifier: Apache-2.0
// A model with buffers and modes: a norm over the batch with running statistics, as torch.nn.BatchNorm1d, and dropout.
#pragma once

#include <cmath>
#include <vector>

#include <place.hpp>

namespace test::running {

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};
template <int D, int N>
using mesh = sw::mesh<dp<D>, tp<N>>;

inline constexpr double momentum = 0.25, epsilon = 1e-5;

// Axis splits the batch. In training the statistics are the batch's own, and gradients flow through them; in evaluation they
// are those of the buffers.
template <class Axis, int Features, class Bound = sw::unbound>
struct running_norm : sw::module<running_norm<Axis, Features, Bound>, Bound> {
  template <class B>
  using rebound = running_norm<Axis, Features, B>;
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<Features>, sw::init::ones>, weight),
                    (sw::parameter<sw::shape<Features>, sw::init::zeros>, bias),
                    (sw::buffer<sw::shape<Features>, sw::init::zeros>, running_mean),
                    (sw::buffer<sw::shape<Features>, sw::init::ones>, running_var));

  template <class X>
  constexpr auto forward(const X& x) const {
    if constexpr (sw::training<Bound>) {
      constexpr double rows = static_cast<double>(X::sp.extent[0]);
      const auto mean = sw::redistribute<Axis, sw::reduced>(sw::mean<0>(x));
      const auto apart = x - mean;
      const auto variance = sw::redistribute<Axis, sw::reduced>(sw::mean<0>(apart * apart));
      sw::lerp_(running_mean, mean, momentum);
      sw::lerp_(running_var, variance * (rows / (rows - 1)), momentum);
      return apart * sw::rsqrt(variance + epsilon) * weight + bias;
    } else {
      return (x - running_mean) * sw::rsqrt(running_var + epsilon) * weight + bias;
    }
  }
};

// Splits all tensors of a module along their first dim.
template <class Axis>
struct split_features : sw::detail::style_base {
  using axis = Axis;
  static constexpr bool accepts(sw::module_kind) { return true; }
  static constexpr sw::detail::maybe_placement parameter(sw::module_kind, std::string_view, int) {
    return {true, sw::shard_value(0)};
  }
};

template <class Axis>
struct models {
  template <class Bound = sw::unbound>
  struct net : sw::module<net<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::linear<5, 6>, up), (running_norm<Axis, 6>, norm), (sw::dropout_module<1, 4>, drop),
                      (sw::linear<6, 3>, down));
    constexpr auto forward(const auto& x) const { return down(drop(sw::relu(norm(up(x))))); }
  };
  template <class B>
  using net_of = net<B>;
};

template <int D, int N>
using split_plan = sw::plan<sw::data_parallel<dp<D>>, sw::at<"up", sw::colwise<tp<N>>>,
                            sw::at<"norm", split_features<tp<N>>>, sw::at<"down", sw::rowwise<tp<N>>>>;
template <int D, int N>
using whole_plan = sw::plan<sw::data_parallel<dp<D>>>;

template <class T, int D, int Rows>
struct fit {
  using inputs = sw::inputs<sw::input_tensor<T, sw::shape<Rows, 5>, sw::on<dp<D>, sw::shard<0>>>,
                            sw::input_tensor<T, sw::shape<Rows, 3>, sw::on<dp<D>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& t) const {
    const auto apart = model(x) - t;
    return sw::mean(apart * apart);
  }
};
template <class T, int D, int Rows>
struct predict {
  using inputs = sw::inputs<sw::input_tensor<T, sw::shape<Rows, 5>, sw::on<dp<D>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::sum(model(x)); }
};

// By SGD: the gradient of up's bias is zero up to rounding, which Adam would turn into steps.
template <int D, int N, template <int, int> class Plan, class Pipeline = sw::pipeline<>, int Rows = 7, class T = double,
          class Place = place>
using training = sw::train_step<models<dp<D>>::template net_of, fit<T, D, Rows>, Plan<D, N>, mesh<D, N>, sw::sgd<true>,
                                Pipeline, T, typename Place::backend>;
template <int D, int N, template <int, int> class Plan, class Pipeline = sw::pipeline<>, int Rows = 7, class T = double,
          class Place = place>
using evaluation = sw::forward_step<models<dp<D>>::template net_of, predict<T, D, Rows>, Plan<D, N>, mesh<D, N>, Pipeline, T,
                                    typename Place::backend>;

template <class T>
std::vector<T> numbers(std::size_t n, int salt) {
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i)
    v[i] = static_cast<T>(std::sin(0.7 * static_cast<double>(i) + 1.3 * salt) + 0.2 * salt);
  return v;
}
inline sw::step_env step_numbers(int s) {
  sw::step_env env;
  env.seed = 11;
  env.lr = 0.05;
  env.momentum = 0.9;
  env.eps = 0.01;
  env.step = s;
  return env;
}

// Losses of a training, what it leaves in parameters and buffers, and the model's evaluation before and behind it.
template <class T>
struct history {
  std::vector<T> losses;
  std::vector<std::vector<T>> parameters, buffers;
  T before{}, after{};
};

template <class Train, class Judge, int Rows = 7, class Place = place>
auto train_and_judge(int steps) {
  using T = typename Train::element;
  history<T> h;
  h.losses.resize(static_cast<std::size_t>(steps));
  using lowered = sw::runtime::lowered<Train>;
  for (int i = 0; i < lowered::parameter_count(); ++i)
    h.parameters.emplace_back(static_cast<std::size_t>(numel(lowered::parameter_spec(i))));
  for (int i = 0; i < lowered::buffer_count(); ++i)
    h.buffers.emplace_back(static_cast<std::size_t>(numel(lowered::buffer_spec(i))));
  Place::template launch<typename Train::mesh_type>([&](auto& rank) {
    using Rank = std::remove_reference_t<decltype(rank)>;
    sw::executor<Train, Rank> run(rank);
    sw::executor<Judge, Rank> judge(rank);
    run.initialise(5);
    const auto judged = [&] {
      judge.copy_parameters(run);
      judge.set_input(0, numbers<T>(Rows * 5, 9));
      judge.run(step_numbers(1));
      return judge.loss();
    };
    const T before = judged();
    for (int s = 1; s <= steps; ++s) {
      run.set_input(0, numbers<T>(Rows * 5, s));
      run.set_input(1, numbers<T>(Rows * 3, s + 20));
      run.run(step_numbers(s));
      const T loss = run.loss();
      if (rank.index() == 0) h.losses[static_cast<std::size_t>(s - 1)] = loss;
    }
    const T after = judged();
    for (int i = 0; i < run.parameter_count(); ++i) run.gather_parameter(i, h.parameters[static_cast<std::size_t>(i)]);
    for (int i = 0; i < run.buffer_count(); ++i) run.gather_buffer(i, h.buffers[static_cast<std::size_t>(i)]);
    if (rank.index() == 0) {
      h.before = before;
      h.after = after;
    }
  });
  return h;
}

// The largest difference between two histories, against 1.
template <class T>
double difference(const history<T>& a, const history<T>& b) {
  double most = std::abs(static_cast<double>(a.before - b.before));
  const auto meet = [&](const std::vector<T>& x, const std::vector<T>& y) {
    if (x.size() != y.size()) most = INFINITY;
    for (std::size_t i = 0; i < x.size() && i < y.size(); ++i) {
      const double d = std::abs(static_cast<double>(x[i] - y[i]));
      most = d <= most ? most : d;
    }
  };
  meet({a.after}, {b.after});
  meet(a.losses, b.losses);
  if (a.parameters.size() != b.parameters.size() || a.buffers.size() != b.buffers.size()) return INFINITY;
  for (std::size_t i = 0; i < a.parameters.size(); ++i) meet(a.parameters[i], b.parameters[i]);
  for (std::size_t i = 0; i < a.buffers.size(); ++i) meet(a.buffers[i], b.buffers[i]);
  return most;
}

}  // namespace test::running
