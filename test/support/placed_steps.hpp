// SPDX-License-Identifier: Apache-2.0
// One small model with parameters, buffers and states under plans of all kinds: whole, rows, columns, strided, uneven, empty shards;
// on meshes of 1, 2, 3, 4 and 8 ranks.
#pragma once

#include <place.hpp>

#include <cmath>
#include <string_view>
#include <vector>

namespace test::placed {

using sw::moment;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};
template <int D, int N>
using mesh = sw::mesh<dp<D>, tp<N>>;

// Splits every tensor of a module along a dim, as far as it has that dim; each is made whole where it is read.
template <class Axis, int Dim, int Factor = 1>
struct rows : sw::detail::style_base {
  using axis = Axis;
  static constexpr bool accepts(sw::module_kind) { return true; }
  static constexpr sw::detail::maybe_placement parameter(sw::module_kind, std::string_view, int rank) {
    return {Dim < rank, sw::strided_shard_value(Dim, Factor)};
  }
};
template <int D, int N, class X>
constexpr auto gathered(const X& x) {
  constexpr bool on_dp = X::sp.place[0].is_shard();
  if constexpr (on_dp) return gathered<D, N>(sw::redistribute<dp<D>, sw::reduced>(x));
  else return sw::redistribute<tp<N>, sw::replicate>(x);
}

// 7 x 5 and 5: uneven on 2, 3 and 4 ranks, empty shards on 8.
template <int D, int N>
struct models {
  template <class Bound = sw::unbound>
  struct inner : sw::module<inner<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<7, 5>, sw::init::normal<1, 2>>, weight),
                      (sw::parameter<sw::shape<5>, sw::init::normal<1, 3>>, bias),
                      (sw::buffer<sw::shape<5>, sw::init::ones>, seen));
    constexpr auto forward(const auto& x) const {
      const auto y = sw::linear_product(x, sw::transpose<0, 1>(gathered<D, N>(weight))) + gathered<D, N>(bias);
      sw::add_(seen, bias);
      return y;
    }
  };
  template <class Bound = sw::unbound>
  struct net : sw::module<net<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (inner<>, first), (inner<>, second));
    template <class B>
    using rebound = net<B>;
    constexpr auto forward(const auto& x) const { return first(x) + sw::tanh(second(x)); }
  };
  template <class B>
  using net_of = net<B>;
};
template <int D>
struct task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<8, 7>, sw::on<dp<D>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    const auto y = m(x);
    return sw::mean(y * y);
  }
};
template <int D, int N, class Optimizer, class Pipeline, class... E>
using step = sw::train_step<models<D, N>::template net_of, task<D>, sw::plan<sw::data_parallel<dp<D>>, E...>, mesh<D, N>,
                            Optimizer, Pipeline, double>;
template <int D, int N, class... E>
using adam_step = step<D, N, sw::adam<>, sw::pipeline<>, E...>;
template <int D, int N, class Style, class Other = Style>
using split_step = adam_step<D, N, sw::at<"first", Style>, sw::at<"second", Other>>;

inline constexpr const char* parameters[] = {"first.weight", "first.bias", "second.weight", "second.bias"};
inline constexpr const char* buffers[] = {"first.seen", "second.seen"};

inline std::vector<double> numbers(std::size_t n) {
  std::vector<double> v;
  for (std::size_t i = 0; i < n; ++i) v.push_back(std::sin(1.3 * static_cast<double>(i)) + 0.1);
  return v;
}
template <class Executor>
void train(Executor& ex, int from, int to) {
  ex.set_input(0, numbers(56));
  sw::step_env env;
  env.lr = 0.05;
  for (env.step = from; env.step <= to; ++env.step) ex.run(env);
}

// Everything, whole, as this rank gets it.
template <class Executor>
std::vector<std::vector<double>> everything(Executor& ex, int root = -1) {
  std::vector<std::vector<double>> r;
  for (const char* name : parameters) {
    r.push_back(ex.full_parameter(name, root));
    r.push_back(ex.full_state(name, moment::first, root));
    r.push_back(ex.full_state(name, moment::second, root));
  }
  for (const char* name : buffers) r.push_back(ex.full_buffer(name, root));
  return r;
}

using whole2 = adam_step<2, 1>;
using rows2 = split_step<1, 2, rows<tp<2>, 0>>;
using columns2 = split_step<2, 1, rows<dp<2>, 1>, rows<dp<2>, 0>>;
using whole4 = adam_step<4, 1>;
using both4 = split_step<2, 2, rows<dp<2>, 0>, rows<tp<2>, 1>>;
using strided4 = adam_step<2, 2, sw::at<"*", rows<dp<2>, 0, 2>, rows<tp<2>, 0>>>;
using rows4 = split_step<1, 4, rows<tp<4>, 0>, rows<tp<4>, 1>>;
using whole8 = adam_step<8, 1>;
using rows8 = split_step<8, 1, rows<dp<8>, 0>>;
using strided8 = adam_step<2, 4, sw::at<"first", rows<dp<2>, 0, 4>, rows<tp<4>, 0>>>;

}  // namespace test::placed
