// SPDX-License-Identifier: Apache-2.0
// Scratch and blocks that the collectives of a device need beyond a call's own operands; constants, without CUDA.
#pragma once

#include <shardwise/graph/graph.hpp>
#include <shardwise/runtime/program/call.hpp>

namespace shardwise::inline v0_1 {

namespace runtime {

// A dense block seen from one dim: `outer` rows of (extent of the dim) * `inner` elements.
struct sides {
  std::int64_t outer = 1, inner = 1;
};
constexpr sides around(const std::int64_t* ext, int rank, int dim) {
  sides s;
  for (int i = 0; i < dim; ++i) s.outer *= ext[i];
  for (int i = dim + 1; i < rank; ++i) s.inner *= ext[i];
  return s;
}

// Where the second half of a scratch begins: kernels move words of 16 bytes.
constexpr std::int64_t scratch_align(std::int64_t bytes) { return (bytes + 15) / 16 * 16; }

// Reductions of two-byte elements to their largest or smallest travel as keys of floats: the operand's, and, where it is another
// block, the result's.
constexpr std::int64_t extreme_scratch(std::int64_t taken, std::int64_t made) {
  return scratch_align(taken * 4) + scratch_align(made * 4);
}

// What the ranks along `axis` hold together of `in`: the block that the axis divides. From one rank's own operand and
// result it cannot be told when another axis divides the same dim, so whoever lowers a redistribution between two
// splits of one dim puts it into the call: k.l[1] = group_block(in, axis, c, n).
constexpr layout group_block(spec in, int axis, const int* c, const run_sizes& n = {}) {
  in.place[axis] = replicate_value();
  return local_layout(in, c, n);
}

}  // namespace runtime

// Scratch in bytes of a redistribution on a device, for the ranks that need most (at coordinate 0, but for halos); `ex` are the
// extents of the operand's largest block. Law: cuda::communicate touches the first so many bytes of call::workspace, and there is a rank
// that touches the last of them. Blocks that lie in one piece are sent and received in place; only those that a peer's
// part cuts into rows are put together in scratch, so that dim 0 costs none, save for norms and extremes.
constexpr std::int64_t device_collective_workspace_bytes(const node& n, const spec& x, const spec& out,
                                                         const std::int64_t* ex) {
  if (n.op != op_code::redistribute) return 0;
  const int axis = static_cast<int>(attributes_of<redistribute_attributes>(n.a).axis);
  const placement from = x.place[axis], to = out.place[axis];
  constexpr int origin[max_axes]{};
  std::int64_t eo[max_rank]{};
  std::int64_t taken = static_cast<std::int64_t>(size_of(x.type)), made = taken;
  for (int d = 0; d < x.rank; ++d) {
    eo[d] = local_interval(out, d, origin).size;
    taken *= ex[d];
    made *= eo[d];
  }
  const bool keys = is_low_precision(x.type) && (from.op == reduction::max || from.op == reduction::min);
  switch (transition_of(from, to, x.axis_size[axis])) {
    case transition::all_gather: return runtime::around(eo, x.rank, from.dim).outer > 1 ? made : 0;
    case transition::reduce_scatter:
      if (keys)
        return runtime::extreme_scratch(taken / 2, made / 2) + (runtime::around(ex, x.rank, to.dim).outer > 1 ? taken : 0);
      return runtime::around(ex, x.rank, to.dim).outer > 1 || from.is_norm() || from.op == reduction::max ||
                     from.op == reduction::min
                 ? taken  // or its powers, or keys
                 : 0;
    case transition::all_to_all: {
      const std::int64_t packed = runtime::around(ex, x.rank, to.dim).outer > 1 ? taken : 0;
      const std::int64_t landed = runtime::around(eo, x.rank, from.dim).outer > 1 ? made : 0;
      return landed > 0 ? runtime::scratch_align(packed) + landed : packed;
    }
    case transition::exchange_halo: {
      const int d = to.dim, ranks = x.axis_size[axis];
      const auto [outer, inner] = runtime::around(ex, x.rank, d);
      if (outer <= 1) return 0;
      const std::int64_t row = outer * inner * static_cast<std::int64_t>(size_of(x.type));
      std::int64_t most = 0;
      for (int r = 0; r < ranks; ++r) {
        std::int64_t sent = 0, come = 0;
        for (int k = 0; k < ranks; ++k) {
          if (k == r) continue;
          sent += halo_part(to, x.extent[d], ranks, r, k).size * row;
          come += halo_part(to, x.extent[d], ranks, k, r).size * row;
        }
        if (const std::int64_t n = come > 0 ? runtime::scratch_align(sent) + come : sent; n > most) most = n;
      }
      return most;
    }
    case transition::all_reduce: return keys ? runtime::extreme_scratch(taken / 2, 0) : 0;  // in place
    case transition::none:
    case transition::take_chunk:
    case transition::to_partial:
    case transition::place_chunk: break;
  }
  return 0;
}

}  // namespace shardwise::inline v0_1
