// SPDX-License-Identifier: Apache-2.0
// Gradients that two mesh axes sum: fused axis by axis, with the same bits as without, alone and together with other passes.
#include <shardwise/pass/fuse.hpp>
#include <shardwise/pass/fuse_collectives.hpp>
#include <shardwise/pass/list_optimizer.hpp>
#include <shardwise/pass/optimizer_blocks.hpp>
#include <shardwise/pass/waits.hpp>
#include <shardwise/runtime/iterated.hpp>

#include <doctest/doctest.h>

#include <models.hpp>
#include <vector>

namespace {

namespace sw = shardwise;
using namespace test;
using sw::op_code;

template <int N>
struct outer : sw::axis<N> {};
template <int N>
struct inner : sw::axis<N> {};
template <int M, int N>
using mesh = sw::mesh<outer<M>, inner<N>>;

constexpr int rows = 6, width = 10;
template <int M, int N>
struct task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<rows, width>, sw::on<outer<M>, sw::shard<0>>, sw::on<inner<N>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    const auto y = m(x);
    return sw::sum(y * y);
  }
};
// Two linear layers, whose gradients both axes sum.
template <int M, int N, class... Passes>
using step = sw::train_step<mlp_module, task<M, N>,
                            sw::plan<sw::data_parallel<outer<M>>, sw::data_parallel<inner<N>>>, mesh<M, N>, sw::adam<>,
                            sw::pipeline<Passes...>, double>;

template <class Step>
constexpr int count_of_op(op_code op) {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i) n += Step::program.nodes[i].op == op ? 1 : 0;
  return n;
}
template <class Step>
constexpr int sums_on(int axis) {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i)
    n += sw::detail::transition_at(Step::program, i) == sw::transition::all_reduce && Step::program.nodes[i].a.v[0] == axis ? 1 : 0;
  return n;
}

using plain = step<2, 2>;
using in_place = step<2, 2, sw::comm_fusion_in_place<>>;
using copied = step<2, 2, sw::comm_fusion_with_concat<>>;
// 4 gradients and the loss on each axis; of the gradients one bucket, which the second axis sums where the first has left it
static_assert(sums_on<plain>(0) == 5 && sums_on<plain>(1) == 5);
static_assert(sums_on<in_place>(0) == 2 && sums_on<in_place>(1) == 2);
static_assert(sums_on<copied>(0) == 2 && sums_on<copied>(1) == 2);
static_assert(count_of_op<in_place>(op_code::contiguous) == count_of_op<plain>(op_code::contiguous));
static_assert(count_of_op<copied>(op_code::contiguous) == count_of_op<plain>(op_code::contiguous) + 4);
static_assert(in_place::template comm_bytes<outer<2>> <= plain::template comm_bytes<outer<2>> + 64 * 4);
// on an axis of one rank nothing is summed
using line = step<1, 2, sw::comm_fusion_in_place<>>;
static_assert(sums_on<line>(0) == 0 && sums_on<line>(1) == 2);

template <class Step, int M, int N>
std::vector<double> train(int iterations) {
  std::vector<double> all[M * N];
  sw::launch<mesh<M, N>>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    std::vector<double>& mine = all[rank.index()];
    const auto run = [&](auto& ex, auto& leaves, auto&&... last) {
      sw::step_env env;
      env.lr = 0.01;
      leaves.initialise(3);
      for (int k = 0; k < iterations; ++k) {
        std::vector<double> x(rows * width);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>((i * 5 + static_cast<std::size_t>(k)) % 11) - 4;
        leaves.set_input(0, x);
        env.step = k + 1;
        ex.run(env, last(k)...);
        mine.push_back(ex.loss());
      }
      for (int i = 0; i < leaves.parameter_count(); ++i)
        for (const double v : leaves.parameter(i)) mine.push_back(v);
    };
    if constexpr (requires { typename Step::main; }) {
      sw::iterated_executor<Step, rank_type> ex(rank, sw::executor_checks::poison);
      run(ex, ex.main(), [&](int k) { return k + 1 == iterations; });
    } else {
      sw::executor<Step, rank_type> ex(rank, sw::executor_checks::poison);
      run(ex, ex);
    }
  });
  for (const auto& v : all) CHECK((v == all[0]));
  return all[0];
}

template <int M, int N, class... Passes>
void check_same() {
  CAPTURE(M);
  CAPTURE(N);
  const auto want = train<step<M, N>, M, N>(4), got = train<step<M, N, Passes...>, M, N>(4);
  REQUIRE(want.size() == got.size());
  CHECK(want[3] < want[0]);
  CHECK(want[3] > 0);
  for (std::size_t i = 0; i < want.size(); ++i) CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-12));
}

}  // namespace

TEST_CASE("comm_fusion: gradients of two axes train as without it") {
  check_same<2, 2, sw::comm_fusion_in_place<>>();
  check_same<2, 2, sw::comm_fusion_with_concat<>>();
  check_same<1, 2, sw::comm_fusion_in_place<>>();
}
TEST_CASE("comm_fusion: of two axes, with one update for all, kernels fused and waits put off") {
  check_same<2, 2, sw::fused_optimizer, sw::comm_fusion_in_place<>, sw::remove_copy_from_optimizer, sw::schedule_comm_wait, sw::fuse_kernels>();
}
