// SPDX-License-Identifier: Apache-2.0
// eager: one rank's run of operations that compute at once; tensors without their types, and how one is applied to
// them.
#pragma once

#include <span>
#include <stdexcept>
#include <string>

#include <shardwise/graph/graph.hpp>
#include <shardwise/runtime/lowering.hpp>
#include <shardwise/runtime/pool.hpp>

namespace shardwise {

// agree: before each collective all ranks compare what they are about to run; costs two meetings of all ranks.
enum class eager_checks { none, agree };

namespace runtime {

// What the tensors of one rank share. Without a rank once its `eager` has ended.
template <class Rank>
struct eager_core : block_pool {
  Rank* rank = nullptr;
  step_env env{};
  std::int32_t site = 0;
  eager_checks checks = eager_checks::none;
};

// An application of an operation to specs: all that can be settled while compiling. Tensor types hold no other code, so
// that an application costs one constant and one call.
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
  std::int32_t site = -1;  // of a dropout, -1: the next one
};

constexpr std::uint64_t redistribution_signature(std::uint64_t from, std::uint64_t to) { return from * 1099511628211ULL ^ to; }

// Scratch that an operation's kernel needs where blocks are largest: peers write into scratch of equal size.
constexpr std::int64_t eager_workspace(const node& n, const spec& x, const spec& y, const spec& out) {
  if (n.op != op_code::einsum && n.op != op_code::redistribute) return 0;
  constexpr int origin[max_axes]{};
  std::int64_t ex[max_rank]{}, ey[max_rank]{};
  for (int d = 0; d < x.rank; ++d) ex[d] = local_interval(x, d, origin).size;
  for (int d = 0; d < y.rank; ++d) ey[d] = local_interval(y, d, origin).size;
  return host_backend::workspace_of(n, x, y, out, ex, ey);
}

// A tensor's block, storage shared, without its type.
template <class Rank>
struct eager_value {
  eager_core<Rank>* core = nullptr;
  block storage{};
  std::byte* data = nullptr;
  runtime::layout layout{};

  eager_value() = default;
  // A new block for the rank's part of `s`.
  eager_value(eager_core<Rank>& on, const spec& s) : core(&on), layout(local_layout(s, on.rank->coordinate().data())) {
    storage = on.take(layout.numel() * static_cast<std::int64_t>(size_of(s.type)));
    data = static_cast<std::byte*>(storage.data());
  }

  eager_core<Rank>& live() const {
    if (!storage)
      throw std::logic_error(
          "shardwise: a tensor without a value is used; give it one with from_local, distribute, full or an "
          "operation's "
          "result, and a model's parameters with initialise or load_parameters");
    if (!core->rank)
      throw std::logic_error(
          "shardwise: a tensor is used after its eager run has ended; keep the eager object alive while its tensors "
          "work");
    return *core;
  }
};

template <class Rank>
eager_value<Rank> apply_eagerly(const eager_operation<Rank>& x, double f,
                                std::span<const eager_value<Rank>* const> in) {
  eager_core<Rank>& core = in[0]->live();
  const int* const coordinate = core.rank->coordinate().data();
  if (x.view) {
    eager_value<Rank> out(*in[0]);
    std::int64_t skipped = 0;
    out.layout = view_layout(x.op, x.a, in[0]->layout, *x.out, coordinate, 0, skipped);
    out.data += skipped * static_cast<std::int64_t>(size_of(x.out->type));
    return out;
  }
  eager_value<Rank> out(core, *x.out);
  call c;
  c.a = x.a;
  c.f = f;
  c.inputs = c.all_inputs = static_cast<std::int32_t>(in.size());
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (&in[k]->live() != &core)
      throw std::logic_error(
          "shardwise: the operands belong to different eager runs; make all tensors of a rank from one eager object");
    c.l[k] = in[k]->layout;
    c.p[k] = in[k]->data;
  }
  c.l[result] = out.layout;
  c.p[result] = out.data;
  if (x.op == op_code::redistribute) lower_redistribute(c, static_cast<int>(x.a.v[0]), *x.in, *x.out, coordinate);
  if (x.op == op_code::dropout) c.a.v[0] = x.site >= 0 ? x.site : core.site++;
  c.function = x.function;
  block scratch;
  if (x.workspace > 0) {
    scratch = core.take(x.workspace);
    c.workspace = scratch.data();
  }
  try {
    if (core.checks == eager_checks::agree && communicates(c.kind))
      core.rank->agree(x.signature, "the collective to run next");
    x.kernel(c, core.env, *core.rank);
  } catch (const rank_failed&) {
    throw;
  } catch (const std::exception& e) {
    throw std::runtime_error(std::string(e.what()) + " (in " + name_of(x.op) + ", eager, rank " +
                             std::to_string(core.rank->index()) + ")");
  }
  return out;
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
    core_->rank = nullptr;
    core_->close();
  }

  Rank& rank() const { return *core_->rank; }

  // Dropout draws from (seed, step, site, element); a site is the how-manieth dropout since the step began, so equal
  // program order draws equal masks, eagerly and traced.
  void start_step(std::uint64_t seed, std::int64_t step) {
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

}  // namespace shardwise
