// SPDX-License-Identifier: Apache-2.0
// state_shards: what the updates of parameters need whose optimizer's states are split while they are whole themselves: moves to a
// rank's rows and back.
#pragma once

#include <shardwise/graph/verify/located.hpp>
#include <shardwise/operations/infer.hpp>

namespace shardwise::inline v0_1::detail {

// The mesh axes, as bits, over which the states of a parameter are split.
constexpr unsigned split_states(const node& parameter) {
  return static_cast<unsigned>(attributes_of<parameter_attributes>(parameter.a).split_states);
}

// Rows on `axis`, behind all axes that split them otherwise.
constexpr placement rows_on(const spec& s, int axis) {
  placement p = strided_shard_value(0, last_factor(s, axis, 0));
  if (s.axis_size[axis] == 1) p.factor = 1;
  return p;
}

// The last redistribution of each spec: parameters repeat, so few are worked out.
template <int Specs>
struct state_shards {
  struct move {
    int axis = -1, to = -1;
    std::int64_t placed = 0;
  };
  move from[Specs > 0 ? Specs : 1];

  constexpr void clear() {
    for (move& m : from) m = move{};
  }
  // The node that places `id` by `p` on `axis`; why that cannot be is the builder's error, of parameter node `blame`.
  constexpr int moved(builder& b, int id, int axis, placement p, int scope, int blame) {
    const int given = b.nodes[id].spec;
    const op_attr a = attributes<redistribute_attributes>(axis, pack(p));
    move& m = from[given];
    if (m.axis != axis || m.placed != pack(p)) {
      const outcome o = rules::redistribute_spec(a, b.specs[given]);
      if (o.error && !b.error) {
        b.error = o.error;
        place_error(b.error, b, blame);
      }
      m = {axis, b.intern(o.out), pack(p)};
    }
    return m.to == given ? id : b.emit(op_code::redistribute, a, 0, m.to, scope, id);
  }
  // A whole tensor's rows, or, of one that is still to be summed, its sum's.
  constexpr int rows_of(builder& b, int id, unsigned axes, int scope, int blame) {
    for (int a = 0; a < max_axes; ++a)
      if ((axes >> a) & 1U) id = moved(b, id, a, rows_on(b.specs[b.nodes[id].spec], a), scope, blame);
    return id;
  }
  // Updated rows of node `parameter`, gathered.
  constexpr int gathered(builder& b, int id, unsigned axes, int scope, int parameter) {
    for (int a = max_axes - 1; a >= 0; --a)
      if ((axes >> a) & 1U) id = moved(b, id, a, b.specs[b.nodes[parameter].spec].place[a], scope, parameter);
    return id;
  }
};

}  // namespace shardwise::inline v0_1::detail
