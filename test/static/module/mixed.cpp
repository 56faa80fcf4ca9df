// SPDX-License-Identifier: Apache-2.0
// mixed in types and graphs: which element types parameters, casts, activations, statistics, gradients and updates have, what a step
// sends and what memory it needs.
#include <cstdint>

#include <shardwise/module/function.hpp>
#include <shardwise/module/layers.hpp>
#include <shardwise/module/train_step.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/runtime/host/backend.hpp>

namespace {

namespace sw = shardwise;
using sw::bf16;
using sw::dtype;
using sw::mixed;
using sw::op_code;
using sw::transition;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

// 16 tokens of 64 words: 4096 elements of the table, 2 * 64 of the norm, 4096 + 64 of the layer.
template <class Bound = sw::unbound>
struct words : sw::module<words<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::embedding_table<64, 64>, table), (sw::layer_norm_module<64>, norm),
                    (sw::linear<64, 64>, head));
  constexpr auto forward(const auto& tokens) const { return head(norm(table(tokens))); }
};
inline constexpr std::int64_t elements = 2 * 4096 + 3 * 64;
struct task {
  using inputs = sw::inputs<sw::input_tensor<std::int32_t, sw::shape<4, 4>, sw::on<dp, sw::shard<0>>>,
                            sw::input_tensor<std::int32_t, sw::shape<4, 4>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& tokens, const auto& targets) const {
    return sw::cross_entropy(m(tokens), targets);
  }
};
template <class Pipeline, class... E>
using step_with = sw::train_step<words, task, sw::plan<E...>, mesh, sw::clip_norm<sw::adam<>>, Pipeline>;
template <class... E>
using step = step_with<sw::pipeline<>, E...>;

using whole = step<sw::data_parallel<dp>>;
using low = step<sw::data_parallel<dp>, mixed<bf16>>;
using low_sums = step<sw::data_parallel<dp>, mixed<bf16, sw::reduce_dtype<bf16>>>;
using shards = step<sw::fully_shard<dp>>;
using low_shards = step<sw::fully_shard<dp>, mixed<bf16>>;
using low_all = step<sw::fully_shard<dp>, mixed<bf16, sw::reduce_dtype<bf16>>>;

template <class Step>
constexpr dtype type_at(int i) {
  return Step::program.spec_of(i).type;
}
// Nodes of an operation, and those of them of a type.
template <class Step>
constexpr int count(op_code op) {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i) n += Step::program.nodes[i].op == op ? 1 : 0;
  return n;
}
template <class Step>
constexpr int count(op_code op, dtype t) {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i) n += Step::program.nodes[i].op == op && type_at<Step>(i) == t ? 1 : 0;
  return n;
}
template <class Step>
constexpr bool all_of_type(op_code op, dtype t) {
  return count<Step>(op) > 0 && count<Step>(op) == count<Step>(op, t);
}
// Whether every parameter is read by its cast, once, and by its update.
template <class Step>
constexpr bool reads_casts() {
  for (int p = 0; p < Step::program.node_count; ++p) {
    if (Step::program.nodes[p].op != op_code::param) continue;
    int casts = 0, others = 0;
    for (int i = 0; i < Step::program.node_count; ++i)
      for (int k = 0; k < Step::program.nodes[i].inputs; ++k)
        if (Step::program.nodes[i].in[k] == p) {
          casts += Step::program.nodes[i].op == op_code::cast ? 1 : 0;
          others += Step::program.nodes[i].op != op_code::cast && Step::program.nodes[i].op != op_code::adam ? 1 : 0;
        }
    if (casts != 1 || others != 0) return false;
  }
  return true;
}

// --- types ----------------------------------------------------------------------------------------------------------------

template <class Step>
constexpr bool keeps_float() {
  return all_of_type<Step>(op_code::param, dtype::f32) && all_of_type<Step>(op_code::state, dtype::f32) &&
         all_of_type<Step>(op_code::adam, dtype::f32) && all_of_type<Step>(op_code::norm_stats, dtype::f32) &&
         all_of_type<Step>(op_code::lse, dtype::f32) && all_of_type<Step>(op_code::nll, dtype::f32) &&
         all_of_type<Step>(op_code::sumsq, dtype::f32) && type_at<Step>(Step::program.outputs[0]) == dtype::f32;
}
template <class Step>
constexpr bool computes_low() {
  return all_of_type<Step>(op_code::einsum, dtype::bf16) && all_of_type<Step>(op_code::embedding, dtype::bf16) &&
         all_of_type<Step>(op_code::norm_apply, dtype::bf16) && all_of_type<Step>(op_code::nll_dx, dtype::bf16);
}
static_assert(keeps_float<low>() && keeps_float<low_sums>() && keeps_float<low_shards>() && keeps_float<low_all>());
static_assert(computes_low<low>() && computes_low<low_sums>() && computes_low<low_shards>() && computes_low<low_all>());
static_assert(reads_casts<low>() && reads_casts<low_shards>() && !reads_casts<whole>());
// A cast for each of five parameters, and one for its gradient, unless that is summed in bf16 (low_gradients.cpp).
static_assert(count<low>(op_code::cast, dtype::bf16) == 5 && count<low>(op_code::cast, dtype::f32) == 5);
static_assert(count<low_all>(op_code::cast, dtype::bf16) == 5 && count<low_all>(op_code::cast, dtype::f32) == 0);
static_assert(count<whole>(op_code::cast) == 0);

// Logits are stored once, in bf16: their gradient lies where they do, and no float has their extents.
template <class Step>
constexpr bool stores_logits_once() {
  const auto& g = Step::program;
  int found = 0;
  for (int i = 0; i < g.node_count; ++i) {
    const sw::spec& s = g.spec_of(i);
    if (s.type == dtype::f32 && s.rank == 3 && s.extent[0] == 4 && s.extent[1] == 4 && s.extent[2] == 64) return false;
    if (g.nodes[i].op != op_code::nll_dx) continue;
    if (Step::memory::value.offset[i] != Step::memory::value.offset[g.nodes[i].in[1]]) return false;
    ++found;
  }
  return found == 1;
}
static_assert(stores_logits_once<low>() && stores_logits_once<low_shards>() && !stores_logits_once<whole>());

// --- bytes ----------------------------------------------------------------------------------------------------------------

// Over two ranks half of all elements goes each way; beside them the loss and, in shards, the norm of the gradients.
inline constexpr std::int64_t half = elements / 2;
static_assert(whole::comm_bytes<dp> == 2 * 4 * half + 4);
static_assert(low::comm_bytes<dp> == whole::comm_bytes<dp>);
static_assert(low_sums::comm_bytes<dp> == 2 * 2 * half + 4);
static_assert(shards::comm_bytes_of<dp>(transition::all_gather) == 4 * half);
static_assert(low_shards::comm_bytes_of<dp>(transition::all_gather) == 2 * half);
static_assert(low_shards::comm_bytes_of<dp>(transition::reduce_scatter) == 4 * half);
static_assert(low_all::comm_bytes_of<dp>(transition::all_gather) == 2 * half);
static_assert(low_all::comm_bytes_of<dp>(transition::reduce_scatter) == 2 * half);

// --- parts ----------------------------------------------------------------------------------------------------------------

// The head in float: its inputs are cast to float, its parameters are not cast.
using float_head = step<sw::data_parallel<dp>, mixed<bf16>, sw::at<"head", mixed<float>>>;
static_assert(all_of_type<float_head>(op_code::einsum, dtype::f32));
static_assert(count<float_head>(op_code::cast, dtype::bf16) == 3 + 1);  // and the cotangent of the head's input
// The head alone in bf16, but for its bias: the sum of both would be of two types.
using low_head = step<sw::data_parallel<dp>, sw::at<"head", mixed<bf16>>>;
static_assert(all_of_type<low_head>(op_code::einsum, dtype::bf16) && all_of_type<low_head>(op_code::embedding, dtype::f32));
// One parameter by name; the last entry wins, entries with a path behind those without.
using float_table = step<sw::at<"table.weight", mixed<float>>, sw::data_parallel<dp>, mixed<bf16>>;
static_assert(all_of_type<float_table>(op_code::embedding, dtype::f32));
static_assert(all_of_type<float_table>(op_code::norm_apply, dtype::bf16));
using low_again = step<sw::data_parallel<dp>, sw::at<"head", mixed<float>>, sw::at<"h*", mixed<bf16>>>;
static_assert(all_of_type<low_again>(op_code::einsum, dtype::bf16));
// What a module returns: of the model's call alone, not of those below it.
using wide_out = step<sw::data_parallel<dp>, mixed<bf16, sw::output_dtype<float>>>;
static_assert(all_of_type<wide_out>(op_code::nll_dx, dtype::f32) && all_of_type<wide_out>(op_code::einsum, dtype::bf16));
static_assert(count<wide_out>(op_code::cast, dtype::f32) == 5 + 1);
// A frozen table is cast, and has no gradient.
using frozen_table = step<sw::data_parallel<dp>, mixed<bf16>, sw::at<"table", sw::frozen>>;
static_assert(count<frozen_table>(op_code::cast, dtype::bf16) == 5 && count<frozen_table>(op_code::cast, dtype::f32) == 4);

// --- sums over ranks --------------------------------------------------------------------------------------------------------

// Eight ranks may sum elements of two bytes; more may where it is asked for, or where floats are summed.
template <int Ranks>
struct over : sw::axis<Ranks> {};
template <int Ranks>
struct wide_task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<Ranks, 4>, sw::on<over<Ranks>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(sw::cast<float>(m(x))); }
};
template <class Bound = sw::unbound>
struct one_layer : sw::module<one_layer<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<4, 4>, net));
  constexpr auto forward(const auto& x) const { return net(x); }
};
template <int Ranks, class... E>
using wide_step =
    sw::train_step<one_layer, wide_task<Ranks>, sw::plan<sw::data_parallel<over<Ranks>>, E...>, sw::mesh<over<Ranks>>>;
static_assert(count<wide_step<8, mixed<bf16, sw::reduce_dtype<bf16>>>>(op_code::cast) > 0);
static_assert(count<wide_step<9, mixed<bf16, sw::reduce_dtype<bf16>>, sw::reduce_within<9>>>(op_code::cast) > 0);
static_assert(count<wide_step<9, mixed<bf16>>>(op_code::cast) > 0);

// One redistribution whose gradient is summed in float: 8 elements of 4 bytes each way in place of 2, the result in bf16 again.
template <class... Option>
struct replicated {
  constexpr auto operator()(const auto& x, const auto& y) const {
    return sw::redistribute<dp, sw::reduced, Option...>(x) * y;
  }
};
template <class... Option>
using gradient = sw::gradient_step<replicated<Option...>, mesh,
                                   sw::inputs<sw::input_tensor<bf16, sw::shape<2, 4>, sw::on<dp, sw::replicate>>,
                                              sw::input_tensor<bf16, sw::shape<2, 4>, sw::on<dp, sw::reduced>>>,
                                   sw::wrt<0>>;
static_assert(gradient<>::comm_bytes<dp> == 8 * 2);
static_assert(gradient<sw::reduce_dtype<float>>::comm_bytes<dp> == 8 * 4);
static_assert(type_at<gradient<sw::reduce_dtype<float>>>(gradient<sw::reduce_dtype<float>>::program.outputs[1]) ==
              dtype::bf16);

// --- a scaled loss ----------------------------------------------------------------------------------------------------------

// The norm of the gradients and the factor of the updates are divided, nothing else is.
using scaled = step<sw::data_parallel<dp>, mixed<sw::f16>, sw::loss_scale<1024>>;
static_assert(count<scaled>(op_code::scale) == count<low>(op_code::scale) + 2);
static_assert(step<sw::data_parallel<dp>, sw::loss_scale<1>>::program.node_count == whole::program.node_count);

// --- passes -----------------------------------------------------------------------------------------------------------------

// Buckets take one element type: the table's gradient in bf16 and the others' in float are two.
using buckets = step_with<sw::pipeline<sw::comm_fusion_in_place<>>, sw::data_parallel<dp>, mixed<bf16>,
                          sw::at<"table", mixed<bf16, sw::reduce_dtype<bf16>>>>;
template <class Step>
constexpr int gradient_sums(dtype t) {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i)
    n += sw::detail::transition_at(Step::program, i) == transition::all_reduce && type_at<Step>(i) == t ? 1 : 0;
  return n;
}
static_assert(gradient_sums<buckets>(dtype::bf16) == 1 && gradient_sums<buckets>(dtype::f32) == 1 + 1);  // and the loss
static_assert(gradient_sums<low>(dtype::f32) == 5 + 1);

// Equal casts become one.
struct twice {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 4>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& x) const { return sw::cast<float>(sw::cast<bf16>(x) * sw::cast<bf16>(x)); }
};
template <class... P>
using function = sw::function_step<twice, mesh, twice::inputs, sw::pipeline<P...>>;
static_assert(count<function<>>(op_code::cast, dtype::bf16) == 2);
static_assert(count<function<sw::merge_common>>(op_code::cast, dtype::bf16) == 1);
static_assert(count<function<sw::fuse_kernels>>(op_code::cast) > 0);

}  // namespace
