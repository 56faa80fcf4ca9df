// SPDX-License-Identifier: Apache-2.0
// Gradients of two bytes: where norm and update read them as they are, where a cast stays, what memory that saves, in how many launches.
#include <cstdint>

#include <shardwise/module/layers.hpp>
#include <shardwise/module/train_step.hpp>
#include <shardwise/pass/analysis/kernels.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>

namespace {

namespace sw = shardwise;
using sw::bf16;
using sw::dtype;
using sw::mixed;
using sw::op_code;

template <int N>
struct dp : sw::axis<N> {};

// Two layers: four parameters, of which each has one gradient.
template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<64, 64>, up), (sw::linear<64, 64>, down));
  constexpr auto forward(const auto& x) const { return down(sw::relu(up(x))); }
};
inline constexpr int parameters = 4;
template <class Axis>
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 64>, sw::on<Axis, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(sw::cast<float>(m(x))); }
};
template <int N, class Optimizer, class Pipeline, class... E>
using step_with =
    sw::train_step<net, task<dp<N>>, sw::plan<sw::data_parallel<dp<N>>, E...>, sw::mesh<dp<N>>, Optimizer, Pipeline>;
template <int N, class... E>
using step = step_with<N, sw::clip_norm<sw::adamw<>>, sw::pipeline<>, E...>;

template <class Step>
constexpr dtype type_at(int i) {
  return Step::program.spec_of(i).type;
}
// Nodes of `op`, those whose operand k is of type t, and those of which it is not.
template <class Step>
constexpr int count(op_code op) {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i) n += Step::program.nodes[i].op == op ? 1 : 0;
  return n;
}
template <class Step>
constexpr int reads(op_code op, int k, dtype t) {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i)
    n += Step::program.nodes[i].op == op && type_at<Step>(Step::program.nodes[i].in[k]) == t ? 1 : 0;
  return n;
}
// Casts to float, but for the one that the task writes.
template <class Step>
constexpr int casts_back() {
  int n = -1;
  for (int i = 0; i < Step::program.node_count; ++i)
    n += Step::program.nodes[i].op == op_code::cast && type_at<Step>(i) == dtype::f32 ? 1 : 0;
  return n;
}
template <class Step>
constexpr bool reads_low() {
  return casts_back<Step>() == 0 && reads<Step>(op_code::adam, 1, dtype::bf16) == parameters &&
         reads<Step>(op_code::sumsq, 0, dtype::bf16) == parameters &&
         reads<Step>(op_code::adam, 0, dtype::f32) == parameters && reads<Step>(op_code::adam, 2, dtype::f32) == parameters;
}
template <class Step>
constexpr bool reads_floats() {
  return casts_back<Step>() == parameters && reads<Step>(op_code::adam, 1, dtype::f32) == parameters &&
         reads<Step>(op_code::sumsq, 0, dtype::f32) == parameters;
}

// --- where there is no float copy -------------------------------------------------------------------------------------------

// On one rank nothing is summed; where the sum is in bf16 the summed gradient is read; else it is summed in float, and stays so.
static_assert(reads_low<step<1, mixed<bf16>>>() && reads_floats<step<2, mixed<bf16>>>());
static_assert(reads_low<step<2, mixed<bf16, sw::reduce_dtype<bf16>>>>());
template <int N, class... E>
using shards = sw::train_step<net, task<dp<N>>, sw::plan<sw::fully_shard<dp<N>>, mixed<bf16, E...>>, sw::mesh<dp<N>>,
                              sw::clip_norm<sw::adamw<>>>;
static_assert(reads_low<shards<1>>() && reads_floats<shards<2>>());
static_assert(reads_low<shards<2, sw::reduce_dtype<bf16>>>());
template <int N, class... Option>
using split_states =
    sw::train_step<net, task<dp<N>>, sw::plan<sw::data_parallel<dp<N>, sw::shard_optimizer_states>, mixed<bf16, Option...>>,
                   sw::mesh<dp<N>>, sw::clip_norm<sw::adamw<>>>;
static_assert(reads_low<split_states<1>>() && reads_floats<split_states<2>>());
static_assert(reads_low<split_states<2, sw::reduce_dtype<bf16>>>());
// Pieces of a batch are added up in float.
static_assert(reads<step<1, mixed<bf16>, sw::accumulate<2>>>(op_code::adam, 1, dtype::f32) == parameters);
// sgd's, too; the factor of a scaled loss is a float.
template <class... Pipeline>
using scaled = step_with<1, sw::sgd<true>, sw::pipeline<Pipeline...>, mixed<sw::f16>, sw::loss_scale<1024>>;
static_assert(reads<scaled<>>(op_code::sgd, 1, dtype::f16) == parameters && casts_back<scaled<>>() == 0);
static_assert(reads<scaled<>>(op_code::sgd, 2, dtype::f32) == parameters &&
              reads<scaled<>>(op_code::sgd, 3, dtype::f32) == parameters);

// --- memory -----------------------------------------------------------------------------------------------------------------

// The norm waits for all gradients, and that is this step's peak.
using whole = step<1>;
using low = step<1, mixed<bf16>>;
template <class Step>
constexpr std::int64_t use(sw::memory_kind k) {
  return Step::memory_use::value.kind[static_cast<int>(k)];
}
template <class Step>
constexpr std::int64_t without_scratch = Step::peak_bytes - use<Step>(sw::memory_kind::workspace);
inline constexpr std::int64_t elements = 2 * (64 * 64 + 64);
static_assert(use<whole>(sw::memory_kind::gradients) >= 4 * elements);
static_assert(use<low>(sw::memory_kind::gradients) >= 2 * elements && use<low>(sw::memory_kind::gradients) < 3 * elements);
static_assert(without_scratch<low> < without_scratch<whole>);

// --- launches, lists ----------------------------------------------------------------------------------------------------------

// Squares are added behind their sums, and go out together, as updates do; a gradient in float goes out apart.
template <class... E>
constexpr auto launches = sw::passes::kernel_calls(
    step_with<1, sw::clip_norm<sw::adamw<>>, sw::pipeline<sw::fuse_kernels>, mixed<bf16>, E...>::program);
static_assert(launches<>.of[static_cast<int>(op_code::sumsq)] == 1 && launches<>.of[static_cast<int>(op_code::adam)] == 1);
static_assert(launches<>.of[static_cast<int>(op_code::add)] == 0);
using float_down = sw::at<"down", mixed<float>>;
static_assert(launches<float_down>.of[static_cast<int>(op_code::sumsq)] == 2);
static_assert(launches<float_down>.of[static_cast<int>(op_code::adam)] == 2);

// A list has floats: the casts come back, each behind its gradient.
using listed = step_with<1, sw::clip_norm<sw::adamw<>>, sw::pipeline<sw::fused_optimizer>, mixed<bf16>>;
static_assert(casts_back<listed>() == parameters && count<listed>(op_code::adam) == 1);
static_assert(reads<listed>(op_code::sumsq, 0, dtype::bf16) == parameters);
static_assert(reads<listed>(op_code::mul, 0, dtype::f32) == parameters);
using unclipped = step_with<1, sw::adam<>, sw::pipeline<sw::fused_optimizer>, mixed<bf16>>;
static_assert(casts_back<unclipped>() == parameters && count<unclipped>(op_code::contiguous) == 0);

}  // namespace
