// SPDX-License-Identifier: Apache-2.0
// Elements read and written by index along one dim, under PyTorch's names. Indices are int32 tensors; one that is negative
// or too large is an error at run time.
#pragma once

#include <shardwise/graph/functions/views.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

constexpr std::int64_t places_of(const spec& s, int dim) { return dim >= 0 && dim < s.rank ? s.extent[dim] : 0; }

// x cut to the index's extents beside Dim: PyTorch lets an index be smaller there.
template <int Dim, int D, class X, class I>
constexpr auto cut_beside(const X& x) {
  if constexpr (!resolved<X, I> || D >= X::sp.rank || I::sp.rank != X::sp.rank) {
    return x;
  } else if constexpr (D != Dim && I::sp.extent[D] < X::sp.extent[D]) {
    return cut_beside<Dim, D + 1, std::remove_const_t<decltype(slice<D, 0, I::sp.extent[D]>(x))>, I>(
        slice<D, 0, I::sp.extent[D]>(x));
  } else {
    return cut_beside<Dim, D + 1, X, I>(x);
  }
}

}  // namespace detail

// out[i][j] = x[index[i][j]][j] for Dim 0: x and index have one rank, the result the index's extents, which beside Dim
// may be smaller than x's. Dim must not be sharded in x, other dims are sharded alike in both.
template <int Dim, tensor X, tensor I>
constexpr auto gather(const X& x, const I& index) {
  constexpr int d = detail::own_dim(Dim, X::sp.rank);
  return detail::apply<op_code::gather, attributes<index_attributes>(d)>(0, detail::cut_beside<d, 0, X, I>(x), index);
}

// x with Dim replaced by the index's elements, an index of rank 1. The index may be sharded where x is reduced: the
// result then is along Dim.
template <int Dim, tensor X, tensor I>
constexpr auto index_select(const X& x, const I& index) {
  return detail::apply<op_code::index_select, attributes<index_attributes>(detail::own_dim(Dim, X::sp.rank))>(0, x, index);
}

// x with src[i][j] added at [index[i][j]][j] for Dim 0; index and src have equal extents, beside Dim those of x. Where
// both are sharded along Dim the sums are partial, and so must x be.
template <int Dim, tensor X, tensor I, tensor Src>
constexpr auto scatter_add(const X& x, const I& index, const Src& src) {
  constexpr int d = detail::own_dim(Dim, X::sp.rank);
  constexpr std::int64_t places = detail::places_of(spec(X::sp), d);
  return add(x, detail::apply<op_code::scatter_add, attributes<index_attributes>(d, places)>(0, src, index));
}
// The same for an index of rank 1: x with slice i of src added at index[i].
template <int Dim, tensor X, tensor I, tensor Src>
constexpr auto index_add(const X& x, const I& index, const Src& src) {
  constexpr int d = detail::own_dim(Dim, X::sp.rank);
  constexpr std::int64_t places = detail::places_of(spec(X::sp), d);
  return add(x, detail::apply<op_code::index_add, attributes<index_attributes>(d, places)>(0, src, index));
}

// x with src written at [index[i][j]][j] for Dim 0. Where an index repeats in a line the last element counts, on every
// mesh; an overwritten one has gradient 0 (PyTorch leaves both open).
template <int Dim, tensor X, tensor I, tensor Src>
constexpr auto scatter(const X& x, const I& index, const Src& src) {
  return detail::apply<op_code::scatter, attributes<scatter_attributes>(detail::own_dim(Dim, X::sp.rank))>(0, x, index, src);
}
// The same with one number; of a partial tensor, zero alone: scatter_zero.
template <int Dim, tensor X, tensor I>
constexpr auto scatter(const X& x, const I& index, double value) {
  detail::check_element<X::sp, op_code::scatter>(x, value, "scatter");
  return detail::apply<op_code::scatter, attributes<scatter_attributes>(detail::own_dim(Dim, X::sp.rank))>(value, x, index);
}
template <int Dim, tensor X, tensor I>
constexpr auto scatter_zero(const X& x, const I& index) {
  return detail::apply<op_code::scatter, attributes<scatter_attributes>(detail::own_dim(Dim, X::sp.rank), 1)>(0, x, index);
}

// Rows of Classes elements, 1 at the index and 0 elsewhere, of type T (PyTorch: integers).
template <int Classes, class T = float, tensor I>
constexpr auto one_hot(const I& index) {
  return detail::apply<op_code::one_hot, attributes<one_hot_attributes>(Classes, static_cast<std::int64_t>(dtype_v<T>))>(
      0, index);
}

}  // namespace shardwise::inline v0_1
