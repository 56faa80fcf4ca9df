# SPDX-License-Identifier: Apache-2.0
"""Mutants of what runs: collectives of rank threads, blocks and views of tensors, random numbers, streams."""

COLLECTIVES = "runtime/threads/collectives.hpp"
STREAM = "runtime/threads/stream.hpp"
CALL = "runtime/program/call.hpp"
BLOCKS = "runtime/program/blocks.hpp"
READY = "runtime/program/ready.hpp"
EXECUTOR = "runtime/executor/executor.hpp"
EXECUTORS = "runtime/executor/executor_base.hpp"
WHOLE = "dist/redistribution/whole_values.cpp"
SET = "unit/runtime/program/ready.cpp"
BUFFERS = "unit/runtime/program/buffers.cpp"
BUFFER_GRAPHS = "static/module/buffers.cpp"
METRICS = "dist/metrics.cpp"
COMMUNICATION = "dist/communication.cpp"
PAIRS = "dist/redistribution/pairs.cpp"
STRIDED = "dist/redistribution/strided.cpp"
EAGER = "dist/eager.cpp"
EQUAL = "dist/mesh_equivalence_double.cpp"
POOL = "runtime/eager/pool.hpp"
FLIGHT = "runtime/eager/flight.hpp"
EAGER_UNIT = "unit/runtime/eager/eager.cpp"
SOURCES = "dist/pending/written_sources.cpp"
CUSTOM = "dist/custom.cpp"
BATCHES = "dist/batches.cpp"
LIBRARY = "runtime/cuda/attention_library.hpp"
LIBRARY_BYTES = "operations/attention/library_bytes.hpp"
BY_LIBRARY = "unit/runtime/attention_library.cpp"
BYTES_OF_LIBRARY = "static/operations/attention_library.cpp"
PRODUCTS = "unit/runtime/cuda/product_table.cpp"
EPILOGUES = "static/operations/product_epilogue.cpp"
VECTORS = "runtime/host/vector_math.hpp"
VECTOR_UNIT = "unit/runtime/host/vector_math.cpp"
NUMBERS = "unit/runtime/host/numbers.cpp"
GEMM_UNIT = "unit/runtime/host/gemm.cpp"
PARTS = "runtime/host/parts.hpp"
PARTS_UNIT = "unit/runtime/host/parts.cpp"
TEAM = "runtime/threads/team.hpp"
COMPUTE_THREADS = "dist/compute_threads.cpp"
BATCH_GRAPHS = "unit/pass/communication/batch_collectives.cpp"

GRADIENT_SUMS = "runtime/executor/gradient_sums.hpp"
KEPT_BITS = "dist/module/keep_gradients_bits.cpp"
KEPT_RUNS = "dist/module/keep_gradients_runs.cpp"

MUTANTS = [
    ("keep_gradients: all batches of an update draw alike", "runtime/program/lowered.hpp",
     "static_cast<std::uint64_t>(batch * image().sites)", "static_cast<std::uint64_t>(0 * batch)", (KEPT_BITS,)),
    ("keep_gradients: all batches of an update draw alike by offset", "runtime/program/lowered.hpp",
     "static_cast<std::uint64_t>(batch * draws_)", "static_cast<std::uint64_t>(0 * batch)", (KEPT_BITS,)),
    ("keep_gradients: sums go on behind an update", GRADIENT_SUMS, "    if (before == 0)\n      for (int id = 0;", "    if (before < 0)\n      for (int id = 0;",
     (KEPT_BITS, KEPT_RUNS)),
    ("keep_gradients: a batch that throws spoils nothing", GRADIENT_SUMS, "if (before > 0) batches_ = broken_sums;", "", (KEPT_RUNS,)),
    ("keep_gradients: sums are copied as states", "propagation/attributes.hpp", " && of.which != kept_gradient);", ");", (KEPT_RUNS,)),
    ("exp: small results are flushed to zero", VECTORS, "static constexpr float exp_lowest = -104.0F", "static constexpr float exp_lowest = -87.0F",
     (VECTOR_UNIT, NUMBERS)),
    ("log: of subnormal numbers, their exponent as written", VECTORS, "(tiny ? T(with::mantissa) : T(0))", "T(0)", (VECTOR_UNIT, NUMBERS)),
    ("tanh: minus zero loses its sign", VECTORS, "return with_sign_of((small ? a : T(1)) + over / under, x);",
     "const T y = (small ? a : T(1)) + over / under;\n  return x < T(0) ? -y : y;", (VECTOR_UNIT,)),
    ("products: scratch by the depth of blocks, which does not grow with k", "operations/contraction/scratch.hpp",
     "return smaller(k, max_depth); }", "return depth_of(k); }", (GEMM_UNIT,)),
    ("products: B in place where rows end a panel", "runtime/host/gemm.hpp", "if (direct_b && left >= width) continue;", "if (direct_b) continue;",
     (GEMM_UNIT,)),
    ("attention: a library is asked about dropped weights", LIBRARY, "if (r.dropped) return", "if (r.dropped && r.biased) return", (BY_LIBRARY,)),
    ("attention: the report counts questions", LIBRARY, "at->calls += stream ? 1 : 0;", "at->calls += 1;", (BY_LIBRARY,)),
    ("attention: a library turned off is the last one still in the report", LIBRARY, "return x.request == r && x.by == by;",
     "return x.request == r;", (BY_LIBRARY,)),
    ("attention: the ordered adjoint's numbers are counted by queries", LIBRARY_BYTES, "2 * all * tiles(e.queries) * tiles(e.keys)",
     "2 * all * e.queries * tiles(e.keys)", (BYTES_OF_LIBRARY,)),
    ("attention: groups of heads need no gradients of all heads", LIBRARY_BYTES, "2 * all * e.keys * (e.size + e.value_size)",
     "all * e.keys", (BYTES_OF_LIBRARY,)),
    ("attention: a slice takes a row too many", LIBRARY_BYTES, "return (all + slices - 1) / slices;", "return (all + slices - 1) / slices + 1;",
     (BYTES_OF_LIBRARY,)),
    ("sgd: Nesterov's form is the plain one", "operations/update/host.hpp", "p[i] = p[i] - lr * (now + mu * b[i]);", "p[i] = p[i] - lr * b[i];",
     ("unit/module/optimizer.cpp",)),
    ("schedules: a cosine falls twice as fast", "module/schedules.hpp", "elementary::cos(3.141592653589793 * share)", "elementary::cos(6.283185307179586 * share)",
     ("unit/module/schedules.cpp",)),
    ("schedules: warming up, the next one has begun", "module/schedules.hpp", "return then.at(n - steps);", "return then.at(n);", ("unit/module/schedules.cpp",)),
    ("schedules: one cycle ends a step late", "module/schedules.hpp", "last = static_cast<double>(steps) - 1;", "last = static_cast<double>(steps);",
     ("unit/module/schedules.cpp",)),
    ("weight average: the weights count as the average should", "runtime/executor/weight_average.hpp", "share = static_cast<element>(1 - decay)",
     "share = static_cast<element>(decay)", ("dist/training/weight_average.cpp",)),
    ("weight average: exchanged one way", "runtime/executor/weight_average.hpp", "      average.swap(weights);\n", "", ("dist/training/weight_average.cpp",)),
    ("own operations: a broadcast operand is read as it lies", "runtime/host/custom.hpp", "from[K][i * s[K + 1]]...);", "from[K][i]...);", (CUSTOM,)),
    ("own operations: one kernel serves all of a type", "runtime/host/signatures.hpp", "&& k.item[at].type == t && is_same_operation(k.custom[at], own))",
     "&& k.item[at].type == t)", (CUSTOM,)),
    ("own operations: all are the first", "graph/builder.hpp", "while (i < custom_count && !is_same_operation(customs[i], o)) ++i;", "", (CUSTOM,)),
    ("own operations: all have one name", "graph/text/text.hpp", "custom_names + static_cast<int>(n.a.v[custom_word])", "static_cast<int>(n.op)", (CUSTOM,)),
    ("own operations: a kernel gets operands as they lie", "graph/functions/custom.hpp", "else return contiguous(x);", "else return x;", (CUSTOM,)),
    ("all_reduce: the last rank is left out", COLLECTIVES, "  for (int r = 1; r < n; ++r) {\n    const T* const other",
     "  for (int r = 1; r + 1 < n; ++r) {\n    const T* const other", (COMMUNICATION, PAIRS)),
    ("all_reduce: every reduction is a sum", COLLECTIVES, "if (op == reduction::sum) {\n      SHARDWISE_IVDEP", "if (true) {\n      SHARDWISE_IVDEP",
     (COMMUNICATION, PAIRS, EAGER)),
    ("all_reduce: nobody waits for the inboxes", COLLECTIVES,
     "  g.gate.finish();\n  T* const inbox = static_cast<T*>(c.workspace);\n  const reduction op = c.from.op;\n  runtime::begin_reduction(c.from, inbox, own.size * n);",
     "  T* const inbox = static_cast<T*>(c.workspace);\n  const reduction op = c.from.op;\n  runtime::begin_reduction(c.from, inbox, own.size * n);",
     (COMMUNICATION, EQUAL, PAIRS)),
    ("all_gather: every block at the front", COLLECTIVES, "begin[d] = c.l[0].origin[d] - c.l[result].origin[d];", "begin[d] = 0;",
     (COMMUNICATION, PAIRS)),
    ("reduce_scatter: the block does not count", COLLECTIVES,
     "const interval part = split({0, x.ext[d]}, c.to.block, n, to);\n    const layout theirs = runtime::with_extent(x, d, part.size);",
     "const interval part = split({0, x.ext[d]}, 1, n, to);\n    const layout theirs = runtime::with_extent(x, d, part.size);",
     (COMMUNICATION, PAIRS, EAGER)),
    ("reduce_scatter: the result is the sum of all but the first", COLLECTIVES,
     "for (std::int64_t i = 0; i < own; ++i) out[i] = inbox[i];", "for (std::int64_t i = 0; i < own; ++i) out[i] = T(0);",
     (COMMUNICATION, PAIRS)),
    ("all_to_all: columns from the front", COLLECTIVES, "x_begin[to_dim] = part.begin;\n    o_begin[from]", "x_begin[to_dim] = 0;\n    o_begin[from]",
     (COMMUNICATION, PAIRS)),
    ("all_to_all: rows to the front", COLLECTIVES, "o_begin[from] = x.origin[from] - c.l[result].origin[from];", "o_begin[from] = 0;",
     (COMMUNICATION, PAIRS)),
    ("all_to_all: the block does not count", COLLECTIVES, "const interval part = split({0, x.ext[to_dim]}, c.to.block, c.ranks, to);",
     "const interval part = split({0, x.ext[to_dim]}, 1, c.ranks, to);", (COMMUNICATION, PAIRS, EAGER)),
    ("resplit: from the front of the block", COLLECTIVES, "x_begin[d] = lo - x.origin[d];", "x_begin[d] = 0;", (COMMUNICATION, PAIRS, STRIDED)),
    ("resplit: to the front of the result", COLLECTIVES, "o_begin[d] = lo - theirs.origin[d];", "o_begin[d] = 0;", (COMMUNICATION, PAIRS, STRIDED)),
    ("bytes: a rank's own copy is counted", COLLECTIVES, "if (to == c.coordinate) return;", "", (COMMUNICATION, PAIRS)),
    ("bytes: resplit sends without being counted", COLLECTIVES, "  rank.count_written(c.axis, n);", "  if (c.from.dim != c.to.dim) rank.count_written(c.axis, n);",
     (COMMUNICATION, PAIRS, STRIDED)),
    ("stream: done before it has run", STREAM, "if (static_cast<int>(done - t) >= 0) return;", "if (static_cast<int>(done - t) >= -1) return;",
     ("dist/pending/programs.cpp", "unit/pass/communication/waits.cpp", "dist/pending/iterations.cpp")),
    ("stream: a failure is not told", STREAM, "if (broken_.load(std::memory_order_acquire)) throw rank_failed();", "",
     ("dist/pending/failures.cpp",)),
    ("view: a permuted block keeps its strides", CALL, "      l.str[d] = x.str[from];\n      l.origin[d] = x.origin[from];",
     "      l.origin[d] = x.origin[from];", (EAGER, "unit/runtime/eager/eager.cpp", "unit/functions/elementwise.cpp")),
    ("view: a slice begins at the front", CALL, "offset += of.start * x.str[d];", "offset += 0;", ("dist/functions/slices.cpp", "unit/runtime/eager/eager.cpp")),
    ("view: a broadcast dim is walked", CALL, "l.str[d] = own < 0 || x.global[own] != l.global[d] ? 0 : x.str[own];",
     "l.str[d] = own < 0 ? 0 : x.str[own];", ("unit/runtime/eager/eager.cpp", "unit/graph/families.cpp", "static/graph/functions/views.cpp")),
    ("view: an unpacked value begins with its pack", CALL, "offset += attributes_of<storage_attributes>(a).at;\n    l = local_layout(out, c, n);", "l = local_layout(out, c, n);",
     ("unit/pass/composed.cpp", "unit/pass/spmd.cpp")),
    ("block: the cut of a nested shard is the whole", BLOCKS, "k.cut = split(k.cut, in.place[a].block, in.axis_size[a], c[a]);", "(void)a;",
     (PAIRS, STRIDED, COMMUNICATION), "rank threads exchange by layouts; device ranks read the cut: test/cuda/collectives.cu"),
    ("block: elements are stored by position in the block", BLOCKS, "global[g] = static_cast<To>(local[i]);", "global[i + 0 * g] = static_cast<To>(local[i]);",
     (EAGER, EQUAL)),
    ("block: every coordinate of a sum has the whole", BLOCKS, "if (!p.is_partial() || c[a] == 0) continue;", "if (!p.is_partial() || c[a] >= 0) continue;",
     (EAGER, "unit/runtime/eager/eager.cpp", PAIRS)),
    ("random: all parameters draw one stream", "runtime/host/initialise.hpp", "const std::uint32_t stream = runtime::stream_of(path);",
     "const std::uint32_t stream = runtime::stream_of(\"\");\n  (void)path;", ("unit/runtime/initial_values.cpp",)),
    ("initial values: a block's rows begin where the block does", "runtime/host/initialise.hpp", "if (l.ext[d] != l.global[d]) break;", "",
     ("unit/runtime/initial_values.cpp",)),
    ("initial values: a quarter of a turn is lost", "runtime/program/initial_values.hpp", "(word + 0x20000000U) >> 30", "word >> 30",
     ("unit/runtime/initial_values.cpp",)),
    ("random: uniform weights are not symmetric", "runtime/program/initial_values.hpp", "D(2.0 / 4294967296.0) - D(1);", "D(1.0 / 4294967296.0);",
     ("unit/runtime/initial_values.cpp",)),
    ("share_of: shards are neutral, summands whole", BLOCKS, "if (!p.is_partial() || c[a] == 0) continue;",
     "if (!p.is_shard() || c[a] == 0) continue;", (WHOLE,)),
    ("share_of: a product's 1 beside a sum", BLOCKS, "else if (p.op == reduction::product && r.of_values) r = {false, 1};",
     "else if (p.op == reduction::product) r = {false, 1};", (WHOLE,)),
    ("share_of: a sum's neutral element loses a -0", BLOCKS, "r = {false, -0.0};", "r = {false, 0.0};", (WHOLE,)),
    ("check_env: an explicit rate of 0 is refused", READY, "const bool rates = e.lr >= 0 &&", "const bool rates = e.lr > 0 &&", (SET,)),
    ("check_env: Adam's step may be 0", READY, "const bool counted = e.step >= 1 ||", "const bool counted = e.step >= 0 ||", (SET,)),
    ("executor: states are what the arena held", EXECUTOR, "    lower(0);\n    base::reset_states();\n", "    lower(0);\n", (SET,)),
    ("executor: inputs of another size are kept", EXECUTORS, "if (n != (n_dyn_ != 0 ? n_dyn_ : source::dyn_bound)) base::resize_inputs();", "",
     (SET,)),
    ("apply_optimizer: metrics stay partial", "module/optimizer.hpp", "for (int k = 0; k < st.g.output_count; ++k) st.g.outputs[k] = apart",
     "for (int k = 0; k < 1; ++k) st.g.outputs[k] = apart", (METRICS,)),
    ("apply_optimizer: an output shows what the step made of a parameter", "module/optimizer.hpp",
     "if (b.nodes[at].op != op_code::param || st.cotangent[at] < 0) return id;", "if (at >= 0) return id;", (METRICS,)),
    ("apply_optimizer: a view of a parameter is an output where it lies", "module/optimizer.hpp",
     "while (lies_in_operand(b.nodes[at], b.specs, b.nodes)) at = b.nodes[at].in[0];", "", (METRICS,)),
    ("block: what was lent is written under its borrowers", POOL, "    if (h->borrowers) evict();\n", "", (EAGER_UNIT,)),
    ("block: a borrower writes its lender's bytes", POOL, "      if (h->lender->count > 1) part();\n      return;", "      return;", (EAGER_UNIT,)),
    ("block: pointers to borrowed bytes are given out", POOL, "    if (head_->lender->count > 1) part();\n    head_->given = true;",
     "    head_->given = true;", (EAGER_UNIT,)),
    ("block: bytes that the caller writes are lent", POOL, "if (head_->given) return copy();", "", (EAGER_UNIT,)),
    ("pending: its source may be written before it is read", FLIGHT, "      to.kept.back().read_until(to.ticket);\n", "", (SOURCES,)),
    ("pending: its source is written through a pointer", FLIGHT,
     "if (source.storage.is_given()) source.storage = source.storage.copy();  // nobody can tell when he writes", "", (SOURCES,)),
    ("buffers: they are numbered behind the parameters in the graph too", "module/trace.hpp",
     "int& number = is_buffer ? buffers : count;", "int& number = count;", (BUFFER_GRAPHS, BUFFERS)),
    ("buffers: initialised with the values of the first parameters", EXECUTORS,
     "self().draw_block(id, info.kind, info.scale, seed, base::table_name(at));",
     "self().draw_block(id, info.kind, info.scale, seed, base::table_name(0));", (BUFFERS,)),
    ("buffers: copies leave them", "runtime/program/copied_parameters.hpp",
     "for (int i = 0; i < To::buffer_total; ++i) add(buffers.node[i], held.node[i]);", "", ("dist/module/moved_state.cpp",)),
    ("copy_state: the second moment is the first one", "runtime/program/copied_parameters.hpp",
     "if (a.parameter == of.parameter && a.which == of.which) return i;", "if (a.parameter == of.parameter) return i;",
     ("dist/module/moved_state.cpp",)),
    ("copied blocks: all pairs of placements go by the first list", "runtime/program/copied_parameters.hpp",
     "if (r.pairs[l.list].to == wanted.to && r.pairs[l.list].from == wanted.from) return;", "return;", ("dist/module/moved_state.cpp",)),
    ("copy lists: equal blocks are taken from each rank that has them", "runtime/program/copy_list.hpp",
     "if (groups.member(first, 0) != first) continue;", "", ("static/runtime/copy_list.cpp",)),
    ("copy lists: a rank asks another for what it has", "runtime/program/copy_list.hpp",
     "box.from = first == own ? rank : groups.member(first, rank % copies);", "box.from = groups.member(first, rank % copies);",
     ("static/runtime/copy_list.cpp",)),
    ("copy lists: the end of a block is that of the giver's", "runtime/program/copy_list.hpp",
     "box.size[d] = (end < last ? end : last) - lo;", "box.size[d] = end - lo;", ("static/runtime/copy_list.cpp",)),
    ("copy lists: a box begins where the giver's block does", "runtime/program/copy_list.hpp",
     "x += (box.begin[d] + at[d] - lf.origin[d]) * lf.str[d];", "x += at[d] * lf.str[d];", ("static/runtime/copy_list.cpp",)),
    ("full: every rank gets what one asked for", EXECUTORS, "const bool wanted = root < 0 || root == rank_->index();",
     "const bool wanted = true;", ("dist/module/moved_state.cpp",)),
    ("launch on two meshes: a failure stays in one", "runtime/threads/threads.hpp", "    w.fail(e);\n    v.fail(e);", "    w.fail(e);",
     ("dist/module/moved_state.cpp",)),
    ("modes: that of a module ends at the module", "module/plan.hpp",
     "if (setting[e] && !elements[e].said && k == segments[e]) s.at[e] = from.at[e];", "if (k > 100) s.at[e] = from.at[e];", (BUFFER_GRAPHS,)),
    ("modes: entries without a path come last", "module/plan.hpp", "if (is_entry[e] && mode[e] != run_mode::unsaid && s.at[e] == segments[e]) r = mode[e];",
     "if (r == run_mode::unsaid && is_entry[e] && mode[e] != run_mode::unsaid && s.at[e] == segments[e]) r = mode[e];", (BUFFER_GRAPHS,)),
    ("modes: gradients of an eager model are those of an evaluation", "module/eager.hpp",
     "gradient_mode = Said == run_mode::unsaid ? run_mode::train : Said;", "gradient_mode = mode;", ("dist/module/buffers.cpp",)),
    ("batch: a fetched byte is nobody's", COLLECTIVES, "if (peer != c->coordinate)\n      static_cast", "if (false)\n      static_cast", (BATCH_GRAPHS, BATCHES)),
    ("batch: a row begins where the first one does", COLLECTIVES, "for (int d = 0; d < last; ++d) from += index[d] * l.str[d];", "", (BATCH_GRAPHS,)),
    ("batch: the last rank's part comes first", COLLECTIVES, "add_row(by, r == 0, x + from", "add_row(by, r == c->ranks - 1, x + from", (BATCH_GRAPHS, BATCHES)),
    ("batch: the first member alone goes", "runtime/program/call.hpp", "while (end < calls.size() && number(end) == own) ++end;", "", (BATCHES,)),
    ("batch: what the second member waits for is not waited for", "runtime/program/schedule.hpp",
     "for (const access& a : touched[i]) touched[first].push_back(a);", ";", (BATCHES,)),
    ("batch: a wait for a later member is no wait", "runtime/program/overlap.hpp", "wait_at[static_cast<std::size_t>(batch_begin(g, c))] = i;",
     "wait_at[static_cast<std::size_t>(c)] = i;", (BATCHES,)),
    ("batch: a fake rank notes the last member", "runtime/fake/collectives.hpp", "{ bytes += more; }", "{ bytes = more; }", (BATCHES,)),
    ("products: another machine's file is read", "runtime/cuda/product_table.hpp", 'if (machine_ + "\\n" != line + std::strlen(head)) return', "if (false) return",
     (PRODUCTS,)),
    ("products: a line's sum is not compared", "runtime/cuda/product_table.hpp", ' == 0 && expected == sum(key, a);', " == 0;", (PRODUCTS,)),
    ("products: a save forgets the file", "runtime/cuda/product_table.hpp", "    load(folder);\n    make_folders", "    make_folders", (PRODUCTS,)),
    ("products: the file's choices come before one's own", "runtime/cuda/product_table.hpp", "choice_.insert(read.begin(), read.end());",
     "for (const auto& [key, a] : read) choice_[key] = a;", (PRODUCTS,)),
    ("products: gelu's adjoint takes its operands in any order", "operations/contraction/device_epilogue.cuh", " && first.x == 0 && first.y == 1)", ")",
     (EPILOGUES,)),
    ("products: any sum on the way is gelu's operand", "operations/contraction/device_epilogue.cuh",
     "if (s.store != 1 || i + 2 != e.steps() || e.at(i + 1).op != op_code::gelu_tanh) return {};", "", (EPILOGUES,)),
    ("products: gelu behind two values", "operations/contraction/device_epilogue.cuh", "(a.function == product_function::gelu ? 1 : 2)", "2", (EPILOGUES,)),
    ("parts: a block's origin stays where the whole begins", PARTS, "c.l[k].origin[d] += begin;", "", (PARTS_UNIT,)),
    ("parts: sums of few columns are cut", PARTS, "p.unit = 16;", "p.unit = 1;", (PARTS_UNIT,)),
    ("parts: numbers are drawn from the stream's beginning", PARTS, "/ how.extent * begin;", "/ how.extent * 0;", (PARTS_UNIT,)),
    ("parts: a result may lie over what another part reads", PARTS, "return !meets_other_parts(p);", "return true;", (PARTS_UNIT,)),
    ("parts: threads keep to the parts of another size", "runtime/executor/parted_calls.hpp", "void forget() { threads_ = 0; }",
     "void forget() {}", (COMPUTE_THREADS,)),
    ("team: an exception of a thread is lost", TEAM, "if (failed_.load(std::memory_order_relaxed) != nobody) rethrow();", "", (COMPUTE_THREADS,)),
    ("team: the last part's exception is thrown", TEAM, "if (part < failed_.load(std::memory_order_relaxed)) { error_ = e;",
     "{ error_ = e;", (COMPUTE_THREADS,)),
    ("team: who comes last does not wait for the others", TEAM, "if (left == 0) break;", "if (left <= 1) break;", (COMPUTE_THREADS,)),
    ("memory formats: a rank's block is row-major whatever the tensor is", CALL, "if (is_contiguous(s)) l.make_dense();\n  else if (s.rank == 4 && is_channels_last(s)) l.make_channels_last();\n  else l.make_dense_as(s.stride);",
     "l.make_dense();", ("static/vocabulary/memory_format.cpp", "dist/memory_formats.cpp")),
    ("memory formats: a view of a strided block is taken for dense", CALL, "if (!u.only && !x.is_dense() && !rules::view_strides",
     "if (false && !rules::view_strides", ("dist/memory_formats.cpp",)),
    ("memory formats: a block is drawn as if it were row-major", "runtime/host/initialise.hpp", "if (!l.is_dense()) return 1;", "",
     ("unit/pass/layout/layout_optim.cpp",)),
    ("memory formats: a box is copied as if its last dim were dense", "runtime/program/copy_list.hpp", "to[y + i * sy] = from[x + i * sx];", "to[y + i] = from[x + i];",
     ("unit/pass/layout/layout_optim.cpp",)),
]
