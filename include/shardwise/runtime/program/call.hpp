// SPDX-License-Identifier: Apache-2.0
// call: one operation lowered for one rank: pointers, local extents and strides, and where the local block lies globally.
#pragma once

#include <cstdint>
#include <stdexcept>

#include <shardwise/graph/graph.hpp>
#include <shardwise/propagation/attributes.hpp>
#include <shardwise/propagation/transition.hpp>
#include <shardwise/propagation/view.hpp>
#include <shardwise/vocabulary/memory_format.hpp>

namespace shardwise::inline v0_1::runtime {

// The local block of a tensor. `origin` and `global` place it in the logical tensor; strides are in elements.
struct layout {
  std::int32_t rank = 0;
  std::int64_t ext[max_rank]{};
  std::int64_t str[max_rank]{};
  std::int64_t origin[max_rank]{};
  std::int64_t global[max_rank]{};

  constexpr std::int64_t numel() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= ext[i];
    return n;
  }
  // Elements from the first to the last one in storage.
  constexpr std::size_t span() const {
    std::int64_t n = numel() > 0 ? 1 : 0;
    for (int i = 0; i < rank && n > 0; ++i) n += (ext[i] - 1) * str[i];
    return static_cast<std::size_t>(n);
  }
  // Four dims, stored as memory_format::channels_last.
  constexpr void make_channels_last() {
    std::int64_t s = 1;
    for (const int d : {1, 3, 2, 0}) {
      str[d] = s;
      s *= ext[d];
    }
  }
  constexpr bool is_dense() const {
    std::int64_t s = 1;
    bool dense = true;
    for (int i = rank - 1; i >= 0; --i) {
      dense = dense && (str[i] == s || ext[i] == 1);
      s *= ext[i];
    }
    return dense || s == 0;
  }
  constexpr void make_dense() {
    std::int64_t s = 1;
    for (int i = rank - 1; i >= 0; --i) {
      str[i] = s;
      s *= ext[i];
    }
  }
  // The same with the dims in falling order of `like`; equal ones in theirs.
  constexpr void make_dense_as(const std::int64_t* like) {
    bool done[max_rank]{};
    std::int64_t s = 1;
    for (int k = 0; k < rank; ++k) {
      int next = -1;
      for (int d = 0; d < rank; ++d)
        if (!done[d] && (next < 0 || like[d] <= like[next])) next = d;
      done[next] = true;
      str[next] = s;
      s *= ext[next];
    }
  }
};

// Row-major index, in the whole tensor, of the element at local position `at` of a block.
constexpr std::int64_t global_index(const layout& l, const std::int64_t* at) {
  std::int64_t g = 0;
  for (int d = 0; d < l.rank; ++d) g = g * l.global[d] + l.origin[d] + at[d];
  return g;
}

// How random numbers depend on where a tensor lies: see runtime/program/random_stream.hpp.
enum class random_policy : std::uint64_t { by_element, by_offset };

// What changes from step to step, and the optimizer's constants. A number that is not set is no number (NaN): a run whose
// optimizer reads it throws, and one that has no use for it does not look; see check_env.
inline constexpr double unset = __builtin_nan("0x5e7");
struct step_env {
  std::uint64_t seed = 0;
  std::int64_t step = 0;  // 1 for the first
  double lr = unset;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double momentum = unset;  // of sgd<true>
  double weight_decay = 0;
  double max_norm = unset;    // of clip_norm
  double clip_value = unset;  // of clip_value: gradients' elements are at most that far from 0
  double dampening = unset;   // of sgd<true, sgd_form::dampened>
  // Where a run's random sites, and its draws by offset, begin in its step: executor::accumulate counts them, so that the batches of one
  // update draw numbers of their own.
  std::uint64_t first_site = 0, first_draw = 0;
  random_policy random = random_policy::by_element;
};
static_assert(sizeof(step_env) == 14 * sizeof(std::uint64_t),
              "compared by its bytes, NaN and all: nothing may lie between its members");

// What to do about an index that an operation met outside its range.
constexpr const char* index_remedy(op_code op) {
  return op == op_code::nll
             ? "class ids count from 0 and stay below the extent of the logits' last dim: map the labels to that range, or give "
               "the logits more classes"
         : op == op_code::custom
             ? "a position is how many tokens came before, at least 0 and with the new ones at most what a cache has: begin anew at "
               "position 0, or give the cache more positions"
             : "map the data to that range or enlarge the table";
}

// Where the results of an operation with several go; without a pointer: nobody wants it, and its layout is not set.
struct result_blocks {
  layout l[max_results];
  void* p[max_results]{};
  dtype type[max_results]{};
};

inline constexpr int result = max_inputs;  // index of the result among a call's operands

struct call {
  op_attr a{};
  double f = 0;
  std::int32_t inputs = 0;
  std::int32_t node = -1;
  std::int32_t all_inputs = 0;  // with those of an expression behind the kernel's own
  // redistribute
  std::int32_t axis = -1, ranks = 1, coordinate = 0;
  transition kind = transition::none;
  placement from{}, to{};
  interval cut{};             // between shards of one dim: the part of it that the axis cuts
  std::uint32_t written = 0;  // operands that the kernel writes into, rooms too, bit by bit
  dtype type[max_inputs + 1]{};
  layout l[max_inputs + 1];
  void* p[max_inputs + 1]{};
  void* workspace = nullptr;
  std::int64_t draw = 0;  // where a random operation's block begins in the stream of random_policy::by_offset
  opaque_function function = nullptr;
  const result_blocks* results = nullptr;  // of an operation with several, whose p[result] is not set
  // Of a batch of collectives (graph/batches.hpp): the first member's count of them, 0 for the others, which it runs; and where
  // all of them lie, the first one in front.
  std::int32_t members = 1;
  const call* batch = nullptr;
  std::int32_t share = 0, shares = 1;  // of a kernel that cuts its own work: which of how many this one computes
};

// Makes one collective of each batch among a program's calls, which stay where they are from now on.
template <class Calls>
void link_batches(Calls& calls) {
  const auto number = [&](std::size_t i) {
    return communicates(calls[i].kind) ? attributes_of<redistribute_attributes>(calls[i].a).batch : 0;
  };
  for (std::size_t i = 0; i < calls.size();) {
    std::size_t end = i + 1;
    if (const std::int64_t own = number(i); own != 0)
      while (end < calls.size() && number(end) == own) ++end;
    if (end - i > 1) {
      calls[i].members = static_cast<std::int32_t>(end - i);
      calls[i].batch = &calls[i];
      for (std::size_t k = i + 1; k < end; ++k) calls[k].members = 0;
    }
    i = end;
  }
}

// The block of `s` at mesh coordinate `c`, densely stored, dims in the order of the tensor's strides: row-major, but where a tensor's
// memory format is another one, such as channels last.
constexpr layout local_layout(const spec& s, const int* c, const run_sizes& n = {}) {
  layout l;
  l.rank = s.rank;
  for (int d = 0; d < s.rank; ++d) {
    const interval v = local_interval(s, d, c, n);
    l.ext[d] = v.size;
    l.origin[d] = v.begin;
    l.global[d] = extent_at(s, d, n);
  }
  if (is_contiguous(s)) l.make_dense();
  else if (s.rank == 4 && is_channels_last(s)) l.make_channels_last();
  else l.make_dense_as(s.stride);
  return l;
}

// A view's block, from its operand's block; `offset` grows by the elements skipped.
constexpr layout view_layout(op_code op, const op_attr& a, const layout& x, const spec& out, const int* c,
                             const run_sizes& n, std::int64_t& offset) {
  layout l = x;
  if (op == op_code::permute) {
    const auto of = attributes_of<permute_attributes>(a);
    for (int d = 0; d < x.rank; ++d) {
      const int from = rules::packed_dim(of.from, d);
      l.ext[d] = x.ext[from];
      l.str[d] = x.str[from];
      l.origin[d] = x.origin[from];
      l.global[d] = x.global[from];
    }
  } else if (op == op_code::reshape) {  // (a part is its buffer, as it is)
    l = local_layout(out, c, n);
    const rules::unit_dims u = rules::unit_dims_of(x.global, x.rank, l.global, l.rank);
    for (int d = 0; u.only && d < l.rank; ++d)
      if (u.from[d] >= 0) l.str[d] = x.str[u.from[d]];
    if (!u.only && l.numel() != 0 && !x.is_dense() && !rules::view_strides(x.ext, x.str, x.rank, l.ext, l.rank, l.str))
      throw std::logic_error(
          "shardwise: view: this rank's block is not stored densely where the whole tensor is; call contiguous before the view");
  } else if (op == op_code::broadcast) {
    l = local_layout(out, c, n);
    for (int d = 0; d < l.rank; ++d) {
      const int own = d - (l.rank - x.rank);
      l.str[d] = own < 0 || x.global[own] != l.global[d] ? 0 : x.str[own];
    }
  } else if (op == op_code::unpack) {
    offset += attributes_of<storage_attributes>(a).at;
    l = local_layout(out, c, n);
  } else if (op == op_code::relabel) {
    const layout as = local_layout(out, c, n);
    for (int d = 0; d < x.rank; ++d) {
      l.origin[d] = as.origin[d];
      l.global[d] = as.global[d];
    }
  } else if (op == op_code::slice) {
    const auto of = attributes_of<slice_attributes>(a);
    const int d = static_cast<int>(of.dim);
    const layout as = local_layout(out, c, n);
    offset += of.start * x.str[d];
    l.ext[d] = as.ext[d];
    l.origin[d] = as.origin[d];
    l.global[d] = as.global[d];
  }
  return l;
}

}  // namespace shardwise::inline v0_1::runtime

namespace shardwise::inline v0_1 {
using runtime::random_policy;
using runtime::step_env;
}
