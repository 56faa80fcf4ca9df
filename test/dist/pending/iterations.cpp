// SPDX-License-Identifier: Apache-2.0
// Sums of gradients that travel beside the next iteration's forward pass: where they start and are waited for, and the
// losses and parameters of the plain step, bit by bit.
#include <shardwise/module/iterated.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/communication/overlap.hpp>
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
struct dp : sw::axis<N> {};
template <int N>
using mesh = sw::mesh<dp<N>>;
constexpr int layers = 4, width = 512, rows = 7;  // a layer's gradients are a bucket
template <int N, class... Passes>
using step =
    sw::train_step<relu_stack<layers, width>::template model, sum_task<float, rows, width, sw::on<dp<N>, sw::shard<0>>>,
                   sw::plan<sw::data_parallel<dp<N>>>, mesh<N>, sw::adam<>, sw::pipeline<Passes...>>;
template <int N, class... Passes>
using listed = step<N, sw::fused_optimizer, sw::comm_fusion_in_place<1>, sw::remove_copy_from_optimizer, Passes...>;

// Reduction number 3 - k is layer k's.
template <int N>
using moved = sw::iterated<listed<N>, sw::iter_move_grads_and_optimizers<"all_reduce_2", "einsum_1">,
                           sw::iter_move_grads_and_optimizers<"all_reduce", "einsum_3">, sw::raise_comms, sw::sink_waits>;
// The same after waits have been put in and the loss, which is there first, goes first.
template <int N>
using moved_later =
    sw::iterated<listed<N, sw::split_fused_optimizer<0, 1, 2, 3>, sw::expedite_comms>,
                 sw::iter_move_grads_and_optimizers<"all_reduce_3", "einsum_1">, sw::raise_comms, sw::sink_waits>;

// --- structure -------------------------------------------------------------------------------------------------------

constexpr int first_of(const auto& g, op_code op, int from = 0) {
  for (int i = from; i < g.node_count; ++i)
    if (g.nodes[i].op == op) return i;
  return -1;
}
// Kernels between collective number k and its wait.
constexpr int kernels_beside(const auto& g, const char* name) {
  const int c = sw::find_node(g, name);
  int n = 0;
  for (int i = c + 1; i < g.node_count; ++i) {
    if (g.nodes[i].op == op_code::wait && sw::collective_of(g, i) == c) return n;
    n += sw::runs_kernel(g.nodes[i].op) && !sw::is_collective(g, i) ? 1 : 0;
  }
  return -1;
}

using main_of_two = moved<2>::main;
constexpr const auto& graph = main_of_two::program;
// what is moved starts before anything computes, the sum that is needed first goes first, and each update stands where it
// was moved to
static_assert(sw::find_node(graph, "all_reduce_1") < sw::find_node(graph, "einsum"));
static_assert(sw::find_node(graph, "adam") > sw::find_node(graph, "relu") &&
              sw::find_node(graph, "adam") < sw::find_node(graph, "einsum_1"));
static_assert(sw::find_node(graph, "adam_1") > sw::find_node(graph, "relu_2") &&
              sw::find_node(graph, "adam_1") < sw::find_node(graph, "einsum_3"));
static_assert(kernels_beside(graph, "all_reduce") == 3);     // einsum, add, relu
static_assert(kernels_beside(graph, "all_reduce_1") == 11);  // of three layers, and the first update with its counters
static_assert(kernels_beside(moved<2>::setup::program, "all_reduce") > 0);  // layer 2's beside what is left of backward
static_assert(moved<2>::kept_values == 2);
static_assert(moved<2>::setup::traffic.collectives == 3 && moved<2>::main::traffic.collectives == 5 &&
              moved<2>::cleanup::traffic.collectives == 7);
static_assert(moved_later<2>::kept_values == 1 && kernels_beside(moved_later<2>::main::program, "all_reduce") == 3);

// A collective's operand and result, from its start to its last wait, share no byte with what other nodes write.
template <class Program>
int disturbed() {
  const auto& g = Program::program;
  const auto& plan = Program::memory::value;
  int wrong = 0;
  for (int w = 0; w < g.node_count; ++w) {
    if (g.nodes[w].op != op_code::wait) continue;
    const int c = sw::collective_of(g, w);
    if (c < 0) continue;
    for (const int mine : {plan.owner[g.nodes[c].in[0]], plan.owner[c]})
      for (int i = c + 1; i < w; ++i) {
        const int own = plan.owner[i];
        if (own == mine || plan.bytes[own] == 0 || !sw::runs_kernel(g.nodes[i].op)) continue;
        const bool apart = plan.offset[own] + plan.bytes[own] <= plan.offset[mine] ||
                           plan.offset[mine] + plan.bytes[mine] <= plan.offset[own];
        wrong += apart ? 0 : 1;
      }
  }
  return wrong;
}

// --- results ---------------------------------------------------------------------------------------------------------

// Losses, then parameters, of rank 0; all ranks' are equal.
template <class S, int N>
std::vector<float> train(int iterations) {
  std::vector<std::vector<float>> all(N);
  sw::launch<mesh<N>>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    std::vector<float>& mine = all[static_cast<std::size_t>(rank.index())];
    const auto run = [&](auto& ex, auto& leaves, auto&&... last) {
      sw::step_env env;
      env.lr = 0.01;
      leaves.initialise(3);
      for (int k = 0; k < iterations; ++k) {
        std::vector<float> x(rows * width);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i + static_cast<std::size_t>(k)) % 7) - 3;
        leaves.set_input(0, x);
        env.step = k + 1;
        ex.run(env, last(k)...);
        mine.push_back(ex.loss());
      }
      for (int i = 0; i < leaves.parameter_count(); ++i)
        for (const float v : leaves.parameter(i)) mine.push_back(v);
    };
    if constexpr (requires { typename S::main; }) {
      sw::iterated_executor<S, rank_type> ex(rank, sw::executor_checks::poison);
      run(ex, ex.main(), [&](int k) { return k + 1 == iterations; });
    } else {
      sw::executor<S, rank_type> ex(rank);
      run(ex, ex);
    }
  });
  for (const auto& v : all) {
    const bool same = v == all[0];
    CHECK(same);
  }
  return all[0];
}
template <class Moved, int N>
void check(std::initializer_list<int> counts) {
  CHECK(disturbed<typename Moved::setup>() == 0);
  CHECK(disturbed<typename Moved::main>() == 0);
  CHECK(disturbed<typename Moved::cleanup>() == 0);
  for (const int iterations : counts) {
    const bool same = train<Moved, N>(iterations) == train<step<N>, N>(iterations);
    CHECK(same);
  }
}

TEST_CASE("pending: sums that travel during the next forward pass leave the plain step's bits") {
  check<moved<2>, 2>({2, 3, 5});
  check<moved<3>, 3>({4});
}
TEST_CASE("pending: the same with waits before the move and two lists of updates") { check<moved_later<2>, 2>({2, 4}); }

}  // namespace
