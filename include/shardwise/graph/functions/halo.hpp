// SPDX-License-Identifier: Apache-2.0
// Halos: what windows read beyond a rank's own part of a dim, exchanged before they are applied. For functions of windows.
#pragma once

#include <shardwise/graph/functions/views.hpp>
#include <shardwise/graph/tape.hpp>
#include <shardwise/propagation/halo.hpp>

namespace shardwise::inline v0_1::detail {

// Height (0) and width (1) of an image of four dims: the axis on which it gets halos, or -1, and its placement with them.
struct image_halo {
  int on_axis = -1;
  placement to{};
};
// Of windows that slide along it, `count` of them.
constexpr image_halo image_halo_of(const spec& x, int d, const sliding& by, std::int64_t count) {
  const int axis = halo_axis(x, 2 + d);
  return axis < 0 || by.is_alone() || count < 1 || !by.has_halo(count) ? image_halo{}
                                                                       : image_halo{axis, by.windows(2 + d, count)};
}
// x with the halos that Windows::of(D) says, an image_halo, for height and then for width.
template <class Windows, int D = 0, class X>
constexpr auto with_image_halo(const X& x) {
  if constexpr (!resolved<X> || D == 2) {
    return x;
  } else if constexpr (Windows::of(D).on_axis < 0) {
    return with_image_halo<Windows, D + 1>(x);
  } else if constexpr (is_implicit<X>) {
    return as_implicit(with_image_halo<Windows, D>(x.strict));
  } else if constexpr (!is_contiguous(X::sp)) {
    return with_image_halo<Windows, D>(contiguous(x));
  } else {
    constexpr image_halo w = Windows::of(D);
    return with_image_halo<Windows, D + 1>(
        apply<op_code::redistribute, attributes<redistribute_attributes>(w.on_axis, pack(w.to))>(0, x));
  }
}

// Nodes that halo_node appends at most for an image: a copy, and an exchange for each of two dims.
inline constexpr int halo_nodes = 3;
constexpr bool has_halo(const spec& s) {
  for (int a = 0; a < s.axes; ++a)
    if (s.place[a].overlaps()) return true;
  return false;
}
// Whether adjoints of windows of such an operand or result exchange any.
constexpr bool cuts_image(const spec& s) {
  for (int a = 0; a < s.axes; ++a)
    if (s.place[a].overlaps() || s.place[a].is_shard(2) || s.place[a].is_shard(3)) return true;
  return false;
}

// While adjoints are written: the node with the halos that `like` has, in the dims that it has them in. To(d): their placement.
template <class To>
constexpr int halo_node(autodiff::pullback& p, int id, const spec& like, const To& to) {
  autodiff::tape& t = p.t;
  for (int d = 0; d < 2; ++d)
    for (int a = 0; a < like.axes; ++a) {
      if (!like.place[a].overlaps(2 + d) || t.lacks(id)) continue;
      const int source = autodiff::contiguous_node(t, id, p.n.scope);
      const op_attr v = attributes<redistribute_attributes>(a, pack(to(d)));
      id =
          t.b.emit(op_code::redistribute, v, 0, t.intern(rules::redistribute_spec(v, t.spec_at(source))), p.n.scope, source);
    }
  return id;
}
// What stands before the exchanges that gave a node its halos.
constexpr int without_halo(const autodiff::pullback& p, int id) {
  while (id >= 0 && has_halo(p.t.spec_at(id))) id = p.t.b.nodes[id].in[0];
  return id;
}

}  // namespace shardwise::inline v0_1::detail
