// SPDX-License-Identifier: Apache-2.0
// From a program to graphs: what the library makes of it before it is planned and run.
#include <library.hpp>

#include <shardwise/module/optimizer.hpp>
#include <shardwise/pass/functionalise/functionalise.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/layout/layout.hpp>
#include <shardwise/pass/iteration/iter_move.hpp>
#include <shardwise/pass/iteration/iteration.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/fuse/cross_entropy.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>
#include <shardwise/pass/optimizer/optimizer_blocks.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/prefetch.hpp>
#include <shardwise/pass/fuse/partial_lower.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/pass/framework/sequence.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/pass/communication/waits.hpp>

namespace fuzz {

namespace {

// --- passes -----------------------------------------------------------------------------------------------------------------

// Buckets that small graphs fill.
template <bool Copies>
struct small_buckets : sw::passes::fuse_rules<Copies> {
  template <class In, class Out>
  struct state : sw::passes::fuse_rules<Copies>::template state<In, Out> {
    using base = typename sw::passes::fuse_rules<Copies>::template state<In, Out>;
    constexpr void begin(const In& g) {
      for (std::int64_t& cap : base::caps) cap = 300;
      base::begin(g);
      base::first = 64;
    }
  };
};
struct fuse_with_copies : sw::passes::rewriting<small_buckets<true>> {
  using key = sw::comm_fusion;
  using preserves = sw::passes_list<sw::kept::outputs, sw::kept::updates>;
};
struct fuse_in_place : sw::passes::rewriting<small_buckets<false>> {
  using key = sw::comm_fusion;
  using preserves = sw::passes_list<sw::kept::outputs, sw::kept::updates>;
};

// Those of the second axis alone.
struct small_buckets_on_one : sw::passes::fuse_rules<false> {
  template <class In, class Out>
  struct state : sw::passes::fuse_rules<false>::state<In, Out> {
    using base = sw::passes::fuse_rules<false>::state<In, Out>;
    constexpr void begin(const In& g) {
      base::caps[1] = 300;
      base::begin(g);
      base::first = 64;
    }
  };
};
struct fuse_on_one_axis : sw::passes::rewriting<small_buckets_on_one> {
  using key = sw::comm_fusion;
  using preserves = sw::passes_list<sw::kept::outputs, sw::kept::updates>;
};

const std::vector<sw::pass_entry<graph>>& all_passes() {
  static const std::vector<sw::pass_entry<graph>> list = {
      sw::entry_of<sw::cancel_redistributions, graph>(),
      sw::entry_of<sw::merge_common, graph>(),
      sw::entry_of<sw::schedule_comm_wait, graph>(),
      sw::entry_of<sw::sink_waits, graph>(),
      sw::entry_of<sw::raise_comms, graph>(),
      sw::entry_of<sw::expedite_comms, graph>(),
      sw::entry_of<sw::reorder_compute_for_overlap<>, graph>(),
      sw::entry_of<fuse_with_copies, graph>(),
      sw::entry_of<fuse_in_place, graph>(),
      sw::entry_of<sw::fused_optimizer, graph>(),
      sw::entry_of<sw::foreach_optimizer, graph>(),
      sw::entry_of<sw::remove_copy_from_optimizer, graph>(),
      sw::entry_of<sw::merge_products, graph>(),
      sw::entry_of<sw::join_norm_adjoints, graph>(),
      sw::entry_of<sw::join_cross_entropy, graph>(),
      sw::entry_of<sw::fuse_pointwise, graph>(),
      sw::entry_of<sw::fuse_kernels, graph>(),
      sw::entry_of<sw::rematerialise<>, graph>(),
      sw::entry_of<sw::partial_lower<sw::core_operations, 2>, graph>(),
      sw::entry_of<sw::batch_collectives, graph>(),
      sw::entry_of<sw::prefetch<1>, graph>(),
      sw::entry_of<fuse_on_one_axis, graph>(),
      sw::entry_of<sw::optimize_layout<sw::layout_mode::force>, graph>(),
  };
  return list;
}
// --- from a program to graphs -----------------------------------------------------------------------------------------------

// Sources whose value is no constant.
struct grad_source {
  static inline graph value;
  static inline int root = 0;
  static inline std::uint64_t wanted_inputs = 0;
  static bool wants_input(std::int64_t i) { return ((wanted_inputs >> i) & 1U) != 0; }
};
using joint_state = sw::autodiff::grad_state<graph, max_nodes>;
struct joint_source {
  static inline joint_state value;
};

template <class Optimizer, int Params>
void apply_optimizer(std::unique_ptr<graph>& g) {
  using pass = sw::apply_optimizer<Optimizer, Params>;
  auto st = std::make_unique<sw::detail::update_state<graph, max_nodes, Params>>();
  pass::template start<joint_source>(*st);
  for (int k = 0; k < 8; ++k) pass::template advance<joint_source>(*st, 64);
  *g = st->g;
}
template <int Params>
void optimize(std::unique_ptr<graph>& g, int optimizer) {
  switch (optimizer) {
    case 0: return apply_optimizer<sw::sgd<>, Params>(g);
    case 1: return apply_optimizer<sw::sgd<true>, Params>(g);
    case 2: return apply_optimizer<sw::adam<>, Params>(g);
    case 3: return apply_optimizer<sw::adamw<>, Params>(g);
    case 4: return apply_optimizer<sw::clip_norm<sw::adam<>>, Params>(g);
    case 5: return apply_optimizer<sw::adamw<true>, Params>(g);
    case 6: return apply_optimizer<sw::clip_norm<sw::sgd<>>, Params>(g);
    case 7: return apply_optimizer<sw::amsgrad<sw::adam<>>, Params>(g);
    case 8: return apply_optimizer<sw::clip_value<sw::maximize<sw::sgd<true, sw::sgd_form::dampened>>>, Params>(g);
    default: return apply_optimizer<sw::report_norm<sw::clip_norm<sw::clip_value<sw::lion<>>>>, Params>(g);
  }
}

std::string problem_text(const char* where, const sw::finding& f) {
  return std::string(where) + ": " + std::string(sw::sentence(f.what)) + " At node " + std::to_string(f.operand) +
         ", axis " + std::to_string(f.axis) + ".";
}

bool writes_variable(const program& p, const graph& g) {
  sw::passes::aliasing<max_nodes> seen;
  seen.find(g);
  for (int i = 0; i < g.node_count; ++i)
    if (seen.written[i] &&
        (g.nodes[i].op == op_code::param || (g.nodes[i].op == op_code::input && ((p.wanted >> g.nodes[i].a.v[0]) & 1U))))
      return true;
  return false;
}

}  // namespace

made make(const program& p, assembly& a) {
  made m;
  auto g = std::make_unique<graph>(a.g);
  std::vector<int> outputs;
  if (p.what != kind::forward) outputs.push_back(p.root);
  for (const int o : p.outputs) outputs.push_back(o);
  g->output_count = 0;
  for (const int o : outputs)
    if (g->output_count < graph::output_capacity) g->outputs[g->output_count++] = o;
  if (p.what == kind::gradient)
    for (int i = 0; i < g->node_count; ++i) {
      const sw::node& n = g->nodes[i];
      if (n.op != op_code::input || ((p.wanted >> n.a.v[0]) & 1U) == 0) continue;
      for (int x = 0; x < p.axes; ++x)
        if (const placement q = g->spec_of(i).place[x]; q.is_partial() && q == sw::dual(q)) {
          m.refused = "a gradient of a partial input that has none";
          return m;
        }
    }
  if (const sw::finding f = sw::verify(*g)) {
    m.broken = problem_text("the program's own graph", f);
    return m;
  }
  if (p.what != kind::forward && writes_variable(p, *g)) {
    m.refused = "a variable is written";
    return m;
  }
  if (const sw::finding f = sw::functionalise::apply(*g)) {
    m.refused = problem_text("functionalise", f);
    return m;
  }
  if (const sw::finding f = sw::verify(*g)) {
    m.broken = problem_text("functionalise made a graph that breaks a rule", f);
    return m;
  }
  if (p.what != kind::forward) {
    if (g->node_count > 110) {
      m.refused = "large";
      return m;
    }
    grad_source::value = *g;
    grad_source::root = g->outputs[0];
    grad_source::wanted_inputs = p.what == kind::gradient ? p.wanted : 0;
    joint_state& st = joint_source::value;
    sw::autodiff::grad::start<grad_source>(st);
    sw::autodiff::grad::advance<grad_source>(st, max_nodes);
    if (st.g.node_count > max_nodes - 64 || st.g.spec_count > max_specs - 32) {
      m.refused = "large";
      return m;
    }
    if (st.g.error) {
      m.refused = problem_text("gradient", st.g.error);
      return m;
    }
    *g = st.g;
    if (p.what == kind::gradient) {
      sw::builder b = g->edit();
      std::vector<int> found;
      const int forward = grad_source::value.node_count;
      for (int k = 0; k < 64; ++k) {
        if (((p.wanted >> k) & 1U) == 0) continue;
        int id = -1;
        for (int i = 0; i < forward; ++i)
          if (b.nodes[i].op == op_code::input && b.nodes[i].a.v[0] == k) id = st.cotangent[i];
        if (id >= 0 && g->output_count + static_cast<int>(found.size()) >= graph::output_capacity) continue;
        if (id >= 0 && !sw::is_contiguous(b.specs[b.nodes[id].spec])) {
          sw::node n = sw::empty_node;
          n.op = op_code::contiguous;
          n.inputs = 1;
          n.in[0] = id;
          n.spec = b.intern(sw::contiguous(b.specs[b.nodes[id].spec]));
          id = b.append(n);
        }
        m.gradients.push_back({k, id < 0 ? -1 : g->output_count + static_cast<int>(found.size())});
        if (id >= 0) found.push_back(id);
      }
      g->finish(b);
      for (const int id : found) g->outputs[g->output_count++] = id;
    } else {
      int params = 0;
      for (const statement& s : p.body) params += s.op == op_code::param ? 1 : 0;
      if (params == 1) optimize<1>(g, p.optimizer);
      else if (params == 2) optimize<2>(g, p.optimizer);
      else optimize<3>(g, p.optimizer);
      for (int i = 0; i < g->node_count; ++i)
        if (sw::is_optimizer(g->nodes[i].op)) m.updated.push_back(static_cast<int>(g->nodes[g->nodes[i].in[0]].a.v[0]));
    }
    if (g->node_count > max_nodes - 8 || g->spec_count > max_specs - 8) {
      m.refused = "large";
      return m;
    }
    if (g->error) {
      m.refused = problem_text("training step", g->error);
      return m;
    }
    sw::passes::sink_writes(*g, static_cast<int*>(nullptr), 0);
    if (const sw::finding f = sw::verify(*g)) {
      m.broken = problem_text("the joint graph breaks a rule", f);
      m.g[0] = std::move(g);
      return m;
    }
    sw::passes::remove_dead(*g);
  }
  sw::passes::remove_dead(*g);
  sw::pass_sequence<graph> sequence;
  for (const int k : p.passes) {
    if (k < 0 || k >= static_cast<int>(all_passes().size())) continue;
    const sw::pass_report r = sequence.apply(all_passes()[static_cast<std::size_t>(k)], *g);
    if (!r) {
      m.applied.push_back(k);
      continue;
    }
    switch (r.what.what) {
      case sw::problem::pass_too_late:
      case sw::problem::pass_prerequisites:
      case sw::problem::pass_twice:
      case sw::problem::graph_batch:  // of fused kernels, one stood between members: refused, with what to do
      case sw::problem::graph_full:
      case sw::problem::comm_no_output:
      case sw::problem::comm_wait_too_far: break;
      default: m.broken = r.text; return m;
    }
  }
  if (!p.moves.empty()) {
    sw::iteration_module<graph> mod{*g};
    int moved = 0;
    for (std::uint64_t pick : p.moves) {
      for (int tries = 0; tries < 30; ++tries) {
        pick = pick * 6364136223846793005ULL + 1442695040888963407ULL;
        const int root = static_cast<int>((pick >> 33) % static_cast<unsigned>(g->node_count));
        const int to = static_cast<int>((pick >> 13) % static_cast<unsigned>(root + 1));
        const auto set = sw::find_all_descendants(*g, &root, 1);
        if (set.error || mod.move_to_next_iter_before(set, to)) continue;
        ++moved;
        break;
      }
    }
    if (moved > 0) {
      mod.finalize();
      for (auto& to : m.g) to = std::make_unique<graph>(*g);
      sw::finding f = mod.phase<sw::iteration_phase::setup>(*m.g[0]);
      if (!f) f = mod.phase<sw::iteration_phase::main>(*m.g[1]);
      if (!f) f = mod.phase<sw::iteration_phase::cleanup>(*m.g[2]);
      for (int k = 0; k < 3 && !f; ++k) f = sw::verify(*m.g[k]);
      if (f) {
        if (f.what == sw::problem::graph_full) m.refused = "large";
        else m.broken = problem_text("iteration", f);
        m.iterated = false;
        return m;
      }
      m.iterated = true;
      return m;
    }
  }
  m.g[0] = std::move(g);
  return m;
}

int pass_count() { return static_cast<int>(all_passes().size()); }
std::string short_name(int pass) {
  const std::string& n = all_passes()[static_cast<std::size_t>(pass)].name;
  const std::size_t at = n.rfind("::");
  return at == std::string::npos ? n : n.substr(at + 2);
}

}  // namespace fuzz
