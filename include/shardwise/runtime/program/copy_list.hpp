// SPDX-License-Identifier: Apache-2.0
// copy_list: which part of which rank's block goes where, so that blocks of one placement become blocks of another: between any two
// meshes of as many ranks.
#pragma once

#include <cstdint>

#include <shardwise/runtime/program/call.hpp>

namespace shardwise::inline v0_1::runtime {

// Elements of the whole tensor, from begin[d] on, size[d] of them, that rank `to` takes out of rank `from`'s block.
struct box_copy {
  int from = 0, to = 0;
  std::int64_t begin[max_rank]{};
  std::int64_t size[max_rank]{};
};

constexpr int ranks_of(const spec& s) {
  int n = 1;
  for (int a = 0; a < s.axes; ++a) n *= s.axis_size[a];
  return n;
}
// Row-major, as the mesh counts its ranks.
constexpr void coordinate_of(const spec& s, int rank, int* c) {
  for (int a = max_axes - 1; a >= 0; --a) {
    const int n = a < s.axes ? s.axis_size[a] : 1;
    c[a] = rank % n;
    rank /= n;
  }
}

// A rank's block, as an interval of each dim.
struct block_box {
  interval at[max_rank]{};
};
constexpr block_box box_of(const spec& s, int rank) {
  int c[max_axes]{};
  coordinate_of(s, rank, c);
  block_box b;
  for (int d = 0; d < s.rank; ++d) b.at[d] = local_interval(s, d, c);
  return b;
}

// Ranks that have one block: their coordinates differ on axes alone that do not shard the tensor.
struct equal_blocks {
  const spec& s;

  constexpr int copies() const {
    int n = 1;
    for (int a = 0; a < s.axes; ++a) n *= s.place[a].is_shard() ? 1 : s.axis_size[a];
    return n;
  }
  // The one of rank's that is number `turn` of them.
  constexpr int member(int rank, int turn) const {
    int c[max_axes]{}, r = 0;
    coordinate_of(s, rank, c);
    for (int a = s.axes - 1; a >= 0; --a)
      if (!s.place[a].is_shard()) {
        c[a] = turn % s.axis_size[a];
        turn /= s.axis_size[a];
      }
    for (int a = 0; a < s.axes; ++a) r = r * s.axis_size[a] + c[a];
    return r;
  }
};

// f(box) for everything that rank `rank` takes. Law: the boxes are disjoint and their union is its block of `to`, if no axis of
// `from` is partial: blocks are boxes that tile the tensor, and equal ones are taken once. Of ranks with equal blocks the rank
// itself gives, if it is one of them, else they take turns.
template <class F>
constexpr void each_copy(const spec& from, const spec& to, int rank, F&& f) {
  const int ranks = ranks_of(from);
  const equal_blocks groups{from};
  const int copies = groups.copies(), own = groups.member(rank, 0);
  const block_box wanted = box_of(to, rank);
  for (int first = 0; first < ranks; ++first) {
    if (groups.member(first, 0) != first) continue;
    const block_box held = box_of(from, first);
    box_copy box;
    box.to = rank;
    box.from = first == own ? rank : groups.member(first, rank % copies);
    bool empty = false;
    for (int d = 0; d < from.rank; ++d) {
      const std::int64_t lo = held.at[d].begin > wanted.at[d].begin ? held.at[d].begin : wanted.at[d].begin;
      const std::int64_t end = held.at[d].begin + held.at[d].size, last = wanted.at[d].begin + wanted.at[d].size;
      box.begin[d] = lo;
      box.size[d] = (end < last ? end : last) - lo;
      empty = empty || box.size[d] <= 0;
    }
    if (!empty) f(box);
  }
}

// All of them, rank after rank: rank r's are item[begin[r]] to item[begin[r + 1] - 1]. A function of the two specs alone, hence a
// constant where they are.
template <int Ranks>
struct copy_list {
  box_copy item[Ranks * Ranks]{};
  int begin[Ranks + 1]{};
};
template <int Ranks>
constexpr copy_list<Ranks> copies_between(const spec& from, const spec& to) {
  copy_list<Ranks> r;
  int count = 0;
  for (int rank = 0; rank < Ranks; ++rank) {
    r.begin[rank] = count;
    each_copy(from, to, rank, [&](const box_copy& box) { r.item[count++] = box; });
  }
  r.begin[Ranks] = count;
  return r;
}

// Copies a box out of one block into another one.
template <class T>
constexpr void copy_box(const box_copy& box, const T* from, const layout& lf, T* to, const layout& lt) {
  std::int64_t at[max_rank]{};
  const int last = lf.rank - 1;
  for (;;) {
    std::int64_t x = 0, y = 0;
    for (int d = 0; d < lf.rank; ++d) {
      x += (box.begin[d] + at[d] - lf.origin[d]) * lf.str[d];
      y += (box.begin[d] + at[d] - lt.origin[d]) * lt.str[d];
    }
    const std::int64_t run = last < 0 ? 1 : box.size[last];
    const std::int64_t sx = last < 0 ? 1 : lf.str[last], sy = last < 0 ? 1 : lt.str[last];
    for (std::int64_t i = 0; i < run; ++i) to[y + i * sy] = from[x + i * sx];
    int d = last - 1;
    while (d >= 0 && ++at[d] == box.size[d]) at[d--] = 0;
    if (d < 0) return;
  }
}

// The layout of a rank's block.
constexpr layout layout_on(const spec& s, int rank) {
  int c[max_axes]{};
  coordinate_of(s, rank, c);
  return local_layout(s, c);
}
// The same tensor, whole on every rank.
constexpr spec whole_spec(spec s) {
  for (int a = 0; a < s.axes; ++a) s.place[a] = replicate_value();
  return contiguous(s);
}

}  // namespace shardwise::inline v0_1::runtime
