// SPDX-License-Identifier: Apache-2.0
// What linear.py runs: one pass over the graph of a train step of LAYERS layers, made as a constant, at run time, where the same
// constexpr functions run; with the number of blocks of code that this took, as the compiler's instrumentation counts them.
#include "passes.cpp"

#include <shardwise/pass/functionalise/functionalise.hpp>
#include <shardwise/pass/memory/memory.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

extern "C" unsigned long long blocks_entered();

namespace {

constexpr const auto& constant = program::program;
struct source {
  static constexpr const auto& value = constant;
};
// Room for what passes add.
using roomy = sw::resized<std::remove_cvref_t<decltype(constant)>, 3 * constant.node_count + 256,
                          4 * constant.spec_count + 256, constant.node_count + constant.scope_count>;

struct report {
  unsigned long long blocks = 0;
  sw::finding found;
  int nodes = 0;
};
template <class F>
report counted(F&& f) {
  report r;
  const unsigned long long before = blocks_entered();
  f(r);
  r.blocks = blocks_entered() - before;
  return r;
}

template <class P>
report pass_alone(roomy& g) {
  return counted([&](report& r) {
    r.found = P::apply(g);
    r.nodes = g.node_count;
  });
}
// Setup..., then P alone.
template <class P, class... Setup>
report pass_after() {
  const auto g = std::make_unique<roomy>();
  sw::copy_into(*g, constant);
  sw::finding found;
  (void)(true && ... && !(found = Setup::apply(*g)));
  report r = pass_alone<P>(*g);
  if (found) r.found = found;
  return r;
}
template <class Pass>
report staged_pass() {
  const auto st = std::make_unique<typename Pass::template state<source>>();
  return counted([&](report& r) {
    Pass::template start<source>(*st);
    if constexpr (sw::detail::counts_stages<Pass, source>) {
      for (int k = Pass::template stages<source>(sw::stage_nodes); k > 0; --k)
        Pass::template advance<source>(*st, sw::stage_nodes);
    } else {
      while (Pass::template advance<source>(*st, sw::stage_nodes)) {
      }
    }
    r.nodes = constant.node_count;
  });
}

// Every layer a checkpoint.
struct checkpoint_layers {
  template <class Graph>
  static constexpr sw::finding apply(Graph& g) {
    for (int s = 0; s < g.scope_count; ++s) {
      sw::scope& own = g.scopes[s];
      own.region = sw::detail::region_of(g.scopes, own.parent);
      if (own.index >= 0 && own.region < 0) own.checkpoint = &sw::checkpoint::shardwise_checkpoint;
    }
    return {};
  }
};

struct entry {
  const char* name;
  report (*run)();
};
using cancel = sw::cancel_redistributions;
using merge = sw::merge_common;
using bucket = sw::comm_fusion_in_place<1>;
using list = sw::fused_optimizer;
using lists = sw::remove_copy_from_optimizer;
constexpr entry entries[] = {
    {"verify", staged_pass<sw::detail::verify_stages<>>},
    {"memory plan", staged_pass<sw::passes::plan_memory<sw::host_backend>>},
    {"collectives kept", [] { return counted([](report& r) { r.nodes = sw::passes::order_of(constant).collectives; }); }},
    {"functionalise", pass_after<sw::functionalise>},
    {"cancel_redistributions", pass_after<cancel>},
    {"merge_common", pass_after<merge, cancel>},
    {"comm_fusion_in_place", pass_after<bucket>},
    {"comm_fusion_with_concat", pass_after<sw::comm_fusion_with_concat<1>>},
    {"fused_optimizer", pass_after<list>},
    {"fused_optimizer of buckets", pass_after<list, bucket>},
    {"foreach_optimizer", pass_after<sw::foreach_optimizer>},
    {"remove_copy_from_optimizer", pass_after<lists, bucket, list>},
    {"remove_copy_from_optimizer of foreach", pass_after<lists, bucket, sw::foreach_optimizer>},
    {"split_fused_optimizer", pass_after<sw::split_fused_optimizer<0, 0>, bucket, list, lists>},
    {"schedule_comm_wait", pass_after<sw::schedule_comm_wait>},
    {"sink_waits", pass_after<sw::sink_waits>},
    {"raise_comms", pass_after<sw::raise_comms>},
    {"expedite_comms", pass_after<sw::expedite_comms>},
    {"reorder_compute_for_overlap", pass_after<sw::reorder_compute_for_overlap<>>},
    {"fuse_pointwise", pass_after<sw::fuse_pointwise>},
    {"fuse_kernels", pass_after<sw::fuse_kernels>},
    {"merge_products", pass_after<sw::merge_products, cancel, merge>},
    {"join_norm_adjoints", pass_after<sw::join_norm_adjoints, sw::fuse_kernels>},
    {"optimize_layout", pass_after<sw::optimize_layout<sw::layout_mode::force>>},
    {"partial_lower", pass_after<sw::partial_lower<>>},
    {"rematerialise", pass_after<sw::rematerialise<50>>},
    {"recompute", pass_after<sw::recompute, checkpoint_layers>},
};

}  // namespace

int main(int argc, char** argv) {
  for (const entry& e : entries) {
    if (argc > 1 && std::string_view(e.name) != argv[1]) continue;
    const report r = e.run();
    std::printf("%s|%d|%llu|%d|%d\n", e.name, constant.node_count, r.blocks, r.nodes, static_cast<int>(r.found.what));
    std::fflush(stdout);
  }
}
