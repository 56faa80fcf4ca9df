// SPDX-License-Identifier: Apache-2.0
// Running sums, other orders of elements, repeated ones, and tables with a row for padding, under PyTorch's names. For cumsum include
// shardwise/operations/scan/host.hpp, too, and its device.cuh in one CUDA source of a program for GPUs.
#pragma once

#include <shardwise/graph/functions/custom.hpp>
#include <shardwise/graph/functions/fills.hpp>
#include <shardwise/graph/functions/indexing.hpp>
#include <shardwise/graph/functions/joins.hpp>
#include <shardwise/graph/functions/reduction_functions.hpp>
#include <shardwise/operations/scan/record.hpp>

namespace shardwise::inline v0_1 {

namespace custom {

// The adjoint of a running sum is the running sum from the other end, which is again one of these.
constexpr void pull_scan(autodiff::pullback& p);
inline constexpr autodiff::adjoint_rule scan_rule = autodiff::pulled(&pull_scan);
inline constexpr custom_operation cumsum{.name = "cumsum", .operands = 1, .record = operations::scan, .adjoint = &scan_rule};

constexpr void pull_scan(autodiff::pullback& p) {
  auto a = attributes_of<scan_attributes>(p.n.a);
  a.back = 1 - a.back;
  p.give(0, p.make(cumsum, pack_attributes(a), 0, p.dy));
}

}  // namespace custom

// The sum of the elements up to each one along Dim, which is not sharded. Floats are added up in double.
template <int Dim, tensor A>
constexpr auto cumsum(const A& a) {
  return call<custom::cumsum, pack_attributes(scan_attributes{detail::own_dim(Dim, A::sp.rank), 0})>(a);
}

// --- other orders -----------------------------------------------------------------------------------------------------------------

// Element i of Dim at i + Shift, what leaves one end coming in at the other; a negative Shift the other way. Dim is not sharded.
template <int Dim, std::int64_t Shift, tensor A>
constexpr auto roll(const A& a) {
  if constexpr (!detail::resolved<A>) {
    return a;
  } else {
    constexpr int d = detail::own_dim(Dim, A::sp.rank);
    constexpr std::int64_t n = d >= 0 && d < A::sp.rank ? A::sp.extent[d] : 1;
    constexpr std::int64_t by = n == 0 ? 0 : (Shift % n + n) % n;
    if constexpr (by == 0 || d < 0 || d >= A::sp.rank) return narrow<Dim, 0, n>(a);
    else return cat<d>(narrow<d, n - by, by>(a), narrow<d, 0, n - by>(a));
  }
}

// The elements along each of the dims from the last to the first. The dims are not sharded.
template <int Dim, int... More, tensor A>
constexpr auto flip(const A& a) {
  if constexpr (!detail::resolved<A>) {
    return a;
  } else {
    constexpr int d = detail::own_dim(Dim, A::sp.rank);
    constexpr std::int64_t n = d >= 0 && d < A::sp.rank ? A::sp.extent[d] : 1;
    const auto one = index_select<Dim>(a, arange_from<std::int32_t, n - 1, -1, -1>(a));
    if constexpr (sizeof...(More) == 0) return one;
    else return flip<More...>(one);
  }
}

// --- repeated elements --------------------------------------------------------------------------------------------------------------

namespace detail {

// The extents in which a tensor's dims stand beside the numbers of their copies, where these are more than one: before, with one
// copy, between, with all of them, and after.
struct repetition {
  extent_list before, between, after;
};
constexpr repetition repeated(const spec& s, std::initializer_list<std::int64_t> counts) {
  repetition r;
  const int lead = static_cast<int>(counts.size()) - s.rank;
  int d = 0;
  for (; d < -lead; ++d) {  // fewer counts than dims: those in front are there once
    r.before.push(spelled(s, d));
    r.between.push(spelled(s, d));
    r.after.push(spelled(s, d));
  }
  if (lead < 0) d = 0;
  for (const std::int64_t n : counts) {
    const std::int64_t own = d < lead ? 1 : spelled(s, d - lead);
    if (n != 1) {
      r.before.push(1);
      r.between.push(n);
    }
    r.before.push(own);
    r.between.push(own);
    r.after.push(own < 0 && n == 1 ? own : n * own);
    ++d;
  }
  return r;
}
constexpr bool any_negative(std::initializer_list<std::int64_t> counts) {
  for (const std::int64_t n : counts)
    if (n < 0) return true;
  return false;
}

}  // namespace detail

// The whole tensor Counts times along each dim, the last count along the last one; more counts than dims make new ones in front: a copy,
// whose gradient is the copies' sum. PyTorch's tile and Tensor.repeat; sw::repeat is a list of modules. A sharded dim is there once.
template <std::int64_t... Counts, tensor A>
constexpr auto tile(const A& a) {
  static_assert(!detail::any_negative({Counts...}), "shardwise: tile: a count is negative; give 0 or more copies.");
  if constexpr (!detail::resolved<A>) {
    return a;
  } else {
    constexpr detail::repetition r = detail::repeated(spec(A::sp), {Counts...});
    const auto apart = detail::seen_as<op_code::reshape, r.before.attributes(), r.before.wrong()>(contiguous(a));
    const auto copies = detail::seen_as<op_code::broadcast, r.between.attributes(), r.between.wrong()>(apart);
    return detail::seen_as<op_code::reshape, r.after.attributes(), r.after.wrong()>(contiguous(copies));
  }
}

// --- tables with a row for padding ----------------------------------------------------------------------------------------------------

// The row of a table that stands for padding: no gradient goes to it. A negative one counts from the end.
template <std::int64_t Row>
struct padding_idx {
  static constexpr bool pads = true;
  static constexpr std::int64_t value = Row;
};

namespace detail {
template <class P>
concept padding_row = requires {
  { P::pads } -> std::convertible_to<bool>;
};
}  // namespace detail

// embedding<padding_idx<0>>(table, index): the rows of embedding(table, index), padding's too; its row has gradient 0. One choice
// between equal rows more than without.
template <detail::padding_row P, tensor W, tensor I>
constexpr auto embedding(const W& table, const I& index) {
  const auto rows = embedding(table, index);
  if constexpr (!detail::resolved<std::remove_cvref_t<decltype(rows)>>) {
    return rows;
  } else {
    constexpr std::int64_t row = P::value < 0 ? P::value + W::sp.extent[0] : P::value;
    if constexpr (row < 0 || row >= W::sp.extent[0])
      return detail::refused<problem::padding_row, op_code::embedding, operand_t<W::sp>>(table);
    else return where(unsqueeze<-1>(eq(index, static_cast<double>(row))), detach(rows), rows);
  }
}

}  // namespace shardwise::inline v0_1
