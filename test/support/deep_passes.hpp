// SPDX-License-Identifier: Apache-2.0
// Pipelines of passes over a step of many layers: they must pass on every compiler's default limits, and their results grow
// with the layers and by nothing else.
#pragma once

#include <shardwise/module/iterated.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/analysis/kernels.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/fuse/partition.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/pass/communication/waits.hpp>

#include <models.hpp>

namespace test::deep {

struct dp : sw::axis<2> {};

// Linear and ReLU under data parallelism: a gradient's bias and weight are 260 kB, four layers a bucket of a mebibyte.
template <int Layers, class... P>
using step = sw::train_step<relu_stack<Layers, 256>::template model, sum_task<float, 8, 256, sw::on<dp, sw::shard<0>>>,
                            sw::plan<sw::data_parallel<dp>>, sw::mesh<dp>, sw::adam<>, sw::pipeline<P...>>;

template <int Layers>
using joined = step<Layers, sw::cancel_redistributions, sw::merge_common, sw::comm_fusion_in_place<1>, sw::fused_optimizer,
                    sw::remove_copy_from_optimizer>;
template <int Layers>
using split = step<Layers, sw::cancel_redistributions, sw::merge_common, sw::comm_fusion_in_place<1>, sw::fused_optimizer,
                   sw::remove_copy_from_optimizer, sw::split_fused_optimizer<0, 0>>;
template <int Layers>
using overlapped = step<Layers, sw::expedite_comms, sw::reorder_compute_for_overlap<>, sw::sink_waits, sw::raise_comms>;

template <class Step>
struct graph_of {
  static constexpr const auto& value = Step::program;
};
template <class Step>
constexpr int count_of(sw::op_code op) {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i) n += Step::program.nodes[i].op == op ? 1 : 0;
  return n;
}

template <int Layers>
constexpr bool simplified_and_joined() {
  using s = joined<Layers>;
  static_assert(Layers % 4 == 0);
  static_assert(s::traffic.collectives == Layers / 4 + 1);  // the buckets and the loss
  static_assert(count_of<s>(sw::op_code::adam) == 1 && count_of<s>(sw::op_code::advance) == 1);
  static_assert(count_of<s>(sw::op_code::contiguous) == 0);
  static_assert(count_of<split<Layers>>(sw::op_code::adam) == 2);
  return true;
}
// The last layers' bucket and its part of the update run in the next iteration.
template <int Layers>
constexpr bool moved() {
  using graphs = sw::detail::iteration_graphs<joined<Layers>, sw::iter_move_grads_and_optimizers<"all_reduce", "relu">>;
  static_assert(!graphs::moves::value.error && graphs::moves::value.count == 1);
  using main = typename graphs::template graph_at<sw::iteration_phase::main>;
  static_assert(!main::value.error && sw::get_all_fused_optimizer_blocks(main::value).count == 2);
  return true;
}
template <int Layers>
constexpr bool reordered() {
  using s = overlapped<Layers>;
  static_assert(s::traffic.collectives == 2 * Layers + 1);
  static_assert(count_of<s>(sw::op_code::wait) == 2 * Layers + 1);
  static_assert(s::program.node_count == step<Layers>::program.node_count + 2 * Layers + 1);
  return true;
}
template <int Layers>
constexpr bool fused() {
  using s = step<Layers, sw::fuse_kernels>;
  static_assert(count_of<s>(sw::op_code::relu) == 0);
  static_assert(sw::passes::kernel_calls(s::program).kernels < sw::passes::kernel_calls(step<Layers>::program).kernels);
  static_assert(sw::supported_subgraphs_of<graph_of<s>, 1>::value.count > 0);
  return true;
}
template <int Layers>
constexpr bool recomputed() {
  using s = step<Layers, sw::rematerialise<50>>;
  static_assert(s::program.node_count >= step<Layers>::program.node_count);
  return true;
}

}  // namespace test::deep
