// SPDX-License-Identifier: Apache-2.0
// Gradients that two mesh axes sum: fused axis by axis, with the same bits as without, alone and together with other passes, where
// norms see parts of sequences, and moved to the next iteration.
#include <shardwise/module/iterated.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/iteration/iter_move.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/optimizer/optimizer_blocks.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/runtime/executor/iterated.hpp>

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
  using inputs = sw::inputs<
      sw::input_tensor<double, sw::shape<rows, width>, sw::on<outer<M>, sw::shard<0>>, sw::on<inner<N>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    const auto y = m(x);
    return sw::sum(y * y);
  }
};
// Two linear layers, whose gradients both axes sum.
template <int M, int N, class... Passes>
using step = sw::train_step<mlp_module, task<M, N>, sw::plan<sw::data_parallel<outer<M>>, sw::data_parallel<inner<N>>>,
                            mesh<M, N>, sw::adam<>, sw::pipeline<Passes...>, double>;

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
    n += sw::detail::transition_at(Step::program, i) == sw::transition::all_reduce && Step::program.nodes[i].a.v[0] == axis
             ? 1
             : 0;
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

// Norms between tensor-parallel layers, of sequences that the inner axis splits: the gradients of the norm and of the last bias
// are to be summed on both axes, those of the weights on the outer one.
template <class Bound = sw::unbound>
struct normed : sw::module<normed<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::layer_norm_module<8>, norm), (sw::linear<8, 12>, up), (sw::linear<12, 8>, down));
  constexpr auto forward(const auto& x) const { return down(sw::relu(up(norm(x)))) + x; }
};
template <int M, int N>
struct sequences {
  using inputs = sw::inputs<
      sw::input_tensor<double, sw::shape<4, 6, 8>, sw::on<outer<M>, sw::shard<0>>, sw::on<inner<N>, sw::shard<1>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    const auto y = m(x);
    return sw::sum(y * y);
  }
};
template <int M, int N, class... Passes>
using sequence_step = sw::train_step<normed, sequences<M, N>,
                                     sw::plan<sw::data_parallel<outer<M>>, sw::at<"norm", sw::sequence_parallel<inner<N>>>,
                                              sw::at<"up", sw::colwise<inner<N>, 1, sw::input<sw::shard<1>>>>,
                                              sw::at<"down", sw::rowwise<inner<N>, 1, sw::output<sw::shard<1>>>>>,
                                     mesh<M, N>, sw::adam<>, sw::pipeline<Passes...>, double>;
// 6 gradients and the loss on the outer axis, of them 3 and the loss on the inner one; two buckets, the one as above
static_assert(sums_on<sequence_step<2, 2>>(0) == 7 && sums_on<sequence_step<2, 2>>(1) == 4);
static_assert(sums_on<sequence_step<2, 2, sw::comm_fusion_in_place<>>>(0) == 3 &&
              sums_on<sequence_step<2, 2, sw::comm_fusion_in_place<>>>(1) == 2);
static_assert(sums_on<sequence_step<2, 2, sw::comm_fusion_with_concat<>>>(0) == 3 &&
              sums_on<sequence_step<2, 2, sw::comm_fusion_with_concat<>>>(1) == 2);

// Losses of all iterations, then parameters: of one rank after the other.
template <class Step, int M, int N>
std::vector<double> train(int iterations, std::size_t elements) {
  std::vector<double> all[M * N];
  sw::launch<mesh<M, N>>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    std::vector<double>& mine = all[rank.index()];
    const auto run = [&](auto& ex, auto& leaves, auto&&... last) {
      sw::step_env env;
      env.lr = 0.01;
      leaves.initialise(3);
      for (int k = 0; k < iterations; ++k) {
        std::vector<double> x(elements);
        for (std::size_t i = 0; i < x.size(); ++i)
          x[i] = static_cast<double>((i * 5 + static_cast<std::size_t>(k)) % 11) - 4;
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
  std::vector<double> joined;
  for (const auto& v : all) joined.insert(joined.end(), v.begin(), v.end());
  return joined;
}

template <class Plain, class Fused, int M, int N>
void check_same(std::size_t elements) {
  CAPTURE(M);
  CAPTURE(N);
  const auto want = train<Plain, M, N>(4, elements), got = train<Fused, M, N>(4, elements);
  REQUIRE(want.size() == got.size());
  CHECK(want[3] < want[0]);
  CHECK(want[3] > 0);
  for (std::size_t i = 0; i < want.size(); ++i) CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-12));
}

template <int M, int N, class... Passes>
void check_step() {
  check_same<step<M, N>, step<M, N, Passes...>, M, N>(rows * width);
}
template <int M, int N, class... Passes>
void check_sequences() {
  check_same<sequence_step<M, N>, sequence_step<M, N, Passes...>, M, N>(4 * 6 * 8);
}

using listed = step<2, 2, sw::fused_optimizer, sw::comm_fusion_in_place<>, sw::remove_copy_from_optimizer>;
// Both sums of the gradients and the update, or the second sum and the update, one iteration later.
using both_later =
    sw::iterated<listed, sw::iter_move_grads_and_optimizers<"all_reduce", "einsum">, sw::raise_comms, sw::sink_waits>;
using second_later =
    sw::iterated<listed, sw::iter_move_grads_and_optimizers<"all_reduce_1", "einsum">, sw::raise_comms, sw::sink_waits>;
static_assert(sums_on<both_later::setup>(0) == 1 && sums_on<both_later::setup>(1) == 1);
static_assert(sums_on<second_later::setup>(0) == 2 && sums_on<second_later::setup>(1) == 1);
static_assert(sums_on<both_later::main>(0) == 2 && sums_on<both_later::main>(1) == 2);
static_assert(sums_on<second_later::cleanup>(0) == 2 && sums_on<second_later::cleanup>(1) == 3);

}  // namespace

TEST_CASE("comm_fusion: gradients of two axes train as without it") {
  check_step<2, 2, sw::comm_fusion_in_place<>>();
  check_step<2, 2, sw::comm_fusion_with_concat<>>();
  check_step<1, 2, sw::comm_fusion_in_place<>>();
}
TEST_CASE("comm_fusion: of two axes, with one update for all, kernels fused and waits put off") {
  check_step<2, 2, sw::fused_optimizer, sw::comm_fusion_in_place<>, sw::remove_copy_from_optimizer, sw::schedule_comm_wait,
             sw::fuse_kernels>();
}
TEST_CASE("comm_fusion: norms of split sequences, whose gradients are of two axes and their neighbours' of one") {
  check_sequences<2, 2, sw::comm_fusion_in_place<>>();
  check_sequences<2, 2, sw::comm_fusion_with_concat<>>();
  check_sequences<1, 2, sw::fused_optimizer, sw::comm_fusion_in_place<>, sw::remove_copy_from_optimizer>();
}
TEST_CASE("comm_fusion: of two axes, moved to the next iteration") {
  check_same<step<2, 2>, both_later, 2, 2>(rows * width);
  check_same<step<2, 2>, second_later, 2, 2>(rows * width);
}
