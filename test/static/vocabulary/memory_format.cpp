// SPDX-License-Identifier: Apache-2.0
// Memory formats: PyTorch's strides, orders and what they leave open, the blocks of ranks, and which views such storage allows.
#include <shardwise/graph/functions/views.hpp>
#include <shardwise/runtime/program/call.hpp>

#include <typed.hpp>

namespace {

namespace sw = shardwise;
using sw::memory_format;

struct tp : sw::axis<2> {};
template <class Shape, class Placement = sw::replicate>
using image = typed<float, Shape, sw::mesh<tp>, sw::on<tp, Placement>>;
template <class X>
constexpr sw::spec turned = sw::in_format(sw::spec(X::sp), memory_format::channels_last);

constexpr bool has_strides(const sw::spec& s, std::initializer_list<std::int64_t> strides) {
  int d = 0;
  bool same = s.rank == static_cast<int>(strides.size());
  for (const std::int64_t e : strides) same = same && s.stride[d++] == e;
  return same;
}
constexpr bool has_order(const sw::spec& s, std::initializer_list<int> order) {
  const sw::dim_order o = sw::stride_order(s);
  int d = 0;
  bool same = o.rank == static_cast<int>(order.size());
  for (const int e : order) same = same && o.faster[d++] == e;
  return same;
}

using x = image<sw::shape<2, 128, 5, 5>>;
static_assert(has_strides(turned<x>, {3200, 1, 640, 128}) && has_strides(x::sp, {3200, 25, 5, 1}));
static_assert(has_order(turned<x>, {3, 0, 2, 1}) && has_order(x::sp, {3, 2, 1, 0}));
static_assert(sw::is_channels_last(turned<x>) && !sw::is_contiguous(turned<x>) && !sw::is_channels_last(x::sp));
static_assert(sw::in_format(turned<x>, memory_format::contiguous) == x::sp);
static_assert(!sw::same_order(turned<x>, x::sp) && sw::same_order(x::sp, x::sp));

// Dims of one element: the strides are PyTorch's, and say nothing.
using pixel = image<sw::shape<2, 6, 1, 1>>;
static_assert(has_strides(turned<pixel>, {6, 1, 6, 6}) && sw::same_order(turned<pixel>, pixel::sp));
using grey = image<sw::shape<2, 1, 3, 4>>;
static_assert(has_strides(turned<grey>, {12, 1, 4, 1}) && sw::same_order(turned<grey>, grey::sp));

// What a function gives: a copy, or itself where it is stored so already; of three dims nothing is channels-last.
template <class X>
constexpr auto last(const X& v) {
  return sw::contiguous<memory_format::channels_last>(v);
}
using cl = decltype(last(x{}));
static_assert(cl::sp == turned<x>);
static_assert(std::is_same_v<decltype(last(cl{})), cl>);
static_assert(decltype(sw::contiguous(cl{}))::sp == x::sp);
static_assert(decltype(sw::contiguous<memory_format::contiguous>(cl{}))::sp == x::sp);
// Results are contiguous.
static_assert(sw::is_contiguous(decltype(sw::relu(cl{}))::sp) && sw::is_contiguous(decltype(cl{} + cl{})::sp));
// A view of another tensor may happen to be stored so.
static_assert(sw::is_channels_last(decltype(sw::permute<0, 3, 1, 2>(image<sw::shape<2, 5, 5, 128>>{}))::sp));
static_assert(sw::is_channels_last(decltype(sw::narrow<0, 0, 1>(cl{}))::sp));
static_assert(!sw::is_channels_last(decltype(sw::narrow<0, 1, 1>(cl{}))::sp));  // begins elsewhere
static_assert(!sw::is_channels_last(decltype(sw::narrow<3, 0, 4>(cl{}))::sp));

// --- views: what is stored as one run can be one dim --------------------------------------------------------------------------------

template <class X, std::int64_t... E>
constexpr bool has_view = [] {
  constexpr auto list = sw::detail::inferred({E...}, X::sp, 0, X::sp.rank);
  const sw::spec in[] = {X::sp};
  const sw::outcome o = sw::infer(sw::op_code::reshape, list.attributes(), in, 1);
  return !o.error ? true : (o.error.what == sw::problem::view_not_dense ? false : throw "another problem");
}();
static_assert(has_view<x, 5, -1>);
static_assert(!has_view<cl, 5, -1>);  // eager PyTorch refuses it, too
static_assert(!has_view<cl, -1> && !has_view<cl, 2, -1> && !has_view<cl, 2, 128 * 5, 5>);
static_assert(has_view<cl, 2, 128, 25> && has_view<cl, 2, 2, 64, 5, 5> && has_view<cl, 1, 2, 128, 5, 5>);
static_assert(has_strides(decltype(sw::view<2, 128, 25>(cl{}))::sp, {3200, 1, 128}));
static_assert(has_strides(decltype(sw::view<2, 2, 64, 25>(cl{}))::sp, {3200, 64, 1, 128}));
using wide = decltype(sw::narrow<1, 0, 4>(image<sw::shape<6, 8>>{}));
static_assert(has_view<wide, 2, 3, 4> && has_view<wide, 6, 2, 2> && !has_view<wide, 24>);
static_assert(has_strides(decltype(sw::view<2, 3, 2, 2>(wide{}))::sp, {24, 8, 2, 1}));
using spread = decltype(sw::expand<6, 4>(image<sw::shape<1, 4>>{}));
static_assert(has_view<spread, 2, 3, 4> && !has_view<spread, 24>);
static_assert(has_strides(decltype(sw::view<2, 3, 4>(spread{}))::sp, {0, 0, 1}));

// --- blocks of ranks: dense in the tensor's order -------------------------------------------------------------------------------------

template <int Dim>
constexpr sw::runtime::layout block_of(int rank) {
  return sw::runtime::local_layout(turned<image<sw::shape<2, 6, 3, 5>, sw::shard<Dim>>>, &rank);
}
constexpr bool lies(const sw::runtime::layout& l, std::initializer_list<std::int64_t> extents,
                    std::initializer_list<std::int64_t> strides) {
  bool same = l.rank == 4;
  for (int d = 0; d < 4; ++d) same = same && l.ext[d] == extents.begin()[d] && l.str[d] == strides.begin()[d];
  return same;
}
static_assert(lies(block_of<0>(1), {1, 6, 3, 5}, {90, 1, 30, 6}));
static_assert(lies(block_of<1>(0), {2, 3, 3, 5}, {45, 1, 15, 3}));
static_assert(lies(block_of<2>(1), {2, 6, 1, 5}, {30, 1, 30, 6}));
static_assert(lies(block_of<3>(0), {2, 6, 3, 3}, {54, 1, 18, 6}));
static_assert(block_of<3>(0).span() == 2 * 6 * 3 * 3);

}  // namespace
