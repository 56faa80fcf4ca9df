# SPDX-License-Identifier: Apache-2.0
"""Mutants of the memory plan: storage that is given back too early, taken twice, or counted wrongly."""

PLAN = "pass/memory/memory.hpp"
HOLES = "pass/memory/holes.hpp"
STORAGE = "graph/storage.hpp"
STEP = "dist/memory.cpp"
EQUAL = "dist/mesh_equivalence_double.cpp"
GRAPHS = "unit/pass/simplify/simplify.cpp"
ARENA = "unit/pass/memory/holes.cpp"

RESULTS = "unit/graph/results.cpp"
SCRATCH = "pass/memory/scratch.hpp"
ASKED = "dist/custom_scratch.cpp"
BATCHES = "unit/graph/batches.cpp"
LOGITS = "unit/pass/memory/logits.cpp"

TWO_BYTES = "static/runtime/device_scratch_of_two_bytes.cpp"

MUTANTS = [
    ("extremes of two-byte elements travel without scratch", "runtime/cuda/collective_workspace.hpp",
     "case transition::all_reduce: return keys ? runtime::extreme_scratch(taken / 2, 0) : 0;", "case transition::all_reduce: return 0;",
     (TWO_BYTES,)),
    ("sums by index of two-byte elements have no room to grow", "operations/indexing/record.hpp",
     "return device_scratch::align(widened_block::bytes(out));", "return 0 * out.extent[0];", (TWO_BYTES,)),
    ("one kernel adds squares of different element types", "pass/analysis/kernels.hpp",
     "if (kernel_type(g, a) != kernel_type(g, b)) return false;", "", (TWO_BYTES, "static/module/low_gradients.cpp")),
    ("element types of a plan's paths are not compiled", "pass/framework/program_traits.hpp",
     "struct elements_of_listed<List<Entry...>, More...> : elements_of_entries<Entry..., More...> {};",
     "struct elements_of_listed<List<Entry...>, More...> : elements_of_entries<More...> {};", ("static/pass/low_elements.cpp",)),
    ("traits of a phase complete its step", "module/iterated.hpp", "using element = typename program_traits<Step>::element;",
     "using element = typename Step::element;", ("static/pass/program_traits.cpp",)),
    ("the last kernel's scratch is taken for the most", SCRATCH, "if (bytes > most) most = bytes;", "most = bytes;", (ASKED,)),
    ("scratch is counted once an operation", SCRATCH, "if (n.op != m.op || n.spec != m.spec || n.inputs != m.inputs) return false;",
     "if (n.op == m.op) return true;", (ASKED,)),
    ("scratch of one's own kernels lies nowhere", "runtime/host/custom.hpp", "if constexpr (has_scratch) q.scratch = static_cast<T*>(c.workspace);",
     "if constexpr (has_scratch) q.scratch = nullptr;", (ASKED,)),
    ("a result's storage is taken where its own node stands", PLAN,
     "for (int k = st.items.first[i]; k >= 0; k = st.items.next[k]) if (const int o = p.owner[k]; p.offset[o] < 0) take_for(st, o);", "", (RESULTS,)),
    ("a node with several results has bytes", PLAN, "alias || has_results(g, i) ? 0", "alias ? 0", (RESULTS,)),
    ("a value dies at its first reader", PLAN, "for (int k = 0; k < x.inputs; ++k) p.last_use[st.storage.owner[x.in[k]]] = i;",
     "for (int k = 0; k < x.inputs; ++k) if (p.last_use[st.storage.owner[x.in[k]]] == st.storage.owner[x.in[k]]) "
     "p.last_use[st.storage.owner[x.in[k]]] = i;", (STEP, EQUAL, GRAPHS)),
    ("what a collective on its way reads is given back", PLAN, "each_member(g, c, [&](int j) { p.last_use[st.storage.owner[g.nodes[j].in[0]]] = i; });",
     "(void)c;", ("dist/pending/programs.cpp", "unit/pass/communication/waits.cpp", STEP)),
    ("outputs die with their last reader", PLAN, "for (int i = 0; i < g.output_count; ++i) p.last_use[p.owner[g.outputs[i]]] = n;", "",
     (STEP, "dist/communication.cpp", GRAPHS)),
    ("leaves die with their last reader", PLAN, "p.last_use[i] = p.last_use[own] = n;", "(void)0;", (STEP, EQUAL)),
    ("a hole that is too small fits", HOLES, "if (s < need || s > size", "if (s + 64 < need || s > size",
     (ARENA,)),
    ("what is left of a hole begins where the hole did", HOLES, "add_hole(st, at + need, size - need)", "add_hole(st, at, size - need)",
     (ARENA,)),
    ("holes that touch are joined one slot too long", HOLES, "size += st.holes[below].size;", "size += st.holes[below].size + 64;",
     (ARENA,)),
    ("a hole on the right is joined with what lies behind it", HOLES, "size += st.holes[above].size;", "size += st.holes[above].size + 64;",
     (ARENA,)),
    ("a class that has lost its last hole is looked at", HOLES, "else if (x.before < 0) st.filled[c / 64] &=", "else if (false) st.filled[c / 64] &=", (ARENA,)),
    ("the top is not grown from the hole below it", HOLES, "if (const int last = hole_up_to(st, st.top); last >= 0) {",
     "if (const int last = hole_up_to(st, st.top); last >= max_holes) {", (ARENA,)),
    ("a larger hole of the class is taken as well", HOLES, "s > size ||", "", (ARENA,)),
    ("the peak forgets the last buffer", PLAN, "if (bytes > 0 && at + bytes > p.peak) p.peak = at + bytes;",
     "if (bytes > 0 && at > p.peak) p.peak = at;", (STEP, EQUAL)),
    ("the workspace lies over the parameters", PLAN, "st.top = p.workspace;", "st.top = 0;", (STEP, EQUAL)),
    ("an operand is overwritten though something reads it later", PLAN,
     "if (p.last_use[o] != i || g.nodes[x.in[j]].spec != x.spec || p.bytes[o] != p.bytes[i]) continue;",
     "if (g.nodes[x.in[j]].spec != x.spec || p.bytes[o] != p.bytes[i]) continue;", (STEP, EQUAL, GRAPHS)),
    ("products overwrite an operand", PLAN, "if (!rules::is_pointwise(x.op) && !scatters && !logits) return -1;",
     "if (!rules::is_pointwise(x.op) && !scatters && !logits && x.op != op_code::einsum) return -1;", (EQUAL, GRAPHS, STEP)),
    ("logits are kept beside their gradient", PLAN, "logits = x.op == op_code::nll_dx || x.op == op_code::nll_dx_loss;", "logits = false;", (LOGITS,)),
    ("logits are overwritten though something reads them later", PLAN,
     "if (p.last_use[o] != i || g.nodes[x.in[j]].spec != x.spec || p.bytes[o] != p.bytes[i]) continue;",
     "if ((p.last_use[o] != i && !logits) || g.nodes[x.in[j]].spec != x.spec || p.bytes[o] != p.bytes[i]) continue;", (LOGITS,)),
    ("an operand that is read twice, once turned, is overwritten", PLAN,
     "alone = alone && (p.owner[x.in[k]] != o || g.nodes[x.in[k]].spec == x.spec);", "(void)k;",
     ("unit/pass/kept_apart.cpp",)),
    ("an operand given twice dies twice", PLAN, "for (int e = 0; e < j; ++e) again = again || p.owner[x.in[e]] == o;", "",
     ("unit/pass/kept_apart.cpp",)),
    ("sizes are not rounded up to the alignment", PLAN,
     "return (n + buffer_alignment - 1) & -buffer_alignment;", "return n;", (STEP, EQUAL)),
    ("a value inside a pack begins where the pack does", PLAN, "if (own != i) p.offset[i] = p.offset[own] + st.storage.within[i];\n      for",
     "if (own != i) p.offset[i] = p.offset[own];\n      for", ("unit/pass/spmd.cpp", "unit/pass/communication/buckets.cpp", "unit/pass/fuse/fuse.cpp")),
    ("a batch's results die with their own member", PLAN, "p.last_use[i] = p.last_use[own] = p.last_use[st.storage.owner[x.in[0]]] = batch_end(g, i) - 1;",
     "p.last_use[st.storage.owner[x.in[0]]] = batch_end(g, i) - 1;", (BATCHES,)),
    ("a batch's operands die with their own member", PLAN,
     "p.last_use[i] = p.last_use[own] = p.last_use[st.storage.owner[x.in[0]]] = batch_end(g, i) - 1;", "p.last_use[i] = p.last_use[own] = batch_end(g, i) - 1;", (BATCHES,)),
    ("a wait for one member keeps its operand alone", PLAN, "each_member(g, c, [&](int j) { p.last_use[st.storage.owner[g.nodes[j].in[0]]] = i; });",
     "p.last_use[st.storage.owner[g.nodes[c].in[0]]] = i;", (BATCHES,)),
    ("a batch's operands are not given back", PLAN, "if (p.last_use[o] == i && p.offset[o] >= 0) detail::give_back", "if (false) detail::give_back", (BATCHES,)),
    ("a leaf is written while somebody is still to read it", PLAN,
     "if (storage.owner[y.in[k]] == leaf) return -1;\n  }\n  return -1;", "(void)k;\n  }\n  return -1;", ("dist/kv_cache.cpp",)),
    ("a leaf is never written where it lies", PLAN, "const int over = leaf >= 0 ? leaf : detail::overwritten_owner(p, g, x, i);",
     "const int over = detail::overwritten_owner(p, g, x, i);", ("dist/kv_cache.cpp",)),
]
