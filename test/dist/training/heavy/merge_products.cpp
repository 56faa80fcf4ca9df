// SPDX-License-Identifier: Apache-2.0
// Models trained with merged products and joined adjoints of norms have the losses and parameters that they have without,
// on 1 to 4 ranks, where shards are equal and where they are not.
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/analysis/kernels.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <gpt.hpp>
#include <vector>

namespace {

namespace sw = shardwise;
using namespace test::gpt;

constexpr int steps = 3;

template <class Plain, class Merged, class Train>
double worst_difference(Train&& train) {
  static_assert(Merged::traffic.order_hash == Plain::traffic.order_hash);
  const auto want = train.template operator()<Plain>(sw::executor_checks::none);
  const auto got = train.template operator()<Merged>(sw::executor_checks::poison);
  using element = typename Plain::element;
  double most = 0;
  const auto compare = [&most](const std::vector<element>& a, const std::vector<element>& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double x = static_cast<double>(a[i]), d = std::abs(x - static_cast<double>(b[i])) / (1 + std::abs(x));
      most = d >= most || !(d == d) ? d : most;
    }
  };
  for (std::size_t r = 0; r < want.losses.size(); ++r) compare(want.losses[r], got.losses[r]);
  for (std::size_t p = 0; p < want.parameters.size(); ++p) compare(want.parameters[p], got.parameters[p]);
  CHECK(want.losses[0].front() > want.losses[0].back());
  return most;
}

// --- a language model ------------------------------------------------------------------------------------------------

template <int D, int N, template <class, class> class Plan, class... Passes>
using model_step = step<double, D, N, Plan, sizes, test::place, sw::pipeline<Passes...>>;

constexpr auto train_model = []<class Step>(sw::executor_checks checks) { return train<Step>(steps, checks); };

template <int D, int N, template <class, class> class Plan = tensor_parallel>
double model() {
  return worst_difference<model_step<D, N, Plan>,
                          model_step<D, N, Plan, sw::merge_products, sw::fuse_kernels, sw::join_norm_adjoints>>(train_model);
}

template <class Step>
inline constexpr int kernels = sw::passes::kernel_calls(Step::program).kernels;

TEST_CASE("merged products: a language model trains the same on one rank and on two") {
  // two blocks: of each three projections, of their gradients and of what goes back and was added, one is left
  static_assert(kernels<model_step<1, 1, tensor_parallel, sw::merge_products>> ==
                kernels<model_step<1, 1, tensor_parallel>> - 2 * 8);
  CHECK(model<1, 1>() < 1e-12);
  CHECK(model<1, 2>() < 1e-12);
  CHECK(model<2, 1>() < 1e-12);
}
TEST_CASE("merged products: a language model trains the same on three ranks, whose shards differ") {
  // four heads on three ranks: the projections stay apart, as do rows of a batch that does not divide
  static_assert(kernels<model_step<1, 3, tensor_parallel, sw::merge_products>> ==
                kernels<model_step<1, 3, tensor_parallel>>);
  static_assert(kernels<model_step<3, 1, tensor_parallel, sw::merge_products>> ==
                kernels<model_step<3, 1, tensor_parallel>> - 2 * 2);
  CHECK(model<1, 3>() < 1e-12);
  CHECK(model<3, 1>() < 1e-12);
}
TEST_CASE("merged products: a language model trains the same on four ranks") {
  CHECK(model<2, 2>() < 1e-12);
  CHECK(model<1, 4, sequence_parallel>() < 1e-12);
}

// --- gates, with biases ----------------------------------------------------------------------------------------------

template <class Bound = sw::unbound>
struct gated : sw::module<gated<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<32, 64>, w1), (sw::linear<32, 64>, w3), (sw::linear<64, 32>, w2),
                    (sw::linear<32, 32>, w0));
  constexpr auto forward(const auto& x) const {
    const auto h = sw::tanh(w0(x));
    return w2(sw::gelu(w1(h)) * w3(h));
  }
};
template <class Dp>
struct gate_task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<8, 32>, sw::on<Dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    const auto d = m(x) - sw::scale(x, 0.5);
    return sw::scale(sw::sum(d * d), 1.0 / 256);
  }
};
template <int D, int N, class... Passes>
using gate_step =
    sw::train_step<gated, gate_task<dp<D>>,
                   sw::plan<sw::data_parallel<dp<D>>, sw::at<"w[13]", sw::colwise<tp<N>>>, sw::at<"w2", sw::rowwise<tp<N>>>>,
                   sw::mesh<dp<D>, tp<N>>, sw::adam<>, sw::pipeline<Passes...>, double>;

constexpr auto train_gate = []<class Step>(sw::executor_checks checks) {
  history<double> h;
  h.losses.resize(Step::mesh_type::size);
  h.parameters.resize(Step::parameter_total);
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(rank, checks);
    ex.initialise(7);
    std::vector<double> x(8 * 32);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i * 7919U % 401U) / 200 - 1;
    ex.set_input(0, x);
    for (int s = 1; s <= steps; ++s) {
      sw::step_env env = environment(s);
      env.lr = 0.01;
      ex.run(env);
      h.losses[static_cast<std::size_t>(rank.index())].push_back(ex.loss());
    }
    for (int i = 0; i < ex.parameter_count(); ++i) {
      std::vector<double> whole(static_cast<std::size_t>(numel(ex.parameter_spec(i))));
      ex.gather_parameter(i, whole);
      if (rank.index() == 0) h.parameters[static_cast<std::size_t>(i)] = whole;
    }
  });
  return h;
};

template <int D, int N>
double gate() {
  using plain = gate_step<D, N>;
  using fused = gate_step<D, N, sw::fuse_kernels>;
  using merged = gate_step<D, N, sw::merge_products, sw::fuse_kernels>;
  // one product for two, their gradients' likewise, and one for what goes back and was added; what follows is a kernel
  static_assert(kernels<merged> + 2 <= kernels<fused>);
  return worst_difference<plain, merged>(train_gate);
}

TEST_CASE("merged products: gates with biases train the same on one, two and four ranks") {
  CHECK(gate<1, 1>() < 1e-12);
  CHECK(gate<1, 2>() < 1e-12);
  CHECK(gate<2, 2>() < 1e-12);
}

}  // namespace
