// SPDX-License-Identifier: Apache-2.0
// eager: one rank's run of operations that compute at once; tensors without their types, and how one is applied to
// them.
#pragma once

#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include <shardwise/graph/graph.hpp>
#include <shardwise/graph/storage.hpp>
#include <shardwise/runtime/eager/core.hpp>
#include <shardwise/runtime/host/backend.hpp>

namespace shardwise::inline v0_1 {

namespace runtime {

// An application of an operation to specs: all that can be settled while compiling. Tensor types hold no other code, so
// that an application costs one constant and one call. A rank settles the rest once for each of them: see prepared_call.
template <class Rank>
struct eager_operation {
  op_code op;
  op_attr a;
  const spec* in;  // of the first operand
  const spec* out;
  bool view;
  std::int64_t workspace;
  std::uint64_t signature;  // of a redistribution
  kernel_function<Rank> kernel;
  opaque_function function = nullptr;
  const custom_operation* custom = nullptr;
  std::int32_t site = -1;  // of a random operation in a program, counted from the program's first; -1: the next one
  int results = 1;
  const spec* outs[max_results]{};  // of several results, one by one; null: the program wants it nowhere
  std::uint32_t written = 0;        // operands that the kernel writes into, bit by bit
  dtype types[max_inputs]{};
};

constexpr std::uint64_t redistribution_signature(std::uint64_t from, std::uint64_t to) { return hash_mixed(from, to); }

// Scratch that an operation's kernel needs where blocks are largest: peers write into scratch of equal size.
constexpr std::int64_t eager_workspace(const operation& o, const node& n, const spec* const* in, const spec& out) {
  if (n.op == op_code::redistribute) return host_backend::collective_workspace(n.a, *in[0], out);
  return o.host_scratch.value(n.a, in, n.inputs, out) +
         (widens(n.op) ? widened_block::bytes(in, n.inputs, o.results > 1 ? spec{} : out) : 0);
}
template <class Rank>
constexpr void set_types(eager_operation<Rank>& x, const spec* const* in, int n) {
  for (int k = 0; k < n; ++k) x.types[k] = in[k]->type;
}
// The element type of the kernel: see kernel_type.
template <auto Op, class First, class Result, class... More>
constexpr dtype eager_type() {
  constexpr dtype own = makes_indices(code_of(Op)) ? First::sp.type : Result::sp.type;
  if (own != dtype::f32 || code_of(Op) == op_code::cast) return own;
  dtype low = is_low_precision(First::sp.type) ? First::sp.type : own;
  ((low = is_low_precision(More::sp.type) ? More::sp.type : low), ...);
  return low;
}

// An operation on tensors of these types, First and then More; and an opaque function.
template <auto Op, op_attr A, class Rank, class First, class Result, class... More>
constexpr eager_operation<Rank> operation_on() {
  constexpr op_code code = code_of(Op);
  node n = empty_node;
  n.op = code;
  n.a = A;
  n.inputs = 1 + static_cast<int>(sizeof...(More));
  eager_operation<Rank> x{};
  x.op = code;
  x.a = A;
  x.in = &First::sp;
  x.out = &Result::sp;
  x.view = is_view(n, First::sp, Result::sp);
  const spec* const in[] = {&First::sp, &More::sp...};
  x.workspace = x.view ? 0 : eager_workspace(operation_of(Op), n, in, Result::sp);
  x.written = operation_of(Op).writes.value(A);
  set_types(x, in, n.inputs);
  if constexpr (code == op_code::redistribute)
    x.signature = redistribution_signature(hash_of(First::sp), hash_of(Result::sp));
  if constexpr (code == op_code::custom) {
    x.custom = Op;
    x.kernel = custom_entry<*Op, eager_type<Op, First, Result, More...>(), Rank>();
  } else if constexpr (runs_kernel(Op))
    x.kernel = kernel_entry<signature{Op, eager_type<Op, First, Result, More...>()}, Rank>();  // others: always a view
  return x;
}
// The same of an operation with several results, of these types.
template <auto Op, op_attr A, class Rank, class First, class Results, class... More>
constexpr eager_operation<Rank> operation_with_results() {
  return []<class... Result>(std::type_identity<std::tuple<Result...>>) {
    eager_operation<Rank> x = operation_on<Op, A, Rank, First, std::tuple_element_t<0, Results>, More...>();
    x.results = 0;
    ((x.outs[x.results++] = &Result::sp), ...);
    ((x.workspace += widened_block::bytes(Result::sp)), ...);
    return x;
  }(std::type_identity<Results>{});
}
template <const opaque_operation* Function, class Rank, class First, class Result>
constexpr eager_operation<Rank> opaque_on() {
  eager_operation<Rank> x{};
  x.op = op_code::opaque;
  x.in = &First::sp;
  x.out = &Result::sp;
  x.kernel = kernel_entry<signature{op_code::opaque, Result::sp.type}, Rank>();
  x.function = Function->call;
  return x;
}

// A tensor's block, storage shared with its views, without its type.
template <class Rank>
struct eager_value {
  eager_core<Rank>* core = nullptr;
  block storage{};
  std::int64_t offset = 0;                  // in bytes, of the storage
  const runtime::layout* layout = nullptr;  // the core's

  eager_value() = default;
  // A new block for the rank's part of `s`, a constant.
  eager_value(eager_core<Rank>& on, const spec& s) : core(&on), layout(on.dense(s)) {
    storage = on.take(layout->numel() * static_cast<std::int64_t>(size_of(s.type)));
  }
  eager_value(eager_core<Rank>& on, block b, std::int64_t first, const runtime::layout* l)
      : core(&on), storage(std::move(b)), offset(first), layout(l) {}

  // Where the elements are now: a write into this value, or into one that it is a copy of, may move them.
  std::byte* data() const { return storage.data() + offset; }
  // A value of its own that is the same now: see block.
  eager_value lend() const { return {*core, storage.lend(), offset, layout}; }

  eager_core<Rank>& live() const {
    if (!storage || !core->rank) [[unlikely]]
      refuse();
    return *core;
  }

 private:
  [[noreturn]] __attribute__((noinline)) void refuse() const {
    throw std::logic_error(
        storage ? "shardwise: a tensor is used after its eager run has ended; keep the eager object alive while its "
                  "tensors work"
                : "shardwise: a tensor without a value is used: it was made by default, or moved from; give it one with "
                  "from_local, distribute, full or an operation's result, and a model's parameters with initialise or "
                  "load_parameters");
  }
};

[[noreturn]] __attribute__((noinline)) inline void refuse_mixed_runs() {
  throw std::logic_error(
      "shardwise: the operands belong to different eager runs; make all tensors of a rank from one eager object");
}

// Settles what an application is for this rank, from the operands' layouts.
template <class Rank>
__attribute__((noinline)) prepared_call& prepare(eager_core<Rank>& core, const eager_operation<Rank>& x,
                                                 const eager_value<Rank>* const* in, int n) {
  const int* const coordinate = core.rank->coordinate().data();
  prepared_call& p = core.template add<prepared_call>(&x);
  p.inputs = n;
  for (int k = 0; k < n; ++k) p.in[k] = in[k]->layout;
  const auto item = static_cast<std::int64_t>(size_of(x.out->type));
  if (x.view) {
    std::int64_t skipped = 0;
    p.out = core.intern(view_layout(x.op, x.a, *in[0]->layout, *x.out, coordinate, {}, skipped));
    p.skipped = skipped * item;
    return p;
  }
  if (x.results > 1) {
    p.results.resize(1);
    prepared_results& r = p.results[0];
    r.count = x.results;
    for (int k = 0; k < x.results; ++k) {
      if (!x.outs[k]) continue;
      r.out[k] = core.intern(local_layout(*x.outs[k], coordinate));
      r.out_class[k] = block_pool::class_of(r.out[k]->numel() * static_cast<std::int64_t>(size_of(x.outs[k]->type)));
      r.blocks.l[k] = *r.out[k];
      r.blocks.type[k] = x.outs[k]->type;
    }
    p.c.results = &r.blocks;
  }
  p.out = core.intern(local_layout(*x.out, coordinate));
  p.out_class = is_update(x.op) ? -1 : block_pool::class_of(p.out->numel() * item);
  p.workspace_class = x.workspace > 0 ? block_pool::class_of(x.workspace) : -1;
  call& c = p.c;
  c.a = x.a;
  c.inputs = c.all_inputs = n;
  for (int k = 0; k < n; ++k) c.l[k] = *in[k]->layout;
  for (int k = 0; k < n; ++k) c.type[k] = x.types[k];
  c.type[result] = x.out->type;
  c.written = x.written;
  c.l[result] = *p.out;
  c.function = x.function;
  if (x.op == op_code::redistribute)
    lower_redistribute(c, static_cast<int>(attributes_of<redistribute_attributes>(x.a).axis), *x.in, *x.out, coordinate);
  return p;
}

// What a kernel threw, with its place; called where it was caught.
template <class Rank>
[[noreturn]] __attribute__((noinline)) void rethrow_placed(const eager_operation<Rank>& x, const Rank& rank) {
  try {
    throw;
  } catch (const rank_failed&) {
    throw;
  } catch (const std::exception& e) {
    throw std::runtime_error(std::string(e.what()) + " (in " + (x.custom ? x.custom->name.value : name_of(x.op)) +
                             ", eager, rank " + std::to_string(rank.index()) + ")");
  }
}

template <class Rank>
prepared_call& prepared_for(eager_core<Rank>& core, const eager_operation<Rank>& x, const eager_value<Rank>* const* in,
                            int n) {
  for (int k = 1; k < n; ++k)
    if (&in[k]->live() != &core) [[unlikely]]
      refuse_mixed_runs();
  auto* p = static_cast<prepared_call*>(core.find(&x));
  for (; p; p = static_cast<prepared_call*>(p->next)) {
    bool fits = true;
    for (int k = 0; k < n; ++k) fits = fits && p->in[k] == in[k]->layout;
    if (fits) return *p;
  }
  return prepare(core, x, in, n);
}

// The call's scratch, for as long as the block lives.
template <class Rank>
block take_scratch(eager_core<Rank>& core, prepared_call& p) {
  if (p.workspace_class < 0) return {};
  block scratch = core.take_class(p.workspace_class);
  p.c.workspace = scratch.data();
  return scratch;
}

// An operation with several results: out[k] becomes result k, of those that x.outs names.
template <class Rank>
void apply_results_eagerly(const eager_operation<Rank>& x, double f, const eager_value<Rank>* const* in, int n,
                           eager_value<Rank>* const* out) {
  eager_core<Rank>& core = in[0]->live();
  prepared_call& p = prepared_for(core, x, in, n);
  prepared_results& r = p.results[0];
  p.c.f = f;
  for (int k = 0; k < n; ++k) p.c.p[k] = in[k]->data();
  for (int k = 0; k < r.count; ++k) {
    if (!r.out[k]) continue;
    *out[k] = eager_value<Rank>(core, core.take_class(r.out_class[k]), 0, r.out[k]);
    r.blocks.p[k] = out[k]->data();
  }
  const block scratch = take_scratch(core, p);
  try {
    x.kernel(p.c, core.env, *core.rank);
  } catch (...) {
    rethrow_placed(x, *core.rank);
  }
}

// `x` lives as long as the core: its address is what the core remembers the application by. Price of an application
// beside its kernel: one look-up, a block from the pool, the operands' pointers.
template <class Rank>
eager_value<Rank> apply_eagerly(const eager_operation<Rank>& x, double f, const eager_value<Rank>* const* in, int n,
                                std::int32_t first_site = 0) {
  eager_core<Rank>& core = in[0]->live();
  prepared_call* const p = &prepared_for(core, x, in, n);
  if (x.view) {  // what is redistributed is a value, moved or not
    return {core, x.op == op_code::redistribute ? in[0]->storage.lend() : in[0]->storage, in[0]->offset + p->skipped,
            p->out};
  }
  const bool updates = p->out_class < 0;  // its first operand
  if (updates)
    for (int k = 0; k < n; ++k)
      if (writes_operand(x.op, x.a, k)) core.before_write(in[k]->storage);
  block storage = updates ? in[0]->storage : core.take_class(p->out_class);
  const std::int64_t offset = updates ? in[0]->offset : 0;
  call& c = p->c;
  c.f = f;
  for (int k = 0; k < n; ++k) c.p[k] = in[k]->data();
  c.p[result] = storage.data() + offset;
  if (rules::is_random(x.op)) core.draw_at(c, x.site >= 0 ? first_site + x.site : -1, *x.out);
  const block scratch = take_scratch(core, *p);
  try {
    if (core.checks == eager_checks::agree && communicates(c.kind))
      core.rank->agree(x.signature, "the collective to run next");
    x.kernel(c, core.env, *core.rank);
  } catch (...) {
    rethrow_placed(x, *core.rank);
  }
  return {core, std::move(storage), offset, p->out};
}

// A tensor without operands: positions or random numbers.
template <class Rank>
eager_value<Rank> fill_eagerly(eager_core<Rank>& core, op_code op, const op_attr& a, double f, const spec& out,
                               kernel_function<Rank> kernel, std::int32_t site = -1) {
  eager_value<Rank> v(core, out);
  call c;
  c.a = a;
  c.f = f;
  c.l[result] = *v.layout;
  c.p[result] = v.data();
  c.type[result] = out.type;
  if (rules::is_random(op)) core.draw_at(c, site, out);
  block scratch;
  if (const std::int64_t bytes = widened_block::bytes(out); bytes > 0) {
    scratch = core.take(bytes);
    c.workspace = scratch.data();
  }
  kernel(c, core.env, *core.rank);
  return v;
}

inline std::string extents_of(const layout& l) {
  std::string s;
  for (int d = 0; d < l.rank; ++d) s += (d ? " x " : "") + std::to_string(l.ext[d]);
  return l.rank ? s : "a scalar";
}

}  // namespace runtime

// One rank's eager run: create it first on the rank's thread; its tensors live in its pool.
template <class Rank>
class eager {
  static_assert(checked_host_rank<Rank>::ok);

 public:
  using rank_type = Rank;
  using mesh_type = typename Rank::mesh_type;

  explicit eager(Rank& rank, eager_checks checks = eager_checks::none) : core_(new runtime::eager_core<Rank>) {
    core_->rank = &rank;
    core_->checks = checks;
  }
  eager(const eager&) = delete;
  eager& operator=(const eager&) = delete;
  ~eager() {
    if constexpr (runtime::has_stream<Rank>) core_->rank->stream().drain();
    core_->rank = nullptr;
    core_->close();
  }

  Rank& rank() const { return *core_->rank; }

  // Random operations draw from (seed, step, site, element); a site is the how-manieth of them since the step began, so
  // equal program order draws equal numbers, eagerly and traced. The policy by_offset draws as PyTorch's DTensor does, by
  // placement: runtime/program/random_stream.hpp. Collective: ranks that give different seeds are told.
  void start_step(std::uint64_t seed, std::int64_t step, random_policy random = random_policy::by_element) {
    rank().agree(seed, "the seed");
    core_->env.random = random;
    core_->site_offset.clear();
    core_->next_offset = 0;
    core_->env.seed = seed;
    core_->env.step = step;
    core_->site = 0;
  }
  // To draw a mask again (dropout is its own adjoint): rewind to the site it was drawn at.
  std::int32_t site() const { return core_->site; }
  void rewind(std::int32_t site) { core_->site = site; }

  // Blocks and bytes that this rank's tensors have ever taken from the system.
  std::int64_t allocations() const { return core_->allocations(); }
  std::int64_t bytes() const { return core_->bytes(); }

  runtime::eager_core<Rank>& core() const { return *core_; }

 private:
  runtime::eager_core<Rank>* core_;
};

}  // namespace shardwise::inline v0_1
