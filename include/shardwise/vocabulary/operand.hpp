// SPDX-License-Identifier: Apache-2.0
// operand: specs out of the types that users write, and back, for messages.
#pragma once

#include <type_traits>
#include <utility>

#include <shardwise/support/diagnose.hpp>
#include <shardwise/vocabulary/spec.hpp>

namespace shardwise::inline v0_1 {

// --- types to specs -------------------------------------------------------------------------------------------------

namespace detail {

template <class Mesh>
constexpr spec mesh_spec(dtype t) {
  std::int32_t sizes[max_axes] = {1, 1, 1, 1};
  for (int a = 0; a < Mesh::axes; ++a) sizes[a] = Mesh::sizes[static_cast<unsigned>(a)];
  return empty_spec(t, Mesh::axes, sizes, Mesh::device);
}

template <class Shape>
constexpr void set_extents(spec& s) {
  s.rank = static_cast<std::uint8_t>(Shape::rank);
  for (int i = 0; i < Shape::rank && i < max_rank; ++i) {
    const std::int64_t e = Shape::extent[i];
    s.extent[i] = bound_of(e);
    if (e >= 0) continue;
    set_dyn(s, i, sizes_in(e));
    for (int k = 0; k < max_dyn_sizes; ++k)
      if (sizes_in(e) == 1U << k) s.dyn_bound[k] = bound_of(e);
  }
  make_contiguous(s);
}

template <class P>
struct is_on : std::false_type {};
template <class A, class P>
struct is_on<on<A, P>> : std::true_type {};

struct spec_outcome {
  finding error;
  spec out;
};

template <class Mesh, class P>
constexpr void place_on(spec_outcome& r, unsigned& seen) {
  constexpr int a = Mesh::template index_of<typename P::axis>;
  if constexpr (!P::in_order) {
    return;
  } else if constexpr (a < 0) {
    if (!r.error) r.error = {problem::axis_not_in_mesh};
  } else {
    if ((seen >> a) & 1U) r.error = r.error ? r.error : finding{problem::placement_axis_twice, 0, -1, a};
    seen |= 1U << a;
    using pl = placement_of<typename P::placement>;
    r.out.place[a] = pl::value;
    if (pl::even && pl::value.dim >= 0 && pl::value.dim < r.out.rank &&
        r.out.extent[pl::value.dim] % r.out.axis_size[a] != 0 && !r.error)
      r.error = {problem::uneven_shard, 0, pl::value.dim, a, r.out.extent[pl::value.dim], r.out.axis_size[a]};
  }
}

template <class Mesh, class P>
constexpr void place_at(spec_outcome& r, int a) {
  using pl = placement_of<P>;
  if (a >= Mesh::axes) return;
  r.out.place[a] = pl::value;
  if (pl::even && pl::value.dim >= 0 && pl::value.dim < r.out.rank &&
      r.out.extent[pl::value.dim] % r.out.axis_size[a] != 0 && !r.error)
    r.error = {problem::uneven_shard, 0, pl::value.dim, a, r.out.extent[pl::value.dim], r.out.axis_size[a]};
}

// Placements by name (on<axis, placement>, others as they are) or by position (one for each axis).
template <class Mesh, class... P>
constexpr void place_all(spec_outcome& r) {
  if constexpr ((is_on<P>::value && ...)) {
    [[maybe_unused]] unsigned seen = 0;
    (place_on<Mesh, P>(r, seen), ...);
  } else {
    if (sizeof...(P) != Mesh::axes)
      r.error = {problem::placement_count, 0, -1, -1, static_cast<long long>(sizeof...(P)), Mesh::axes};
    int a = 0;
    (place_at<Mesh, P>(r, a++), ...);
  }
}

// A scalar: what stands for a spec that cannot be made.
template <class Mesh>
constexpr spec nothing_spec() {
  if constexpr (is_mesh<Mesh>) {
    return mesh_spec<Mesh>(dtype::f32);
  } else {
    constexpr std::int32_t one[] = {1};
    return empty_spec(dtype::f32, 1, one, device_kind::host);
  }
}

template <class T, class Shape, class Mesh>
constexpr problem spec_arguments() {
  if (!is_element<T>) return problem::element_type;
  if (!is_shape<Shape>) return problem::tensor_shape;
  return is_mesh<Mesh> ? problem::none : problem::tensor_mesh;
}

// A dim that is declared as a product of several run-time sizes, or of none, or -1: the product's bound does not tell theirs.
template <class Shape>
constexpr int product_dim() {
  for (int d = 0; d < Shape::rank; ++d) {
    const unsigned sizes = sizes_in(Shape::extent[d]);
    if (Shape::extent[d] < 0 && (sizes == 0 || (sizes & (sizes - 1)) != 0)) return d;
  }
  return -1;
}

template <class T, class Shape, class Mesh, class... P>
constexpr spec_outcome place_spec() {
  spec_outcome r{{}, mesh_spec<Mesh>(dtype_v<T>)};
  if (Shape::rank > max_rank) {
    r.error = {problem::rank_too_large, 0, -1, -1, Shape::rank, max_rank};
    return r;
  }
  if (too_large(&Shape::extent[0], Shape::rank)) {
    r.error = {problem::tensor_too_large, 0};
    return r;
  }
  if (const int d = product_dim<Shape>(); d >= 0) {
    r.error = {problem::dyn_product_declared, 0, d};
    return r;
  }
  set_extents<Shape>(r.out);
  place_all<Mesh, P...>(r);
  if (!r.error) r.error = check_placements(r.out);
  if (r.error)
    for (auto& p : r.out.place) p = placement{};
  normalise(r.out);
  return r;
}

template <class T, class Shape, class Mesh, class... P>
constexpr spec_outcome build_spec() {
  if constexpr (spec_arguments<T, Shape, Mesh>() != problem::none) {
    return {{spec_arguments<T, Shape, Mesh>()}, nothing_spec<Mesh>()};
  } else {
    return place_spec<T, Shape, Mesh, P...>();
  }
}

}  // namespace detail

// spec_of<float, shape<4, 8>, mesh<dp, tp>, on<dp, shard<0>>>::value; a wrong placement does not compile.
template <class T, class Shape, class Mesh, class... Placements>
struct spec_of {
  static constexpr detail::spec_outcome built = detail::build_spec<T, Shape, Mesh, Placements...>();
  static_assert(raise_finding<built.error, Mesh, T, Shape, Mesh, Placements...>::ok);
  static constexpr spec value = built.out;
};

// --- specs back to types, for messages ------------------------------------------------------------------------------

// What an error prints of an operand: its elements, its global shape and one placement for each mesh axis, in mesh order.
template <class Element, class Shape, class... Placements>
struct operand;

namespace detail {
template <spec S, class Rank>
struct shape_type;
template <spec S, std::size_t... I>
struct shape_type<S, std::index_sequence<I...>> {
  static constexpr spec s = S;
  using type = shape<spelled(s, static_cast<int>(I))...>;
};
template <spec S, class Axes>
struct operand_type;
template <spec S, std::size_t... A>
struct operand_type<S, std::index_sequence<A...>> {
  static constexpr spec s = S;
  using type = operand<element_t<s.type>, typename shape_type<S, std::make_index_sequence<s.rank>>::type,
                       typename placement_type<s.place[A]>::type...>;
};
}  // namespace detail

// A class between alias and machinery: g++ 12 crashes on the alias alone in dependent code.
template <spec S>
struct operand_of {
  static constexpr int axes = S.axes;
  using type = typename detail::operand_type<S, std::make_index_sequence<axes>>::type;
};
template <spec S>
using operand_t = typename operand_of<S>::type;

namespace detail {
// "dp: shard<0>, tp: replicate"
template <class Sink, class... Axes, class... Placements>
constexpr void put_placements(Sink& out, type_list<Axes...>, type_list<Placements...>) {
  bool first = true;
  ((text::put(out, first ? "" : ", "), written<Axes>::put(out), text::put(out, ": "), written<Placements>::put(out),
    first = false),
   ...);
}
// "float[8, 16] (dp: shard<0>, tp: replicate)"; without a mesh the placements alone.
template <class Operand, class Mesh = void>
struct written_operand;
template <class Element, class Shape, class... Placements, class Mesh>
struct written_operand<operand<Element, Shape, Placements...>, Mesh> {
  template <class Sink>
  static constexpr void put(Sink& out) {
    written<Element>::put(out);
    out.push_back('[');
    put_extents(out, Shape{});
    text::put(out, "] (");
    if constexpr (axes_count<Mesh> == sizeof...(Placements))
      put_placements(out, axes_list<Mesh>{}, type_list<Placements...>{});
    else put_list(out, type_list<Placements...>{});
    out.push_back(')');
  }
};
}  // namespace detail

template <class Element, class Shape, class... Placements>
struct written<operand<Element, Shape, Placements...>> : detail::written_operand<operand<Element, Shape, Placements...>> {};
template <class Element, class Shape, class... Placements>
struct fact<operand<Element, Shape, Placements...>> : detail::fact_named<"operand"> {
  template <class Said, class Sink>
  static constexpr void put(Sink& out) {
    detail::written_operand<operand<Element, Shape, Placements...>, typename detail::mesh_said<Said>::type>::put(out);
  }
};

}  // namespace shardwise::inline v0_1
