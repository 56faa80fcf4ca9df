// SPDX-License-Identifier: Apache-2.0
// Copy lists: between any two placements on as many ranks what each rank takes are disjoint boxes that lie in the giver's block and
// together are its own block; whole tensors are given in turn, and nobody asks another for what it has.
#include <shardwise/runtime/program/copy_list.hpp>
#include <shardwise/vocabulary/axis.hpp>
#include <shardwise/vocabulary/operand.hpp>

namespace {

namespace sw = shardwise;
using namespace sw;
using namespace sw::runtime;

template <int Ranks>
constexpr bool holds(const spec& from, const spec& to) {
  const copy_list<Ranks> list = copies_between<Ranks>(from, to);
  for (int r = 0; r < Ranks; ++r) {
    const block_box own = box_of(to, r);
    std::int64_t wanted = 1, given = 0;
    for (int d = 0; d < to.rank; ++d) wanted *= own.at[d].size;
    bool has_it = true;  // this rank's block of `from` covers that of `to`
    const block_box had = box_of(from, r);
    for (int d = 0; d < to.rank; ++d)
      has_it = has_it && (wanted == 0 || (had.at[d].begin <= own.at[d].begin &&
                                          had.at[d].begin + had.at[d].size >= own.at[d].begin + own.at[d].size));
    for (int k = list.begin[r]; k < list.begin[r + 1]; ++k) {
      const box_copy& x = list.item[k];
      if (x.to != r || x.from < 0 || x.from >= Ranks) return false;
      if (has_it && wanted > 0 && x.from != r) return false;
      const block_box source = box_of(from, x.from);
      std::int64_t n = 1;
      for (int d = 0; d < to.rank; ++d) {
        n *= x.size[d];
        for (const interval& whole : {own.at[d], source.at[d]})
          if (x.begin[d] < whole.begin || x.begin[d] + x.size[d] > whole.begin + whole.size) return false;
      }
      given += n;
      for (int j = list.begin[r]; j < k; ++j) {  // disjoint from those before it
        bool apart = false;
        for (int d = 0; d < to.rank; ++d)
          apart = apart || x.begin[d] + x.size[d] <= list.item[j].begin[d] ||
                  list.item[j].begin[d] + list.item[j].size[d] <= x.begin[d];
        if (!apart) return false;
      }
    }
    if (given != wanted) return false;
  }
  return true;
}

constexpr spec on_mesh(std::initializer_list<std::int64_t> extents, std::initializer_list<int> sizes,
                       std::initializer_list<placement> places) {
  std::int32_t size[max_axes] = {1, 1, 1, 1};
  int a = 0;
  for (int n : sizes) size[a++] = n;
  spec s = empty_spec(dtype::f64, a, size, device_kind::host);
  for (std::int64_t e : extents) s.extent[s.rank++] = e;
  make_contiguous(s);
  a = 0;
  for (const placement& p : places) s.place[a++] = p;
  normalise(s);
  return s;
}

// Every pair of these placements of one tensor.
template <int Ranks, int N>
constexpr bool all_pairs(const spec (&all)[N]) {
  for (const spec& from : all) {
    if (check_placements(from) || ranks_of(from) != Ranks) return false;
    for (const spec& to : all)
      if (!holds<Ranks>(from, to)) return false;
  }
  return true;
}

constexpr placement R = replicate_value(), U = reduced_value(), S0 = shard_value(0), S1 = shard_value(1);

constexpr spec scalar[] = {on_mesh({}, {2}, {R}), on_mesh({}, {2}, {U})};
static_assert(all_pairs<2>(scalar));

constexpr spec one[] = {on_mesh({5, 3}, {1}, {R}), on_mesh({5, 3}, {1}, {S0}), on_mesh({5, 3}, {1, 1}, {S1, U})};
static_assert(all_pairs<1>(one));

// 2 ranks, 7 rows; 3 ranks: 4 rows leave the last one with none.
constexpr spec two[] = {on_mesh({7, 4}, {2}, {R}),
                        on_mesh({7, 4}, {2}, {S0}),
                        on_mesh({7, 4}, {2}, {S1}),
                        on_mesh({7, 4}, {1, 2}, {R, S0}),
                        on_mesh({7, 4}, {2}, {shard_value(1, 4)}),
                        on_mesh({7, 4}, {2, 1}, {U, S0})};
static_assert(all_pairs<2>(two));
constexpr spec three[] = {on_mesh({4, 2}, {3}, {R}), on_mesh({4, 2}, {3}, {S0}), on_mesh({4, 2}, {3}, {S1}),
                          on_mesh({4, 2}, {3, 1}, {S0, S1}), on_mesh({4, 2}, {1, 3}, {U, shard_value(0, 2)})};
static_assert(all_pairs<3>(three));

// Other meshes of as many ranks, both axes on one dim in either order, blocks.
constexpr spec four[] = {on_mesh({9, 6}, {4}, {S0}),
                         on_mesh({9, 6}, {4}, {S1}),
                         on_mesh({9, 6}, {4}, {R}),
                         on_mesh({9, 6}, {2, 2}, {S0, S1}),
                         on_mesh({9, 6}, {2, 2}, {S0, S0}),
                         on_mesh({9, 6}, {2, 2}, {strided_shard_value(0, 2), S0}),
                         on_mesh({9, 6}, {2, 2}, {U, S1}),
                         on_mesh({9, 6}, {2, 2}, {S1, R}),
                         on_mesh({9, 6}, {2, 2}, {shard_value(0, 3), shard_value(1, 2)})};
static_assert(all_pairs<4>(four));

constexpr spec eight[] = {on_mesh({10, 5}, {8}, {S0}),
                          on_mesh({10, 5}, {8}, {S1}),
                          on_mesh({10, 5}, {2, 4}, {S0, S1}),
                          on_mesh({10, 5}, {2, 4}, {strided_shard_value(0, 4), S0}),
                          on_mesh({10, 5}, {4, 2}, {S0, R}),
                          on_mesh({10, 5}, {2, 2, 2}, {S1, U, S0}),
                          on_mesh({10, 5}, {2, 2, 2}, {R, strided_shard_value(0, 2), S0})};
static_assert(all_pairs<8>(eight));

// Of a whole tensor's copies they take turns: ranks 2 and 3 of the second mesh hold what rank 1 of the first one's other half wants.
constexpr bool in_turn = [] {
  const auto list = copies_between<4>(on_mesh({8}, {2, 2}, {S0, R}), on_mesh({8}, {4}, {R}));
  int asked[4]{};
  for (int k = 0; k < list.begin[4]; ++k)
    if (list.item[k].from != list.item[k].to) ++asked[list.item[k].from];
  return list.begin[4] == 8 && asked[0] == 1 && asked[1] == 1 && asked[2] == 1 && asked[3] == 1;
}();
static_assert(in_turn);

// Three dims, the run of the last one.
constexpr bool copied = [] {
  const spec from = on_mesh({3, 2, 4}, {2}, {shard_value(2)}), to = on_mesh({3, 2, 4}, {2}, {S0});
  double whole[24]{};
  for (int i = 0; i < 24; ++i) whole[i] = i + 1;
  double blocks[2][12]{};
  for (int r = 0; r < 2; ++r) {
    const layout l = layout_on(from, r);
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 2; ++j)
        for (int k = 0; k < 2; ++k) blocks[r][i * 4 + j * 2 + k] = whole[i * 8 + j * 4 + 2 * r + k];
    if (l.ext[2] != 2) return false;
  }
  for (int r = 0; r < 2; ++r) {
    double got[16]{};
    each_copy(from, to, r,
              [&](const box_copy& x) { copy_box(x, blocks[x.from], layout_on(from, x.from), got, layout_on(to, r)); });
    const int rows = r == 0 ? 2 : 1;
    for (int i = 0; i < rows * 8; ++i)
      if (got[i] != whole[r * 16 + i]) return false;
  }
  return true;
}();
static_assert(copied);

}  // namespace
