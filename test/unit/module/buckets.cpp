// SPDX-License-Identifier: Apache-2.0
// data_parallel with buckets: as many all-reduces as comm_fusion_buckets says, on that axis alone; where the pass stands among those
// of the pipeline; and the bits of a step without.
#include <doctest/doctest.h>

#include <shardwise/io/dump.hpp>
#include <shardwise/pass/communication/buckets.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/optimizer/optimizer_blocks.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/shardwise.hpp>

#include <cmath>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::transition;

template <int N>
struct dp : sw::axis<N> {};
struct rep : sw::axis<2> {};
struct tp : sw::axis<2> {};

template <int Width>
struct stacks {
  template <class Bound = sw::unbound>
  struct net : sw::module<net<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::linear<Width, Width>, a), (sw::linear<Width, Width>, b), (sw::linear<Width, Width>, c));
    constexpr auto forward(const auto& x) const { return c(sw::tanh(b(sw::tanh(a(x))))); }
  };
  template <class B>
  using model = net<B>;
};
template <int Width, class... Axes>
struct squares {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<6, Width>, sw::on<Axes, sw::shard<0>>...>>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    const auto y = m(x);
    return sw::mean(y * y);
  }
};

template <int Width, class Plan, class Pipeline = sw::pipeline<>, class Mesh = sw::mesh<dp<2>>, class... Axes>
using step_over =
    sw::train_step<stacks<Width>::template model, squares<Width, Axes...>, Plan, Mesh, sw::adam<>, Pipeline, double>;
template <int Width, class Plan, class Pipeline = sw::pipeline<>, int Ranks = 2>
using step = step_over<Width, Plan, Pipeline, sw::mesh<dp<Ranks>>, dp<Ranks>>;

template <class Graph>
constexpr int sums_on(const Graph& g, int axis) {
  int n = 0;
  for (int i = 0; i < g.node_count; ++i)
    n += sw::detail::transition_at(g, i) == transition::all_reduce &&
                 sw::attributes_of<sw::redistribute_attributes>(g.nodes[i].a).axis == axis
             ? 1
             : 0;
  return n;
}

// --- how many ------------------------------------------------------------------------------------------------------------

using plain = sw::plan<sw::data_parallel<dp<2>>>;
template <std::int64_t CapMiB>
using in_buckets = sw::plan<sw::data_parallel<dp<2>, sw::buckets<CapMiB>>>;

// Weights of 2 MiB and biases of 4 KiB, from the last layer to the first one; and the loss.
template <std::int64_t CapMiB>
constexpr int sums = sums_on(step<512, in_buckets<CapMiB>>::program, 0);
static_assert(sums_on(step<512, plain>::program, 0) == 7);
static_assert(sums<1> == 1 + 3);  // a layer each
static_assert(sums<2> == 1 + 3);  // a weight alone is as much
static_assert(sums<3> == 1 + 2);  // the first mebibyte, and the rest, which is more than 3
static_assert(sums<25> == 1 + 2);
static_assert(std::is_same_v<sw::buckets<>, sw::buckets<25>>);

TEST_CASE("buckets: the option is the pass") {
  using listed = step<512, plain, sw::pipeline<sw::comm_fusion_in_place<3>>>;
  CHECK(to_text(step<512, in_buckets<3>>::program) == to_text(listed::program));
  CHECK(step<512, in_buckets<3>>::comm_bytes<dp<2>> == listed::comm_bytes<dp<2>>);
  CHECK(to_text(step<512, plain>::program) != to_text(listed::program));
}

// --- where the pass stands ------------------------------------------------------------------------------------------------

template <class Step>
using passes_of = typename sw::detail::pipeline_of<Step>::type;
using pass = sw::comm_fusion_on_axes<25>;
static_assert(std::is_same_v<passes_of<step<4, plain>>, sw::pipeline<>>);
static_assert(std::is_same_v<passes_of<step<4, in_buckets<25>>>, sw::pipeline<pass>>);
static_assert(std::is_same_v<
              passes_of<step<4, in_buckets<25>, sw::pipeline<sw::merge_common, sw::schedule_comm_wait, sw::fuse_kernels>>>,
              sw::pipeline<sw::merge_common, pass, sw::schedule_comm_wait, sw::fuse_kernels>>);
static_assert(std::is_same_v<passes_of<step<4, in_buckets<25>, sw::pipeline<sw::fuse_kernels>>>,
                             sw::pipeline<pass, sw::fuse_kernels>>);
static_assert(
    std::is_same_v<passes_of<step<4, in_buckets<25>, sw::pipeline<sw::fused_optimizer, sw::remove_copy_from_optimizer>>>,
                   sw::pipeline<sw::fused_optimizer, pass, sw::remove_copy_from_optimizer>>);

struct behind_buckets {  // a user's pass
  using shardwise_pass = void;
  using apply_after = sw::passes_list<sw::comm_fusion>;
  template <class Graph>
  static constexpr sw::finding apply(Graph&) {
    return {};
  }
};
static_assert(
    std::is_same_v<passes_of<step<4, in_buckets<25>, sw::pipeline<behind_buckets>>>, sw::pipeline<pass, behind_buckets>>);

// --- axes ----------------------------------------------------------------------------------------------------------------

template <class... E>
using both = step_over<8, sw::plan<E...>, sw::pipeline<>, sw::mesh<rep, dp<2>>, rep, dp<2>>;
// six gradients on either axis, and the loss
static_assert(sums_on(both<sw::data_parallel<rep>, sw::data_parallel<dp<2>>>::program, 0) == 7);
static_assert(sums_on(both<sw::data_parallel<rep, sw::buckets<>>, sw::data_parallel<dp<2>>>::program, 0) == 2 &&
              sums_on(both<sw::data_parallel<rep, sw::buckets<>>, sw::data_parallel<dp<2>>>::program, 1) == 7);
static_assert(sums_on(both<sw::data_parallel<rep>, sw::data_parallel<dp<2>, sw::buckets<>>>::program, 0) == 7 &&
              sums_on(both<sw::data_parallel<rep>, sw::data_parallel<dp<2>, sw::buckets<>>>::program, 1) == 2);
static_assert(sums_on(both<sw::data_parallel<rep, sw::buckets<7>>, sw::data_parallel<dp<2>, sw::buckets<>>>::program, 0) ==
                  2 &&
              sums_on(both<sw::data_parallel<rep, sw::buckets<7>>, sw::data_parallel<dp<2>, sw::buckets<>>>::program, 1) ==
                  2);
// each axis has its own bound: the three layers' 2 MiB, one by one or behind the first together
template <std::int64_t Rep, std::int64_t Dp>
using bounds = step_over<512, sw::plan<sw::data_parallel<rep, sw::buckets<Rep>>, sw::data_parallel<dp<2>, sw::buckets<Dp>>>,
                         sw::pipeline<>, sw::mesh<rep, dp<2>>, rep, dp<2>>;
static_assert(sums_on(bounds<1, 25>::program, 0) == 4 && sums_on(bounds<1, 25>::program, 1) == 3);
// shards that are copied, and rows whose states are split: what is still all-reduced is in buckets
using copied = both<sw::data_parallel<rep, sw::buckets<>>, sw::fully_shard<dp<2>>>;
using rows = both<sw::data_parallel<rep, sw::buckets<>>, sw::data_parallel<dp<2>, sw::shard_optimizer_states>>;
static_assert(sums_on(copied::program, 0) == 2 && sums_on(rows::program, 0) == 2);

// --- values --------------------------------------------------------------------------------------------------------------

template <class A, class B>
void check_bits(int width) {
  sw::launch<typename A::mesh_type>([&](auto& rank) {
    sw::executor<A> a(rank);
    sw::executor<B> b(rank);
    a.initialise(3);
    b.initialise(3);
    std::vector<double> x(static_cast<std::size_t>(6 * width));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.7 * static_cast<double>(i)) + 0.1;
    sw::step_env env;
    env.lr = 0.05;
    for (env.step = 1; env.step <= 3; ++env.step) {
      a.set_input(0, x);
      b.set_input(0, x);
      a.run(env);
      b.run(env);
      CHECK(a.loss() == b.loss());
    }
    for (int i = 0; i < a.parameter_count(); ++i) {
      const auto p = a.parameter(i), q = b.parameter(i);
      REQUIRE(p.size() == q.size());
      bool same = true;
      for (std::size_t k = 0; k < p.size(); ++k) same = same && p[k] == q[k];
      CHECK(same);
    }
  });
}
template <int Ranks, class... Options>
using small = step<5, sw::plan<sw::data_parallel<dp<Ranks>, sw::average_gradients, Options...>>, sw::pipeline<>, Ranks>;
TEST_CASE("buckets: the bits of a step without them") {
  check_bits<small<1>, small<1, sw::buckets<>>>(5);
  check_bits<small<2>, small<2, sw::buckets<>>>(5);
  check_bits<small<3>, small<3, sw::buckets<>>>(5);
  check_bits<small<4>, small<4, sw::buckets<1>>>(5);
  check_bits<step<384, plain>, step<384, in_buckets<1>>>(384);  // several
  check_bits<step<384, plain>, step<384, in_buckets<1>, sw::pipeline<sw::fused_optimizer, sw::schedule_comm_wait>>>(384);
}
TEST_CASE("buckets beside tensor parallelism, shards, and states in shards") {
  using split = sw::at<"a", sw::colwise<tp>>;
  using joined = sw::at<"b", sw::rowwise<tp>>;
  using mesh = sw::mesh<dp<3>, tp>;
  check_bits<step_over<8, sw::plan<sw::data_parallel<dp<3>>, split, joined>, sw::pipeline<>, mesh, dp<3>>,
             step_over<8, sw::plan<sw::data_parallel<dp<3>, sw::buckets<>>, split, joined>, sw::pipeline<>, mesh, dp<3>>>(8);
  check_bits<both<sw::data_parallel<rep>, sw::fully_shard<dp<2>>>, copied>(8);
  check_bits<both<sw::data_parallel<rep>, sw::data_parallel<dp<2>, sw::shard_optimizer_states>>, rows>(8);
}

}  // namespace
