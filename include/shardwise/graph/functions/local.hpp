// SPDX-License-Identifier: Apache-2.0
// to_local, from_local: a tensor's blocks as a tensor of their own, and blocks declared to be a tensor; no data moves.
#pragma once

#include <shardwise/graph/functions/functions.hpp>

namespace shardwise::inline v0_1 {

// How the gradient of to_local's result arrives on each axis, one placement per mesh axis or on<axis, placement>:
// replicate: equal on all ranks; partial<>: each rank's is a summand; shard<d>: the rank's own chunk of it counts.
template <class... Placements>
struct grad {};
// As PyTorch's DTensor takes a gradient for which no placement is named: a replicate tensor's is replicate, whatever the
// ranks did with their blocks. Wrong, without a word, where they did not all do the same: for programs ported from there.
struct dtensor_gradient {};

namespace detail {

struct local_outcome {
  finding error;
  spec out;
};

constexpr bool shards_everywhere(const spec& x) {
  for (int a = 0; a < x.axes; ++a)
    if (!x.place[a].is_shard()) return false;
  return true;
}

// The blocks of `x`, laid side by side: every axis that does not shard x multiplies one dim, which it then shards. The
// dim must be cut into equal blocks already, so that a block is what it was.
constexpr local_outcome local_spec(const spec& x) {
  local_outcome r{{}, x};
  if (shards_everywhere(x)) return r;
  int dim = -1;
  bool strided = false;  // then the new shards of the dim come after all that are there, and keep their factors
  for (int d = x.rank - 1; d >= 0; --d) {
    std::int64_t parts = 1;
    bool even = !is_dyn(x, d);
    for (int a = 0; a < x.axes; ++a)
      if (x.place[a].is_shard(d)) {
        parts *= x.axis_size[a];
        even = even && x.place[a].block == 1;
      }
    if (!even || x.extent[d] % parts != 0) continue;
    dim = d;
    strided = false;
    for (int a = 0; a < x.axes; ++a) strided = strided || (x.place[a].is_shard(d) && x.place[a].is_strided());
  }
  if (dim < 0) return {{problem::to_local_stack, 0}, r.out};
  for (int a = 0; a < x.axes; ++a)
    if (!x.place[a].is_shard()) {
      r.out.extent[dim] *= x.axis_size[a];
      r.out.place[a] = strided ? strided_shard_value(dim, last_factor(x, a, dim)) : shard_value(dim);
    }
  if (finding f = check_placements(r.out)) return {f, x};
  make_contiguous(r.out);
  if (!same_blocks(x, r.out)) r.error = {problem::to_local_stack, 0, dim};
  return r;
}

// The cotangents' placements that the operand of a relabelling takes, packed; by default its dual's.
struct label_outcome {
  finding error;
  relabel_attributes labels;
};

constexpr label_outcome default_labels(const spec& x) {
  label_outcome r{{}, {}};
  for (int a = 0; a < x.axes; ++a) r.labels.cotangent[a] = pack(dual(x.place[a]));
  return r;
}
// A replicate tensor's blocks may be used alike by all ranks or by each in its own way, and its type does not tell: the
// axes of that kind that no placement is named for, of `named` ones, are an error once a gradient is asked for.
constexpr label_outcome asking(label_outcome r, const spec& x, unsigned named) {
  unsigned open = 0;
  for (int a = 0; a < x.axes; ++a)
    if (x.place[a].is_replicate()) open |= 1U << a;
  r.labels.unlabelled = open & ~named;
  return r;
}

// Whether axis `a`, which does not shard x, may do so.
constexpr bool splits_last(spec x, int a, placement g) {
  x.place[a] = g;
  return !check_placements(x) && split_after(x, a, g.dim) < 0;
}

template <class Mesh, class... P>
constexpr label_outcome gradient_labels(const spec& x, grad<P...>*) {
  label_outcome r = default_labels(x);
  spec_outcome given{{}, x};
  unsigned seen = 0;
  for (int a = 0; a < x.axes; ++a) given.out.place[a] = dual(x.place[a]);
  if constexpr ((is_on<P>::value && ...)) {
    (place_on<Mesh, P>(given, seen), ...);
  } else {
    seen = ~0U;
    if (sizeof...(P) != Mesh::axes) given.error = {problem::placement_count, 0, -1, -1, sizeof...(P), Mesh::axes};
    int a = 0;
    (place_at<Mesh, P>(given, a++), ...);
  }
  r.error = given.error;
  for (int a = 0; a < x.axes; ++a) {
    placement& g = given.out.place[a];
    if (g.is_shard() && g.dim < 0) g = split_along(g.dim + x.rank, g);
    const bool fits = x.place[a].is_shard() ? g == x.place[a]
                      : g.is_shard()        ? splits_last(x, a, g)
                                            : !g.is_partial() || g.op == reduction::sum;
    if (!fits && !r.error) r.error = {problem::to_local_gradient, 0, -1, a};
    r.labels.cotangent[a] = pack(g);
  }
  return asking(r, x, seen);
}

constexpr bool is_local(const spec& s) {
  for (int a = 0; a < s.axes; ++a)
    if (!s.place[a].is_shard() && s.axis_size[a] > 1) return false;
  return true;
}

template <class Shape, class Mesh, class... P>
struct claimed_spec {  // with the extents given
  static constexpr spec_outcome of(const spec& local) {
    spec_outcome r{{}, scalar_like(local)};
    set_extents<Shape>(r.out);
    return place(r);
  }
  static constexpr spec_outcome place(spec_outcome r) {
    place_all<Mesh, P...>(r);
    for (auto& p : r.out.place)
      if (p.is_shard() && p.dim < 0) p = split_along(p.dim + r.out.rank, p);
    if (!r.error) r.error = check_placements(r.out);
    return r;
  }
};
template <class Mesh, class... P>
struct claimed_spec<void, Mesh, P...> {  // equal blocks, put together as the placements say
  static constexpr spec_outcome of(const spec& local) {
    spec_outcome r{{}, scalar_like(local)};
    constexpr int origin[max_axes]{};
    r.out.rank = local.rank;
    for (int d = 0; d < local.rank; ++d) r.out.extent[d] = local_interval(local, d, origin).size;
    r = claimed_spec<shape<>, Mesh, P...>::place(r);
    if (!r.error)
      for (int a = 0; a < r.out.axes; ++a)
        if (r.out.place[a].is_shard()) r.out.extent[r.out.place[a].dim] *= r.out.axis_size[a];
    make_contiguous(r.out);
    return r;
  }
};

template <class Mesh, spec Local, class Shape, class... P>
struct checked_claim {
  static constexpr spec_outcome built = claimed_spec<Shape, Mesh, P...>::of(Local);
  static constexpr problem what = !is_local(Local)                 ? problem::from_local_operand
                                  : built.error                    ? built.error.what
                                  : !same_blocks(Local, built.out) ? problem::from_local_blocks
                                                                   : problem::none;
  static constexpr spec out = built.out;
};

template <class Mesh, spec X, class Grad>
struct checked_local {
  static constexpr local_outcome built = local_spec(X);
  static constexpr label_outcome labels = [] {
    if constexpr (std::is_void_v<Grad>) return asking(default_labels(X), X, 0);
    else if constexpr (std::is_same_v<Grad, dtensor_gradient>) return default_labels(X);
    else return gradient_labels<Mesh>(X, static_cast<Grad*>(nullptr));
  }();
  static constexpr problem what = labels.error ? labels.error.what : built.error.what;
  static constexpr spec out = built.out;
  static constexpr op_attr attr = pack_attributes(labels.labels);
};

// The operand's own blocks under another spec; its cotangent is labelled as Attr says and redistributed to its dual.
template <op_attr Attr, spec Out, class X>
constexpr auto relabelled(const X& x) {
  return X::template apply<op_code::relabel, Attr, Out>(0, x);
}

// Blocks that stand side by side already keep their strides, and are the tensor's own. What stood on several ranks does
// not: a rank that writes its block would leave the others with other values.
template <class X>
constexpr auto block_storage(const X& x) {
  if constexpr (shards_everywhere(X::sp)) return x;
  else return own_dense(x);
}

template <class X, class Shape, class... P>
constexpr auto claim(const X& x) {
  if constexpr (is_implicit<X>) {
    return as_implicit(claim<typename X::strict_type, Shape, P...>(x.strict));
  } else if constexpr (!resolved<X>) {
    return x;
  } else {
    const auto dense = contiguous(x);
    using checked = checked_claim<typename X::mesh_type, std::remove_const_t<decltype(dense)>::sp, Shape, P...>;
    if constexpr (checked::what != problem::none) {
      return refused<checked::what, op_code::relabel, operand_t<std::remove_const_t<decltype(dense)>::sp>, Shape,
                     typename X::mesh_type, P...>(x);
    } else {
      constexpr op_attr labels = pack_attributes(default_labels(std::remove_const_t<decltype(dense)>::sp).labels);
      if constexpr (shards_everywhere(X::sp) && shards_everywhere(checked::out))
        return relabelled<labels, checked::out>(dense);
      else return relabelled<labels, checked::out>(own_dense(x));
    }
  }
}

template <class First, class... P>
struct claim_arguments {
  template <class X>
  static constexpr auto apply(const X& x) {
    return claim<X, void, First, P...>(x);
  }
};
template <std::int64_t... E, class... P>
struct claim_arguments<shape<E...>, P...> {
  template <class X>
  static constexpr auto apply(const X& x) {
    return claim<X, shape<E...>, P...>(x);
  }
};

}  // namespace detail

// The ranks' blocks of x as a tensor that every mesh axis shards, so that each rank may compute on its own: the blocks
// of an axis that does not shard x stand side by side. Law: every rank's block is that of x. The gradient flows back as
// Grad = grad<placements...> says, by default as the dual of x's placements; on an axis where x is replicate it must be
// said, if a gradient is asked for: grad<partial<>> where each rank uses its block in its own way, grad<replicate> where all
// do the same. (Of a reduced tensor each rank's gradient is a summand.) Of a tensor that every axis shards it is a
// view, otherwise a tensor of its own.
template <class Grad = void, tensor X>
constexpr auto to_local(const X& x) {
  if constexpr (detail::is_implicit<X>) {
    return detail::as_implicit(to_local<Grad>(x.strict));
  } else if constexpr (!detail::resolved<X>) {
    return x;
  } else {
    const auto dense = detail::block_storage(x);
    using checked = detail::checked_local<typename X::mesh_type, std::remove_const_t<decltype(dense)>::sp, Grad>;
    if constexpr (checked::what != problem::none)
      return detail::refused<checked::what, op_code::relabel, operand_t<std::remove_const_t<decltype(dense)>::sp>,
                             typename X::mesh_type, Grad>(x);
    else return detail::relabelled<checked::attr, checked::out>(dense);
  }
}

namespace detail {

constexpr bool is_whole_everywhere(const spec& x) {
  for (int a = 0; a < x.axes; ++a)
    if (!x.place[a].is_replicate()) return false;
  return true;
}

template <int Axis, class X>
constexpr auto whole_from(const X& x) {
  if constexpr (!resolved<X>) {
    return x;
  } else if constexpr (Axis < 0) {
    return x;
  } else if constexpr (X::sp.place[Axis].is_replicate()) {
    return whole_from<Axis - 1>(x);
  } else {
    constexpr op_attr attr = attributes<redistribute_attributes>(Axis, pack(replicate_value()));
    return whole_from<Axis - 1>(apply<op_code::redistribute, attr>(0, x));
  }
}

}  // namespace detail

// The whole tensor on every rank, a tensor of its own: each axis, from the last to the first, is made replicate. Law: values
// do not change.
// The gradient flows back as that of the redistributions. With Grad = grad<placements...> the result is what to_local
// makes of it, each rank's own from there on, and its gradient arrives as Grad says.
template <class Grad = void, tensor X>
constexpr auto full_tensor(const X& x) {
  if constexpr (detail::is_implicit<X>) {
    return detail::as_implicit(full_tensor<Grad>(x.strict));
  } else if constexpr (!detail::resolved<X>) {
    return x;
  } else if constexpr (std::is_void_v<Grad>) {
    if constexpr (detail::is_whole_everywhere(X::sp)) return detail::own_dense(x);
    else return detail::whole_from<X::sp.axes - 1>(contiguous(x));
  } else {
    return to_local<Grad>(full_tensor(x));
  }
}

// The tensor whose blocks are the ranks' blocks of `local`, a tensor that every axis shards: from_local<replicate>(l),
// from_local<on<tp, shard<0>>>(l) for equal blocks, from_local<shape<10, 257>, shard<1>>(l) where they differ. That the
// blocks have the right extents is checked while compiling; that replicate ones are equal is the caller's word. A view of
// `local` if every axis shards it, otherwise a tensor of its own.
template <class First, class... Placements, tensor L>
constexpr auto from_local(const L& local) {
  return detail::claim_arguments<First, Placements...>::apply(local);
}

// Blocks with a claim that nothing has checked: any shape, any number of placements. It has no operations.
template <class Local, class Shape, class... Placements>
struct claimed {
  using local_type = Local;
  using shape_type = Shape;
  static constexpr int placements = static_cast<int>(sizeof...(Placements));

  Local local;

  // The tensor, if the claim holds; otherwise this does not compile.
  constexpr auto checked() const { return from_local<Shape, Placements...>(local); }
};

template <class Shape, class... Placements, tensor L>
constexpr auto from_local_unchecked(const L& local) {
  return claimed<L, Shape, Placements...>{local};
}

// What a mesh axis does to the tensor, for `if constexpr` on a tensor's type: placement_on<decltype(x), tp>.is_shard().
template <class X, class Axis>
inline constexpr placement placement_on = [] {
  using type = std::remove_cvref_t<X>;
  constexpr int a = type::mesh_type::template index_of<Axis>;
  constexpr problem wrong = a < 0 ? problem::axis_not_in_mesh : problem::none;
  static_assert(raise<wrong, Axis, typename type::mesh_type>::ok);
  return type::sp.place[a < 0 ? 0 : a];
}();

// And what its ranks compute on.
template <class X>
inline constexpr device_kind device_of = std::remove_cvref_t<X>::mesh_type::device;

}  // namespace shardwise::inline v0_1
