// SPDX-License-Identifier: Apache-2.0
// holes: free bytes of the arena while a plan is made, by size and by both ends.
#pragma once

#include <cstdint>
#include <limits>

#include <shardwise/graph/storage.hpp>

namespace shardwise::inline v0_1::passes::detail {

inline constexpr int max_holes = 512;

// Free bytes below the top. Lists are by classes of sizes, four for each power of two, and hashed by both ends: what is taken looks
// at holes of about its size, what comes back at its neighbours, however many others there are.
struct hole {
  std::int64_t begin, size;
  int next, before;          // of its class; of entries that are no hole: the next such
  int next_begin, next_end;  // of those whose beginning, whose end has the same hash
  int kind;                  // its class
};
inline constexpr int hole_classes = 256;
static_assert(slot_alignment == 64);  // of slot_of

struct hole_table {
  hole holes[max_holes];
  int of_class[hole_classes], by_begin[hole_classes], by_end[hole_classes];  // the first hole, -1: none
  std::uint64_t filled[hole_classes / 64];                                   // classes that have one
  int unused;                                                                // the first of the entries that were holes once
  int ever;                                                                  // entries that are or were holes
  std::int64_t top;                                                          // everything above is free
};

constexpr void clear_holes(hole_table& st) {
  constexpr hole none{0, 0, -1, -1, -1, -1, 0};
  for (hole& h : st.holes) h = none;
  for (int& h : st.of_class) h = -1;
  for (int& h : st.by_begin) h = -1;
  for (int& h : st.by_end) h = -1;
  for (std::uint64_t& f : st.filled) f = 0;
  st.unused = -1;
  st.ever = 0;
  st.top = 0;
}

// Of a size, a multiple of the alignment; larger sizes have no lower class. (Built in: <bit>'s functions are many calls each.)
constexpr int class_of(std::int64_t size) {
  const auto units = static_cast<std::uint64_t>(size / slot_alignment);
  if (units < 4) return static_cast<int>(units);
  const int high = 63 - __builtin_clzll(units);
  return 4 * high + static_cast<int>(units >> (high - 2) & 3U);
}
constexpr int slot_of(std::int64_t at) { return static_cast<int>((at >> 6 ^ at >> 11 ^ at >> 17) & 255); }

constexpr int hole_from(const hole_table& st, std::int64_t begin) {
  int h = st.by_begin[slot_of(begin)];
  while (h >= 0 && st.holes[h].begin != begin) h = st.holes[h].next_begin;
  return h;
}
constexpr int hole_up_to(const hole_table& st, std::int64_t end) {
  int h = st.by_end[slot_of(end)];
  while (h >= 0 && st.holes[h].begin + st.holes[h].size != end) h = st.holes[h].next_end;
  return h;
}

constexpr void add_hole(hole_table& st, std::int64_t at, std::int64_t size) {
  int h = st.unused;
  if (h >= 0) st.unused = st.holes[h].next;
  else if (st.ever < max_holes) h = st.ever++;
  else return;  // a full table only costs memory: the bytes stay unused
  const int c = class_of(size), b = slot_of(at), e = slot_of(at + size), after = st.of_class[c];
  const hole x{at, size, after, -1, st.by_begin[b], st.by_end[e], c};
  st.holes[h] = x;
  if (after >= 0) st.holes[after].before = h;
  else st.filled[c / 64] |= std::uint64_t{1} << c % 64;
  st.of_class[c] = st.by_begin[b] = st.by_end[e] = h;
}
constexpr void remove_hole(hole_table& st, int h) {
  const hole x = st.holes[h];
  const int c = x.kind, b = slot_of(x.begin), e = slot_of(x.begin + x.size);
  if (x.before >= 0) st.holes[x.before].next = x.next;
  else st.of_class[c] = x.next;
  if (x.next >= 0) st.holes[x.next].before = x.before;
  else if (x.before < 0) st.filled[c / 64] &= ~(std::uint64_t{1} << c % 64);
  int p = st.by_begin[b];
  if (p == h) st.by_begin[b] = x.next_begin;
  else {
    while (st.holes[p].next_begin != h) p = st.holes[p].next_begin;
    st.holes[p].next_begin = x.next_begin;
  }
  p = st.by_end[e];
  if (p == h) st.by_end[e] = x.next_end;
  else {
    while (st.holes[p].next_end != h) p = st.holes[p].next_end;
    st.holes[p].next_end = x.next_end;
  }
  st.holes[h].next = st.unused;
  st.unused = h;
}

// The smallest hole of a class that fits, the lowest of equals; -1: none.
constexpr int best_of(const hole_table& st, int c, std::int64_t need) {
  int best = -1;
  std::int64_t size = std::numeric_limits<std::int64_t>::max(), begin = 0;
  for (int h = st.of_class[c]; h >= 0; h = st.holes[h].next) {
    const std::int64_t s = st.holes[h].size;
    if (s < need || s > size || (s == size && st.holes[h].begin > begin)) continue;
    best = h;
    size = s;
    begin = st.holes[h].begin;
  }
  return best;
}
// The first class above c that has a hole, -1: none.
constexpr int class_above(const hole_table& st, int c) {
  std::uint64_t left = c % 64 == 63 ? 0 : st.filled[c / 64] >> (c % 64 + 1) << (c % 64 + 1);
  for (int w = c / 64;; left = st.filled[w]) {
    if (left != 0) return 64 * w + __builtin_ctzll(left);
    if (++w == hole_classes / 64) return -1;
  }
}

// Smallest hole that fits, the lowest of equals; else the top, grown from a hole that touches it. (Arrays are indexed
// as such throughout: an element of a pointer takes g++ three times as long.)
constexpr std::int64_t take(hole_table& st, std::int64_t need) {
  if (need == 0) return st.top;
  const int c = class_of(need);
  int best = best_of(st, c, need);
  if (best < 0)
    if (const int above = class_above(st, c); above >= 0) best = best_of(st, above, need);
  if (best >= 0) {
    const std::int64_t at = st.holes[best].begin, size = st.holes[best].size;
    remove_hole(st, best);
    if (size != need) add_hole(st, at + need, size - need);
    return at;
  }
  std::int64_t at = st.top;
  if (const int last = hole_up_to(st, st.top); last >= 0) {
    at = st.holes[last].begin;
    remove_hole(st, last);
  }
  st.top = at + need;
  return at;
}

constexpr void give_back(hole_table& st, std::int64_t at, std::int64_t size) {
  if (size == 0) return;
  if (const int below = hole_up_to(st, at); below >= 0) {
    at = st.holes[below].begin;
    size += st.holes[below].size;
    remove_hole(st, below);
  }
  if (const int above = hole_from(st, at + size); above >= 0) {
    size += st.holes[above].size;
    remove_hole(st, above);
  }
  add_hole(st, at, size);
}

}  // namespace shardwise::inline v0_1::passes::detail
