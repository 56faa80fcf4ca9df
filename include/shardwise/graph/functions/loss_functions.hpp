// SPDX-License-Identifier: Apache-2.0
// Cross entropy whose classes are sharded, and with targets that do not count.
#pragma once

#include <shardwise/graph/functions/reduction_functions.hpp>

namespace shardwise::inline v0_1 {

// Rows whose target is Index add nothing to a loss and are not counted by its mean: cross_entropy<ignore_index<-100>>.
template <std::int64_t Index>
struct ignore_index {
  static constexpr bool ignores = true;
  static constexpr std::int64_t value = Index;
};
struct count_all {
  static constexpr bool ignores = false;
  static constexpr std::int64_t value = 0;
};

namespace detail {

template <class I>
concept counting = requires {
  { I::ignores } -> std::convertible_to<bool>;
};

template <counting I>
inline constexpr op_attr nll_attr = attributes<nll_attributes>(I::ignores ? 1 : 0, I::value);

// `count`, placed to divide a total that is partial, or whole: reduced where the total is partial.
template <spec Total, int Axis, tensor N>
constexpr auto divisor_of(const N& count) {
  if constexpr (Axis == Total.axes) return count;
  else if constexpr (!Total.place[Axis].is_partial()) return divisor_of<Total, Axis + 1>(count);
  else
    return divisor_of<Total, Axis + 1>(
        apply<op_code::redistribute, attributes<redistribute_attributes>(Axis, pack(reduced_value()))>(0, count));
}

// Mean of the rows that count. Without ignored rows their number is known; else it is counted, and each axis that
// shards the rows pays an all-reduce of one number.
template <counting I, tensor L, tensor T>
constexpr auto mean_of_rows(const L& rows, const T& target) {
  if constexpr (!resolved<L, T>) {
    return unresolved<typename L::mesh_type>{};
  } else if constexpr (!I::ignores) {
    return mean(rows);
  } else {
    const auto ignored = eq(target, static_cast<double>(I::value));
    const auto count =
        sum(apply<op_code::mask_keep, attributes<mask_keep_attributes>(1)>(0, constant_like(rows, 1), ignored));
    const auto total = sum(rows);
    return div(total, divisor_of<std::remove_cvref_t<decltype(total)>::sp, 0>(count));
  }
}

// x with dim Dim behind all others, which keep their order: a view.
template <int Dim, tensor X>
constexpr auto moved_last(const X& x) {
  constexpr int rank = X::sp.rank, dim = Dim < 0 ? Dim + rank : Dim;
  if constexpr (!resolved<X>) {
    return x;
  } else if constexpr (dim < 0 || dim >= rank) {
    return refused<problem::dim_out_of_range, op_code::permute, operand_t<X::sp>>(x);
  } else if constexpr (dim == rank - 1) {
    return x;
  } else {
    constexpr std::int64_t from = [] {
      std::int64_t all = 0;
      for (int k = 0; k < rank; ++k) all |= std::int64_t{k < dim ? k : k + 1 < rank ? k + 1 : dim} << (4 * k);
      return all;
    }();
    return apply<op_code::permute, attributes<permute_attributes>(from)>(0, x);
  }
}

}  // namespace detail

// logits (..., classes), target (...): as cross_entropy_rows, zero for ignored rows.
template <detail::counting I, tensor X, tensor T>
constexpr auto cross_entropy_rows(const X& logits, const T& target) {
  const auto rows = detail::ready_for<op_code::lse, detail::no_attr>(logits);
  const auto norm = detail::apply<op_code::lse, detail::no_attr>(0, rows);
  return detail::apply<op_code::nll, detail::nll_attr<I>>(0, rows, norm, target);
}
template <detail::counting I, tensor X, tensor T>
constexpr auto cross_entropy(const X& logits, const T& target) {
  return detail::mean_of_rows<I>(cross_entropy_rows<I>(logits, target), target);
}

// logits whose dim Dim is the classes', target of their other dims in order: PyTorch's cross_entropy of images and sequences is
// cross_entropy<1>. The kernels read a view of the logits, whose gradient is one, too: nothing is copied.
template <int Dim, detail::counting I = count_all, tensor X, tensor T>
constexpr auto cross_entropy_rows(const X& logits, const T& target) {
  if constexpr (I::ignores) return cross_entropy_rows<I>(detail::moved_last<Dim>(logits), target);
  else return cross_entropy_rows(detail::moved_last<Dim>(logits), target);
}
template <int Dim, detail::counting I = count_all, tensor X, tensor T>
constexpr auto cross_entropy(const X& logits, const T& target) {
  if constexpr (I::ignores) return cross_entropy<I>(detail::moved_last<Dim>(logits), target);
  else return cross_entropy(detail::moved_last<Dim>(logits), target);
}

// Losses of logits whose classes Axis shards, evenly or not; targets whole on Axis. Two all-reduces of one number a
// row: the largest logit and the sum of exponentials. The losses are partial<> on Axis, each on the rank that has the
// target; their gradient is the ranks' own softmax - onehot, without communication.
template <class Axis, detail::counting I = count_all, tensor X, tensor T>
constexpr auto loss_parallel_cross_entropy_rows(const X& logits, const T& target) {
  using mesh_type = typename X::mesh_type;
  constexpr int axis = mesh_type::template index_of<Axis>;
  constexpr problem wrong = !detail::resolved<X> ? problem::none
                            : axis < 0           ? problem::axis_not_in_mesh
                            : X::sp.rank > 0 && X::sp.place[axis < 0 ? 0 : axis].is_shard(X::sp.rank - 1)
                                ? problem::none
                                : problem::loss_parallel_not_sharded;
  if constexpr (wrong != problem::none) {
    return detail::refused<wrong, op_code::nll, Axis, mesh_type, operand_t<X::sp>>(logits, target);
  } else if constexpr (!detail::resolved<X, T>) {
    return detail::unresolved<mesh_type>{};
  } else {
    const auto top = redistribute<Axis, reduced>(amax<-1>(logits));
    const auto total = redistribute<Axis, reduced>(detail::apply<op_code::exp_sum, detail::no_attr>(0, logits, top));
    return detail::apply<op_code::nll, detail::nll_attr<I>>(
        0, logits, add(cast<element_t<wide_of(X::sp.type)>>(top), log(total)), target);
  }
}
// Their mean over the rows of all ranks: partial<> on Axis, and where rows are sharded.
template <class Axis, detail::counting I = count_all, tensor X, tensor T>
constexpr auto loss_parallel_cross_entropy(const X& logits, const T& target) {
  return detail::mean_of_rows<I>(loss_parallel_cross_entropy_rows<Axis, I>(logits, target), target);
}

}  // namespace shardwise::inline v0_1
