// SPDX-License-Identifier: Apache-2.0
// local_map: the record of a custom operation that runs on the ranks' blocks, placed as it says: for what one mesh and one
// placement are enough, and no table of rows is wanted.
//
//   using halves = sw::local_map<mesh, sw::out_placements<sw::on<tp, sw::shard<1>>>,
//                                sw::in_placements<sw::on<tp, sw::shard<1>>>, sw::in_placements<sw::on<tp, sw::reduced>>>;
//   inline constexpr sw::custom_operation op{.name = "op", .operands = 2, .record = halves::record, .adjoint = &op_adjoint};
//   template <>
//   struct sw::host_kernel<op> { ... };                 // a function of the blocks
//   static_assert(sw::laws::holds_local_map<sw::laws::customs<op>, halves, sw::shape<4, 6>, sw::shape<6>>);
//   ... sw::call<op>(x, w)
//
// As PyTorch's local_map, but that the claim is checked: what it says of an axis is what ranks can compute there (below), an
// operand elsewhere is refused, and the proof shows that the blocks of the result are those of the whole.
#pragma once

#include <shardwise/graph/functions/custom.hpp>

namespace shardwise::inline v0_1 {

// One placement for each mesh axis, or on<axis, placement>, others replicate. out_placements<shape<...>, ...> names the
// result's extents, which otherwise are the first operand's.
template <class... Placements>
struct in_placements {};
template <class... Placements>
struct out_placements {};

namespace detail {

struct mapped_placements {
  placement at[max_axes]{};
  finding error{};
  std::int64_t extent[max_rank]{};
  int rank = -1;  // no extents
};

template <class Mesh, class... P>
constexpr mapped_placements placements_of(in_placements<P...>*) {
  spec_outcome given{{}, mesh_spec<Mesh>(dtype::f32)};
  given.out.rank = max_rank;  // shards of any dim, until the operand says which there are
  place_all<Mesh, P...>(given);
  mapped_placements r;
  for (int a = 0; a < Mesh::axes; ++a) r.at[a] = given.out.place[a];
  r.error = given.error;
  return r;
}
template <class Mesh, class... P>
constexpr mapped_placements placements_of(out_placements<P...>*) {
  return placements_of<Mesh>(static_cast<in_placements<P...>*>(nullptr));
}
template <class Mesh, std::int64_t... E, class... P>
constexpr mapped_placements placements_of(out_placements<shape<E...>, P...>*) {
  mapped_placements r = placements_of<Mesh>(static_cast<in_placements<P...>*>(nullptr));
  r.rank = 0;
  ((r.extent[r.rank++] = E), ...);
  return r;
}

// Law, on each axis: where all operands are whole, ranks compute the same, and the result is whole. Where one is cut or partial,
// so is the result, and an operand that is whole there is reduced: ranks use it in their own way, and its gradient is the sum.
constexpr problem map_problem(const mapped_placements& out, const mapped_placements* in, int operands, int axes) {
  for (int a = 0; a < axes; ++a) {
    bool cut = false, replicate = false;
    for (int k = 0; k < operands; ++k) {
      cut = cut || !in[k].at[a].is_whole();
      replicate = replicate || in[k].at[a].is_replicate();
    }
    if (cut == out.at[a].is_whole()) return problem::local_map_result;
    if (cut && replicate) return problem::local_map_whole;
  }
  return problem::none;
}

}  // namespace detail

template <class Mesh, class Out, class... In>
struct local_map {
  using mesh_type = Mesh;
  static constexpr int operands = static_cast<int>(sizeof...(In));
  static_assert(operands >= 1 && operands <= max_inputs, "shardwise: local_map: from one to eight operands.");
  static constexpr detail::mapped_placements out = detail::placements_of<Mesh>(static_cast<Out*>(nullptr));
  static constexpr detail::mapped_placements in[operands] = {detail::placements_of<Mesh>(static_cast<In*>(nullptr))...};
  static constexpr problem what = [] {
    for (const detail::mapped_placements& m : in)
      if (m.error) return m.error.what;
    return out.error ? out.error.what : detail::map_problem(out, in, operands, Mesh::axes);
  }();
  static_assert(raise<what, Out, In..., Mesh>::ok);

  // The operands are where it says, shards of one axis cut alike, and the result is cut as they are.
  static constexpr outcome place(const op_attr&, const spec* x, int n) {
    spec s = contiguous(spec(x[0]));
    if (out.rank >= 0) {
      s = scalar_like(s);
      s.rank = static_cast<std::uint8_t>(out.rank);
      for (int d = 0; d < out.rank; ++d) s.extent[d] = out.extent[d];
      make_contiguous(s);
    }
    if (n != operands || x[0].axes != Mesh::axes) return fail(problem::local_map_operand, x[0]);
    for (int k = 0; k < n; ++k) {
      if (!is_floating(x[k].type)) return fail(problem::needs_floating_point, x[0], k);
      if (x[k].type != x[0].type) return fail(problem::types_differ, x[0], k);
    }
    for (int a = 0; a < Mesh::axes; ++a) {
      placement split = shard_value(0);
      for (int k = n - 1; k >= 0; --k) {
        placement want = in[k].at[a];
        if (want.is_shard() && want.dim < 0) want = split_along(want.dim + x[k].rank, want);
        const placement have = x[k].place[a];
        const bool fits = want.is_shard() ? have.is_shard(want.dim) : have == want;
        if (!fits) return fail(problem::local_map_operand, x[0], k, -1, 0, 0, a);
        if (want.is_shard()) split = have;
      }
      for (int k = 0; k < n; ++k)
        if (x[k].place[a].is_shard() && !split.splits_like(x[k].place[a]))
          return fail(problem::local_map_operand, x[0], k, -1, 0, 0, a);
      placement to = out.at[a];
      if (to.is_shard()) to = split_along(to.dim < 0 ? to.dim + s.rank : to.dim, split);
      s.place[a] = to;
    }
    if (const finding f = check_placements(s)) return {f, x[0]};
    normalise(s);
    return {{}, s};
  }
  static constexpr operation record = [] {
    operation o = operations::without_rule(operation_kind::computed);
    o.shape = &place;
    o.tabled = false;
    o.choice = operand_choice::none;
    return o;
  }();
};

}  // namespace shardwise::inline v0_1
