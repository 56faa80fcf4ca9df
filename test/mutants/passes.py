# SPDX-License-Identifier: Apache-2.0
"""Mutants of graph passes and of the optimizer that a step ends with."""

MERGE = "pass/simplify/simplify.hpp"
WAITS = "pass/communication/waits.hpp"
REGION = "pass/fuse/region.hpp"
BUCKETS = "pass/communication/fuse_collectives.hpp"
LISTS = "pass/optimizer/list_optimizer.hpp"
OVERLAP = "pass/communication/overlap.hpp"
OPTIMIZER = "module/optimizer.hpp"
DEAD = "pass/framework/dce.hpp"
REWRITE = "pass/framework/rewrite.hpp"
SIMPLIFY_TEST = "unit/pass/simplify/simplify.cpp"
WAITS_TEST = "unit/pass/communication/waits.cpp"
FUSE_TEST = "unit/pass/fuse/fuse.cpp"
SPMD = "unit/pass/spmd.cpp"
EQUAL = "dist/mesh_equivalence_double.cpp"
MOVES = "pass/iteration/iteration.hpp"
MOVES_TEST = "unit/pass/moves.cpp"
BUFFERS = "static/module/buffers.cpp"
FUNCTIONAL_TEST = "unit/pass/functionalise/functionalise.cpp"

RESULTS = "unit/graph/results.cpp"
RESULTS_RUN = "dist/custom_results.cpp"
RESULTS_MOVED = "dist/custom_results_gradients.cpp"

MUTANTS = [
    ("verify: a node with several results is read by anything", "graph/verify/verify.hpp",
     "if (g.nodes[n.in[k]].op == op_code::custom && n.op != op_code::getitem", "if (false", (RESULTS,)),
    ("verify: a result is named twice", "graph/verify/verify.hpp", "item_of(g, n.in[0], static_cast<int>(attributes_of<getitem_attributes>(n.a).result), i) < 0", "true", (RESULTS,)),
    ("verify: a getitem has any spec", "graph/verify/verify.hpp", "infers(o.out, g.specs[n.spec]) && is_contiguous", "is_contiguous", (RESULTS,)),
    ("verify: several results as an output", "graph/verify/verify.hpp", "if (has_results(g, g.outputs[k]))", "if (false)", (RESULTS,)),
    ("merge_common: a result that stands before an update has a second node", MERGE, " && n.op != op_code::getitem", "", (RESULTS,)),
    ("rematerialise: a node with several results is kept", "pass/rematerialise/min_cut.hpp", "view || has_results(g, i) ? infinite", "view ? infinite", (RESULTS,)),
    ("phases: a result is not of its node's phase", "pass/analysis/phases.hpp",
     "if (x.op == op_code::getitem) m.phase[i] = m.phase[x.in[0]];", "", (RESULTS,)),
    ("moves: a result leaves its node", MOVES, "if (n.op == op_code::getitem && !in[n.in[0]]) {", "if (false) {", (RESULTS_MOVED,)),
    ("adjoint: the node with the results is never pulled", "operations/opaque/adjoint.hpp", "p.t.cotangent[p.n.in[0]] = p.dy;", "(void)p;", (RESULTS_RUN,)),
    ("adjoint: a result that is there is made again", "graph/tape.hpp", "return known >= 0 ? known : t.b.append(item_node(of", "return false ? known : t.b.append(item_node(of",
     (RESULTS_RUN,)),
    ("merge_common: attributes do not count", MERGE, "|| !(a.a == b.a)) return false;", ") return false;", ("unit/pass/kept_apart.cpp", SIMPLIFY_TEST)),
    ("merge_common: the real parameter does not count", MERGE,
     "return std::bit_cast<std::uint64_t>(a.f) == std::bit_cast<std::uint64_t>(b.f);  // 0 and -0 differ", "return true;", (SIMPLIFY_TEST,)),
    ("merge_common: 0 and -0 are one number", MERGE,
     "return std::bit_cast<std::uint64_t>(a.f) == std::bit_cast<std::uint64_t>(b.f);  // 0 and -0 differ", "return a.f == b.f;",
     (SIMPLIFY_TEST,)),
    ("merge_common: operands in any order", MERGE, "if (a.in[k] != b.in[k]) return false;",
     "if (a.in[k] != b.in[k] && a.in[k] != b.in[a.inputs - 1 - k]) return false;", ("unit/pass/kept_apart.cpp", SIMPLIFY_TEST)),
    ("merge_common: random draws are merged", MERGE, "op != op_code::room && !rules::is_random(op);", "op != op_code::room;",
     (SIMPLIFY_TEST, "dist/mesh_equivalence_dropout.cpp", "unit/pass/composed.cpp")),
    ("merge_common: across an update", MERGE, "if (known < st.last_update && n.op", "if (known < -1 && n.op", (SIMPLIFY_TEST, "unit/pass/composed.cpp")),
    ("cancel: partial sums on the way compose", MERGE, "return !from.is_partial() && !by.is_partial() && !to.is_partial();", "return true;",
     (SIMPLIFY_TEST,)),
    ("cancel: a middle that others need costs one more collective", MERGE, "if (communicates(t) && st.uses[by] > 1) return;", "",
     (SIMPLIFY_TEST,)),
    ("cancel: reads a leaf after it was written", MERGE,
     "if (st.may_change(from) && (alias ? st.last_use[i] >= st.first_update : st.last_update > by)) return;", "",
     (SIMPLIFY_TEST, "unit/pass/composed.cpp")),
    ("moves: an update in place takes its value from a place that nothing wrote", MOVES,
     "if (n.op == op_code::in_place && moved_to[n.in[1]] < 0) n.op = op_code::assign;", "", (MOVES_TEST,)),
    ("moves: a part moves without its writer", MOVES, "if (n.op == op_code::part && !in[n.in[1]]) {", "if (false) {", (MOVES_TEST,)),
    ("moves: a buffer stays where its writer was", MOVES,
     "if (g.nodes[g.nodes[i].in[k]].op == op_code::room) in[g.nodes[i].in[k]] = true;", "{}", (MOVES_TEST,)),
    ("dead code: updates are dead", DEAD, "if (!is_update(n.op) && !is_leaf(n.op) && !places_leaves(n)) continue;",
     "if (!is_leaf(n.op) && !places_leaves(n)) continue;", ("unit/module/optimizer.cpp", EQUAL)),
    ("dead code: operands keep their old numbers", DEAD, "for (int k = 0; k < n.inputs; ++k) n.in[k] = to[n.in[k]];\n    to[i] = count++;",
     "to[i] = count++;", (SIMPLIFY_TEST, FUSE_TEST, EQUAL)),
    ("rewriting: outputs keep their old numbers", REWRITE, "out.outputs[k] = to[g.outputs[k]];", "out.outputs[k] = g.outputs[k];",
     (SPMD, "unit/pass/fuse/merge_products.cpp", "unit/pass/fuse/norm_adjoints.cpp")),
    ("sink_waits: operands come in no order", WAITS, "if (!st.emitted[x.in[k]] && (next < 0 || x.in[k] < next)) next = x.in[k];",
     "if (!st.emitted[x.in[k]] && (next < 0 || x.in[k] > next)) next = x.in[k];", (WAITS_TEST, SPMD)),
    ("raise_comms: before its operand is there", WAITS, "return st.emitted[g.nodes[st.memory.queue[st.memory.next]].in[0]] && (after < 0 || st.emitted[after]);",
     "return after < 0 || st.emitted[after];", (WAITS_TEST, SPMD)),
    ("raise_comms: past a write of what it reads", WAITS, "return st.emitted[g.nodes[st.memory.queue[st.memory.next]].in[0]] && (after < 0 || st.emitted[after]);",
     "return st.emitted[g.nodes[st.memory.queue[st.memory.next]].in[0]];", ("unit/pass/kept_apart.cpp", WAITS_TEST)),
    ("expedite_comms: past a write of what it reads", WAITS, "const int behind = after > g.nodes[i].in[0] ? after : g.nodes[i].in[0];",
     "const int behind = g.nodes[i].in[0];", ("unit/pass/kept_apart.cpp", WAITS_TEST)),
    ("schedule: a collective without users passes", WAITS, "if (!used[i] && is_collective(g, i)) return {problem::comm_no_output, i};", "",
     (SPMD, WAITS_TEST)),
    ("overlap: an update before what still reads", OVERLAP,
     "return (is_update(x.op) ? m.touches_done : m.updates_done) >= m.behind[i];", "return true;", ("unit/pass/kept_apart.cpp", WAITS_TEST)),
    ("overlap: an update waits for no touch", OVERLAP, "for (int t = m.touches_done; t < m.behind[i]; ++t) add(m.touch[t]);", "(void)0;",
     ("unit/pass/kept_apart.cpp", WAITS_TEST)),
    ("fusion: types may differ", REGION, "if (g.spec_of(n.in[k]).type != g.specs[n.spec].type) return false;", "(void)k;", (FUSE_TEST,), "no step of one or two operands has operands of two types"),
    ("fusion: an expression has no constants", REGION,
     "constexpr bool has_constant(const node& n) { return std::bit_cast<std::uint64_t>(n.f) != 0; }",
     "constexpr bool has_constant(const node& n) { return n.f > 0; }", (FUSE_TEST, "dist/fusion.cpp")),
    ("fusion: a value read outside is not stored", REGION, "else r.stored[r.stores++] = m;", "else (void)m;", (FUSE_TEST, "dist/fusion.cpp")),
    ("fusion: operands of a step are swapped", REGION, "    s.x = of[0];\n    s.y = of[1];", "    s.x = of[1] == no_slot ? of[0] : of[1];\n    s.y = of[1] == no_slot ? of[1] : of[0];",
     (FUSE_TEST, "dist/fusion.cpp")),
    ("buckets: like with unlike", BUCKETS, "while (k < keys && key[k] != h) ++k;", "while (k < keys && k != 0) ++k;", ("unit/pass/kept_apart.cpp", SPMD, "unit/pass/communication/buckets.cpp")),
    ("buckets: never closed", BUCKETS, "if (open_bytes[k] < threshold[k]) return;", "if (threshold[k] >= 0) return;", (SPMD, "unit/pass/communication/buckets.cpp")),
    ("buckets: a reduction joins the bucket that it depends on", BUCKETS, "if (open[k] >= 0 && depends[operand] > open[k]) open[k] = -1;", "",
     ("unit/pass/kept_apart.cpp", SPMD)),
    ("lists: updates of other flavours join", LISTS, "return a.clipped == c.clipped && a.decoupled == c.decoupled && x.f == y.f &&",
     "return a.clipped == c.clipped && a.decoupled == c.decoupled &&", ("unit/pass/kept_apart.cpp", SPMD)),
    ("lists: moments are swapped", LISTS, "p = pack_leaves(b, g, count, 0), m = pack_leaves(b, g, count, 2), v = pack_leaves(b, g, count, 3);",
     "p = pack_leaves(b, g, count, 0), v = pack_leaves(b, g, count, 2), m = pack_leaves(b, g, count, 3);", (SPMD,),
     "both moments are states that start at zero, and no name tells them apart"),
    ("lists: parameters are read back from the first slot", LISTS, "at += slots.of(b, leaf) / size;", "at += 0;", ("unit/pass/kept_apart.cpp", SPMD)),
    ("optimizer: no parameter decays", OPTIMIZER, "n.f = !Optimizer::matrices_only || sp.rank >= 2 ? 1 : 0;", "n.f = 0;",
     ("unit/module/optimizer.cpp", "golden/transformer.cpp")),
    ("optimizer: biases decay too", OPTIMIZER, "n.f = !Optimizer::matrices_only || sp.rank >= 2 ? 1 : 0;", "n.f = 1;",
     ("unit/module/optimizer.cpp", "golden/transformer.cpp")),
    ("optimizer: the norm leaves a parameter out", OPTIMIZER, "        sum = b.emit(op_code::add, {}, 0, out, -1, sum, square);\n        return;",
     "        return;", ("unit/module/optimizer.cpp", "dist/silent_bugs/values.cpp", EQUAL)),
    ("optimizer: the norm of a shard is taken for the whole", OPTIMIZER, "      sum = whole(st, b, sum, -1);\n      spec s", "      spec s",
     ("dist/silent_bugs/values.cpp", EQUAL, "unit/module/optimizer.cpp")),
    ("optimizer: the factor is computed and not applied", OPTIMIZER, "attributes<adam_attributes>(st.factor >= 0,", "attributes<adam_attributes>(0,",
     ("dist/silent_bugs/values.cpp", "unit/module/optimizer.cpp")),
    ("functionalise: a redistribution that moves nothing is its operand", "graph/mutation.hpp",
     "return n.op != op_code::redistribute && lies_in_operand(n, specs, nodes);", "return lies_in_operand(n, specs, nodes);", (FUNCTIONAL_TEST,)),
    ("functionalise: an output is read in a leaf that is written", "pass/functionalise/functional.hpp", "lies_in_leaf(b, id) : will_change(st, g, b, id)) {",
     "lies_in_leaf(b, id) : false) {", (FUNCTIONAL_TEST,)),
    ("redistribute: stored as the axis' size says", "graph/redistribution.hpp", "return transition_of(from, to, 2) == transition::none;",
     "return transition_of(from, to, 1) == transition::none;", ("static/graph/values.cpp",)),
    ("buffers: a gradient is lost in one without a word", "pass/functionalise/functionalise.hpp",
     "if (through[i] == 0) through[i] = held && written_needs[from] ? i + 1 : read_through(x.in[k]);", "through[i] = 0;", (BUFFERS,)),
    ("buffers: a part that is written over is all of it", "pass/functionalise/functionalise.hpp",
     "const bool whole = seen.depth[x.in[0]] == 0;  // else the rest stays what it was", "const bool whole = true;", (BUFFERS,)),
    ("verify: a node that repeats another may read anything", "graph/verify/verify.hpp", "if (x.spec != y.spec || y.op == op_code::custom) return false;\n      if",
     "if (x.spec < 0 || y.op == op_code::custom) return false;\n      if", ("unit/graph/verify/repeats.cpp",)),
    ("verify: what was checked before the pass may have other attributes", "graph/verify/verify.hpp", "return o.a == n.a;", "return true;",
     ("unit/graph/verify/repeats.cpp",)),
]
