// SPDX-License-Identifier: Apache-2.0
// Laws of strided shards: a split order is a mesh with its axes in that order, every order has one spelling, and a factor
// that no order has is refused.

#include <shardwise/vocabulary/axis.hpp>
#include <shardwise/vocabulary/operand.hpp>

namespace sw = shardwise;
using sw::interval;
using sw::shard_value;
using sw::strided_shard_value;

namespace {

template <int Size, int Name = 0>
struct ax : sw::axis<Size> {};
using square = sw::mesh<ax<2>, ax<2, 1>>;
template <std::int64_t N, class Mesh, class... P>
constexpr sw::spec vector = sw::spec_of<float, sw::shape<N>, Mesh, P...>::value;

// --- who holds what --------------------------------------------------------------------------------------------------

template <std::size_t N>
constexpr bool holds(const sw::spec& s, const interval (&expected)[N]) {
  for (std::size_t r = 0; r < N; ++r) {
    const interval v = sw::local_interval(s, 0, square::coordinate(static_cast<int>(r)).data());
    if (v.begin != expected[r].begin || v.size != expected[r].size) return false;
  }
  return true;
}
using first = sw::shard<0>;
using after = sw::strided_shard<0, 2>;
// (begin, size) of the ranks in order: data parallel shards of tensor parallel shards
static_assert(holds(vector<8, square, after, first>, {{0, 2}, {4, 2}, {2, 2}, {6, 2}}));
static_assert(holds(vector<8, square, first, first>, {{0, 2}, {2, 2}, {4, 2}, {6, 2}}));
static_assert(holds(vector<7, square, after, first>, {{0, 2}, {4, 2}, {2, 2}, {6, 1}}));
static_assert(holds(vector<5, square, after, first>, {{0, 2}, {3, 1}, {2, 1}, {4, 1}}));
static_assert(holds(vector<3, square, after, first>, {{0, 1}, {2, 1}, {1, 1}, {3, 0}}));
static_assert(holds(vector<1, square, after, first>, {{0, 1}, {1, 0}, {1, 0}, {1, 0}}));
static_assert(holds(vector<0, square, after, first>, {{0, 0}, {0, 0}, {0, 0}, {0, 0}}));

// What the ranks of the later axis hold together beside one rank of the strided one: of every piece, its chunk.
using wide = sw::mesh<ax<2>, ax<4>>;
template <class Mesh, std::size_t N>
constexpr bool together(const sw::spec& s, int coordinate, const std::int64_t (&elements)[N]) {
  std::size_t k = 0;
  for (int piece = 0; piece < Mesh::sizes[1]; ++piece) {
    const int c[] = {coordinate, piece};
    const interval v = sw::local_interval(s, 0, c);
    for (std::int64_t i = v.begin; i < v.begin + v.size; ++i)
      if (k == N || elements[k++] != i) return false;
  }
  return k == N;
}
static_assert(together<square>(vector<8, square, after, first>, 0, {0, 1, 4, 5}) &&
              together<square>(vector<8, square, after, first>, 1, {2, 3, 6, 7}));
static_assert(together<square>(vector<7, square, after, first>, 0, {0, 1, 4, 5}) &&
              together<square>(vector<7, square, after, first>, 1, {2, 3, 6}));
using after_four = sw::strided_shard<0, 4>;
static_assert(together<wide>(vector<16, wide, after_four, first>, 0, {0, 1, 4, 5, 8, 9, 12, 13}) &&
              together<wide>(vector<16, wide, after_four, first>, 1, {2, 3, 6, 7, 10, 11, 14, 15}));

// --- orders ----------------------------------------------------------------------------------------------------------

constexpr sw::spec on_sizes(const std::int32_t* sizes, std::int64_t n) {
  sw::spec s = sw::empty_spec(sw::dtype::f32, 3, sizes, sw::device_kind::host);
  s.rank = 1;
  s.extent[0] = n;
  sw::make_contiguous(s);
  return s;
}

// The shards whose dim is split in the order given: an axis' factor counts the later axes that come before it.
constexpr sw::spec in_order(const std::int32_t* sizes, std::int64_t n, const int* order) {
  sw::spec s = on_sizes(sizes, n);
  for (int k = 0; k < 3; ++k) {
    int factor = 1;
    for (int j = 0; j < k; ++j) factor *= order[j] > order[k] ? sizes[order[j]] : 1;
    s.place[order[k]] = strided_shard_value(0, factor);
  }
  return s;
}

// The blocks are those of plain shards on a mesh whose axes stand in that order.
constexpr bool is_the_turned_mesh(const std::int32_t* sizes, std::int64_t n, const int* order) {
  const sw::spec s = in_order(sizes, n, order);
  if (sw::check_placements(s)) return false;
  const sw::split_order read = sw::split_order_of(s, 0);
  for (int k = 0; k < 3; ++k)
    if (read.axis[k] != order[k]) return false;
  const std::int32_t turned_sizes[3] = {sizes[order[0]], sizes[order[1]], sizes[order[2]]};
  sw::spec turned = on_sizes(turned_sizes, n);
  for (int k = 0; k < 3; ++k) turned.place[k] = shard_value(0);
  for (int a = 0; a < sizes[0]; ++a)
    for (int b = 0; b < sizes[1]; ++b)
      for (int c = 0; c < sizes[2]; ++c) {
        const int at[3] = {a, b, c}, there[3] = {at[order[0]], at[order[1]], at[order[2]]};
        const interval v = sw::local_interval(s, 0, at), w = sw::local_interval(turned, 0, there);
        if (v.begin != w.begin || v.size != w.size) return false;
      }
  return true;
}
constexpr int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
template <int A, int B, int C, std::int64_t... N>
constexpr bool every_order() {
  constexpr std::int32_t sizes[3] = {A, B, C};
  for (const auto& order : orders)
    if (!(is_the_turned_mesh(sizes, N, order) && ...)) return false;
  return true;
}
static_assert(every_order<4, 3, 2, 0, 1, 3, 5, 8, 24, 37>());
static_assert(every_order<2, 2, 2, 0, 1, 3, 5, 8, 16>());
static_assert(every_order<3, 2, 2, 7, 12>() && every_order<2, 4, 3, 9, 50>());

// order (2, 0, 1) on sizes (4, 3, 2)
using torus = sw::mesh<ax<4>, ax<3>, ax<2>>;
constexpr sw::spec turned = vector<24, torus, sw::strided_shard<0, 2>, sw::strided_shard<0, 2>, sw::shard<0>>;
static_assert([] {
  const sw::split_order o = sw::split_order_of(turned, 0);
  return o.axis[0] == 2 && o.axis[1] == 0 && o.axis[2] == 1 && o.count == 3 && o.misplaced < 0;
}());
static_assert(sw::split_after(turned, 2, 0) == 0 && sw::split_after(turned, 0, 0) == 1 &&
              sw::split_after(turned, 1, 0) < 0 && sw::last_factor(turned, 0, 0) == 6);

// --- one spelling ----------------------------------------------------------------------------------------------------

// with nothing split before it, it is the plain shard; and on an axis of one rank
static_assert(sw::placement_v<sw::strided_shard<1, 1>> == shard_value(1));
static_assert(vector<8, square, sw::strided_shard<0, 1>, sw::replicate> == vector<8, square, first, sw::replicate>);
using lone = sw::mesh<ax<1>, ax<2>>;
static_assert(vector<8, lone, after, first> == vector<8, lone, first, first>);
// later axes of one rank split nothing
using ends_alone = sw::mesh<ax<2>, ax<1>>;
static_assert(sw::split_after(vector<8, ends_alone, first, first>, 0, 0) < 0);
// normalising again changes nothing; a block of the first split goes, whatever its place in the mesh
static_assert(vector<16, square, after, sw::shard<0, 4>> == vector<16, square, after, first>);

static_assert(sw::dual(turned) == turned);
static_assert(std::is_same_v<sw::operand_t<turned>,
                             sw::operand<float, sw::shape<24>, sw::strided_shard<0, 2>, sw::strided_shard<0, 2>, first>>);
static_assert(vector<8, square, sw::even<after>, first> == vector<8, square, after, first>);

// --- refused ---------------------------------------------------------------------------------------------------------

constexpr sw::finding checked(sw::placement a, sw::placement b) {
  constexpr std::int32_t sizes[3] = {2, 3, 1};
  sw::spec s = on_sizes(sizes, 12);
  s.place[0] = a;
  s.place[1] = b;
  return sw::check_placements(s);
}
constexpr bool misfits(sw::finding f, int axis, long long have, long long want) {
  return f.what == sw::problem::strided_shard_factor && f.axis == axis && f.have == have && f.want == want && f.dim == 0;
}
static_assert(!checked(strided_shard_value(0, 3), shard_value(0)));
static_assert(misfits(checked(strided_shard_value(0, 2), shard_value(0)), 0, 2, 3));         // the other axis has 3
static_assert(misfits(checked(strided_shard_value(0, 3), sw::replicate_value()), 0, 3, 1));  // splits nothing
static_assert(misfits(checked(shard_value(0), strided_shard_value(0, 2)), 1, 2, 1));         // an earlier axis has no say
static_assert(checked(strided_shard_value(0, 0), shard_value(0)).what == sw::problem::strided_shard_factor);
static_assert(checked(strided_shard_value(0, 3 + 256), shard_value(0)).what == sw::problem::strided_shard_factor);
// a factor beyond the largest is taken for no other, however many parts the later axis makes
constexpr bool fits(int parts, int factor) {
  const std::int32_t sizes[3] = {2, parts, 1};
  sw::spec s = on_sizes(sizes, 12);
  s.place[0] = strided_shard_value(0, factor);
  s.place[1] = shard_value(0);
  return sw::check_placements(s).what != sw::problem::strided_shard_factor;
}
static_assert(fits(sw::max_factor, sw::max_factor) && !fits(sw::max_factor + 1, sw::max_factor + 1));
static_assert(!fits(sw::max_factor, sw::max_factor + 1) && !fits(sw::max_factor, -1) && !fits(1, 0));
static_assert(checked(strided_shard_value(1, 3), shard_value(0)).what == sw::problem::shard_dim_out_of_range);
// of several that split the dim: the wish for a plain shard is always heard
static_assert([] {
  sw::spec s = turned;
  s.place[2] = sw::replicate_value();
  sw::drop_misplaced_factors(s);
  return !sw::check_placements(s) && s.place[0] == shard_value(0) && s.place[1] == shard_value(0);
}());

}  // namespace
