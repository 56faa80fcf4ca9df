# SPDX-License-Identifier: Apache-2.0
"""Mutants of graph passes and of the optimizer that a step ends with."""

MERGE = "pass/simplify/simplify.hpp"
WAITS = "pass/communication/waits.hpp"
REGION = "pass/fuse/region.hpp"
BUCKETS = "pass/communication/fuse_collectives.hpp"
LISTS = "pass/optimizer/list_optimizer.hpp"
OVERLAP = "pass/communication/overlap.hpp"
BATCHING = "pass/communication/batch_collectives.hpp"
PREFETCH = "pass/communication/prefetch.hpp"
BATCHES_TEST = "unit/pass/communication/batch_collectives.cpp"
PREFETCH_TEST = "unit/pass/communication/prefetch.cpp"
BATCHES_UNIT = "unit/graph/batches.cpp"
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
SHARDS = "unit/module/fully_shard.cpp"
RESHARD = "pass/communication/reshard.hpp"
TURNS = "autodiff/turns.hpp"
PIECES = "unit/module/accumulate.cpp"
WHOLE_BATCH = "dist/module/accumulate.cpp"
EFFECTS = "dist/module/accumulate_effects.cpp"
FUNCTIONAL_TEST = "unit/pass/functionalise/functionalise.cpp"

RESULTS = "unit/graph/results.cpp"
RESULTS_RUN = "dist/custom_results.cpp"
RESULTS_MOVED = "dist/custom_results_gradients.cpp"

DEMAND = "pass/rematerialise/checkpoint_demand.hpp"
REPLAY = "pass/rematerialise/recompute.hpp"
MARKS = "graph/checkpoint.hpp"
REWRITTEN_TEST = "unit/pass/rematerialise/rewritten.cpp"
RECOMPUTE_TEST = "unit/pass/rematerialise/recompute.cpp"
CHECKPOINT_TEST = "dist/module/checkpoint.cpp"

MUTANTS = [
    ("checkpoint: a second call lies in the region of the first", MARKS, "  if (checkpoint == nullptr) {\n    if (own.region == region) return s;",
     "  {\n    if (own.region == region) return s;", (RECOMPUTE_TEST,)),
    ("checkpoint: a policy is not asked", MARKS, "  if (!named && p.keeps_named) return false;", "  if (p.keeps_named) return false;", (RECOMPUTE_TEST,)),
    ("checkpoint: an unnamed view is kept", MARKS, "return named && p.keeps_named;", "return true;", (RECOMPUTE_TEST,)),
    ("checkpoint: a replay may be read as what it repeats", MARKS, "(replay < 0 || replay == replay_of(g, earlier)) &&", "", (RECOMPUTE_TEST,)),
    ("recompute: the first pass's value is read by its own module", DEMAND, "if (k > level) k = level;", "k = 0;", (RECOMPUTE_TEST,)),
    ("recompute: a replay reads instances further in", DEMAND, "if (k > level) k = level;", "", (RECOMPUTE_TEST,)),
    ("recompute: what outsiders hold is computed again", DEMAND, "if ((held[i] & (bit - 1)) != 0) {", "if (false) {", (RECOMPUTE_TEST,)),
    ("recompute: behind the first update values are computed again", DEMAND, " && i < first_update; }", "; }", (RECOMPUTE_TEST,),
     "updates of train steps come last, and nothing behind them reads what a checkpoint lets go"),
    ("recompute: opaque functions are called again", DEMAND, " && n.op != op_code::opaque &&", " &&", (CHECKPOINT_TEST,)),
    ("recompute: a region is replayed before those around it", REPLAY, "for (; r >= 0; r = shardwise::detail::around(from.scopes, r)) {",
     "for (; r >= 0; r = -1) {", (RECOMPUTE_TEST,)),
    ("recompute: a replay goes beyond what has been written", REPLAY, " || next[r] >= cursor) {", ") {", (RECOMPUTE_TEST,)),
    ("recompute: copies of a replay have the scopes of what they repeat", REPLAY, "n.scope = scope_in_replay(from, x.scope, r);", "", (RECOMPUTE_TEST,)),
    ("rematerialise: packs of parameters are copied", "pass/rematerialise/min_cut.hpp", "is_leaf(x.op) || places_leaves(x) ||", "is_leaf(x.op) ||", (REWRITTEN_TEST,)),
    ("rematerialise: some of what a kernel stores is computed again", "pass/rematerialise/min_cut.hpp", " || only_once(g, x) ? 2", " ? 2", (REWRITTEN_TEST,)),
    ("verify: a tensor may be placed twice", "graph/verify/verify.hpp", "        memory.last_pack = i;\n", "", (REWRITTEN_TEST,)),
    ("rematerialise: a budget lets go of what a policy keeps", "pass/rematerialise/min_cut.hpp", "(checkpoints && keeps_value(g, i))", "false", (RECOMPUTE_TEST,)),
    ("checkpoint: eager gradients forget it", "module/eager_gradient.hpp", "implies_passes<typename binding_type::plan_type>>;", "false>;", ("dist/eager_training/steps.cpp",)),
    ("verify: a batch's number comes again", "graph/batches.hpp", "number > before && is_batchable(g, i, i)", "is_batchable(g, i, i)", (BATCHES_UNIT,)),
    ("verify: a member reads another one", "graph/batches.hpp", "return g.nodes[i].in[0] >= batch_begin(g, i) ?", "return false ?", (BATCHES_UNIT,)),
    ("verify: members of any kind", "graph/batches.hpp", "t == detail::transition_at(g, b) && ", "", (BATCHES_UNIT,)),
    ("an order counts every member", "pass/analysis/communication.hpp", "r.collectives += goes_on ? 0 : 1;", "++r.collectives;", (BATCHES_UNIT,)),
    ("a model charges every member's latency", "pass/analysis/run_time.hpp", "joins_batch(g, i) ? whole - latency(g, n) : whole", "whole", (BATCHES_UNIT,)),
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
    ("raise_comms: before its operand is there", WAITS, "all = st.emitted[g.nodes[m.queue[k]].in[0]] && (m.after[k] < 0 || st.emitted[m.after[k]]);",
     "all = m.after[k] < 0 || st.emitted[m.after[k]];", (WAITS_TEST, SPMD)),
    ("raise_comms: past a write of what it reads", WAITS, "all = st.emitted[g.nodes[m.queue[k]].in[0]] && (m.after[k] < 0 || st.emitted[m.after[k]]);",
     "all = st.emitted[g.nodes[m.queue[k]].in[0]];", ("unit/pass/kept_apart.cpp", WAITS_TEST)),
    ("expedite_comms: past a write of what it reads", WAITS, "int behind = after > g.nodes[i].in[0] ? after : g.nodes[i].in[0];",
     "int behind = g.nodes[i].in[0];", ("unit/pass/kept_apart.cpp", WAITS_TEST)),
    ("raise_comms: a batch before its last operand is there", WAITS, "all && k < m.count && m.queue[k] < end; ++k)", "all && k == m.next; ++k)", (BATCHES_TEST,)),
    ("expedite_comms: what depends on a member comes behind that member", WAITS, "behind = batch_end(g, behind) - 1;", "",
     (BATCHES_TEST,), "where there is room, collectives read one another by way of waits, which stand behind the batch"),
    ("sink_waits: a batch's members are released one by one", WAITS, "each_member(g, i, [&](int j) { release_operands(st, g, j); });\n",
     "release_operands(st, g, i);\n", (BATCHES_TEST,)),
    ("overlap: a batch needs what its first member does", OVERLAP, "each_member(g, i, [&](int j) { need_operands_of(st, g, j, work); });",
     "need_operands_of(st, g, i, work);", (BATCHES_TEST,)),
    ("waits are inserted between the members of a batch", "pass/communication/reorder.hpp", "if (batch_number(g.nodes[i]) == 0) {\n        if (st.unawaited[i]) insert",
     "if (true) {\n        if (st.unawaited[i]) insert", (BATCHES_TEST,)),
    ("batches keep their numbers in another order", "pass/communication/reorder.hpp", "set_batch(st.g.nodes[st.to[i]], st.batches);", "", (BATCHES_TEST,)),
    ("batch_collectives: a batch waits for itself", BATCHING, "if (open[at] < 0 || d > open[at]) open[at] = batches++;",
     "if (open[at] < 0) open[at] = batches++;", (BATCHES_TEST,)),
    ("batch_collectives: whatever computes may stand between neighbours", BATCHING, "opened = 0;\n      }", "}", (BATCHES_TEST,)),
    ("batch_collectives: of any module", BATCHING, "g.nodes[a].scope == g.nodes[b].scope && ", "", (BATCHES_TEST,)),
    ("batch_collectives: what waits is overtaken", BATCHING, "all = all && !base::conflicts(g, j);", "", (BATCHES_TEST,),
     "between neighbours stands nothing that writes what one of them reads, but for slots of packs, which the fuzzers draw"),
    ("batch_collectives: a member stands in its own way", BATCHING, "if (j != i) base::hold(g, j, -1);", "if (false) base::hold(g, j, -1);", (BATCHES_TEST,)),
    ("cancel_redistributions: a member of a batch becomes another collective", MERGE, "|| batch_number(n) != 0) return;", ") return;", (BATCHES_TEST,)),
    ("prefetch: a group is gathered at its first use", PREFETCH, "m.due = m.used_first[i] - 1 + N;", "m.due = m.used_first[i] - 1;", (PREFETCH_TEST,)),
    ("prefetch: a group is gathered again while it is in use", PREFETCH, "ready = ready && (last < 0 || last >= g.node_count || st.emitted[last]);", "",
     (PREFETCH_TEST,)),
    ("prefetch: before a write that it must see", PREFETCH, "bool ready = m.after[u] == 0 || st.emitted[m.after[u] - 1];", "bool ready = true;",
     (PREFETCH_TEST,)),
    ("prefetch: behind a write that it must not see", PREFETCH, "if (const int u = st.memory.reader[owner] - 1; u >= 0 && !st.emitted[u]) release(st, g, u);", "",
     (PREFETCH_TEST,)),
    ("prefetch: sums are waited for by the updates", PREFETCH, "if (last > 0) finish_sum(st, g, last - 1);", "", (PREFETCH_TEST,)),
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
    ("lists: updates of other flavours join", LISTS, "return a.clipped == c.clipped && a.decoupled == c.decoupled && a.group == c.group && x.f == y.f &&",
     "return a.clipped == c.clipped && a.decoupled == c.decoupled && a.group == c.group &&", ("unit/pass/kept_apart.cpp", SPMD)),
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
    ("fully_shard: the first entry that holds has the parameters", "module/plan.hpp", "if (holds && (r < 0 || depth(e) >= depth(r))) r = e;",
     "if (holds && r < 0) r = e;", (SHARDS,)),
    ("fully_shard: a group is its module's own parameters", "module/plan.hpp", "else if (shards[e] && k >= segments[e]) s.at[e]",
     "else if (shards[e] && k > 100) s.at[e]", (SHARDS,)),
    ("fully_shard: rows are split before tensor parallelism", "module/parameter.hpp", "strided_shard_value(0, last_factor(r.used, axis, 0))",
     "shard_value(0)", (SHARDS,)),
    ("fully_shard: a parameter is gathered by itself", "graph/graph.hpp", "for (int k = leaf[id].first; k >= 0; k = leaf[k].next)",
     "for (int k = id; k >= 0; k = -1)", (SHARDS,)),
    ("fully_shard: who frees keeps", "module/fully_shard.hpp", "(options::said ? options::ranks == 1 : Root)",
     "(options::said ? options::ranks != 1 : Root)", (SHARDS,)),
    ("fully_shard: what is gathered again begins where it is read", RESHARD, "while (first > 0 && is_beside(g, first - 1, i)) --first;",
     "", (SHARDS,)),
    ("fully_shard: the backward pass reads what the forward pass gathered", RESHARD, "b.nodes[to[i]].in[k] = again[n.in[k]];",
     "b.nodes[to[i]].in[k] = to[n.in[k]];", (SHARDS,)),
    ("fully_shard: gathers are computed again like any value", "pass/rematerialise/min_cut.hpp", " || gathers_parameter(x) ||",
     " ||", (SHARDS,)),
    ("fully_shard: gathered again before values are computed again", "module/plan_passes.hpp", "std::conditional_t<requires { typename P::computes_again; },", "std::conditional_t<false,",
     (SHARDS,)),
    ("fully_shard: a redistribution of a gathered parameter is recorded twice", "graph/sym.hpp", "const int from = n.in[0];",
     "const int from = first.id;", (SHARDS,)),
    ("average_gradients: they are summed", "module/batch_axes.hpp", "value.averaged ? Axis::size : 1", "value.averaged ? 1 : 1", (SHARDS,)),
    ("accumulate: all forward passes come first", TURNS, "return 3 + 2 * turn - (turn == Pieces ? 1 : 0);",
     "return turn == Pieces ? places - 2 : 1 + 2 * Pieces;", (PIECES,)),
    ("accumulate: what several turns read is of the last", TURNS, "reader[v] = reader[v] == unread || reader[v] == turn[i] ? turn[i] : shared;",
     "reader[v] = reader[v] == unread || reader[v] < turn[i] ? turn[i] : reader[v];", (PIECES,)),
    ("accumulate: freed parameters are gathered once for all turns", TURNS, "const bool anew = in_turn && v < State::forward &&",
     "const bool anew = false && v < State::forward &&", (PIECES,)),
    ("accumulate: a group's parameters are gathered one by one in later turns", TURNS, "while (beside(k - 1)) --k;\n    for (; beside(k); ++k) {",
     "for (; k == v; ++k) {", (PIECES,)),
    ("accumulate: products of two turns are one", "pass/fuse/siblings.hpp", "turn_of(g, leader) != turn_of(g, other))", "false)", (PIECES,)),
    ("accumulate: a gather stands for another turn's", "graph/checkpoint.hpp", " && turn_of(g, earlier) == turn_of(g, later);", ";", (PIECES,)),
    ("accumulate: the loss is the sum", "module/accumulate.hpp", "return scale(total, 1.0 / static_cast<double>(N));",
     "return scale(total, 1.0);", (WHOLE_BATCH,)),
    ("accumulate: later turns see the first rows", "module/accumulate.hpp", "return micro_batch<Accumulation::shardwise_micro_batches, K>(x);",
     "return micro_batch<Accumulation::shardwise_micro_batches, 0>(x);", (EFFECTS,)),
]
