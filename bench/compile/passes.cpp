// SPDX-License-Identifier: Apache-2.0
// What sweep.py compiles for its table of passes: PIPELINE over the train step of LAYERS layers, of the example's GPT or
// (MLP) of linear and ReLU layers under data parallelism, on the compiler's default limits. No executor, no memory plan:
// the graph alone, with what the pipeline checks between passes.
#include <shardwise/module/iterated.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/layout/layout.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/fuse/partial_lower.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/pass/optimizer/split_optimizer.hpp>
#include <shardwise/pass/communication/waits.hpp>

#include "../../examples/train_text/model.hpp"

#ifndef LAYERS
#define LAYERS 12
#endif
#ifndef PIPELINE
#define PIPELINE
#endif

namespace {

namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};

#ifdef MLP
template <class Bound = sw::unbound>
struct layer : sw::module<layer<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<256, 256>, fc));
  constexpr auto forward(const auto& x) const { return sw::relu(fc(x)); }
};
template <class Bound = sw::unbound>
struct stack : sw::module<stack<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::repeat<LAYERS, layer>, mod));
  constexpr auto forward(const auto& x) const { return mod(x); }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<8, 256>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::sum(m(x)); }
};
template <class... P>
using step = sw::train_step<stack, task, sw::plan<sw::data_parallel<dp>>, sw::mesh<dp>, sw::adam<>, sw::pipeline<P...>>;
#else
using sizes = train_text::config<16, 128, 128, 4, LAYERS>;
template <class... P>
using step = sw::train_step<train_text::gpt_of<sizes>::gpt, train_text::next_byte<sizes, dp>,
                            train_text::megatron_plan<sizes, dp, tp>, sw::mesh<dp, tp>, sw::clip_norm<sw::adamw<true>>,
                            sw::pipeline<P...>>;
#endif

using program = step<PIPELINE>;

#ifdef ITERATED
using phases = sw::iterated<program, ITERATED>;
#endif
#ifdef SUBGRAPHS
struct graph_of_program {
  static constexpr const auto& value = program::program;
};
static_assert(sw::supported_subgraphs_of<graph_of_program>::value.count > 0);
#endif

}  // namespace

#ifdef ITERATED
int nodes() { return phases::main::program.node_count; }
#else
int nodes() { return program::program.node_count; }
#endif
