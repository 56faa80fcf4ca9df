// SPDX-License-Identifier: Apache-2.0
// Free bytes of the arena, against a list that is searched from end to end: what is taken lies in no other's bytes, in the smallest
// hole of the class that is looked at first, and what is given back joins its neighbours.
#include <shardwise/pass/memory/holes.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace {

namespace detail = shardwise::passes::detail;

struct block {
  std::int64_t begin, size;
};

// Every byte below the top belongs to one block or to one hole, and no two holes touch.
void check_tiling(const detail::hole_table& st, std::vector<block> taken) {
  std::vector<block> all = std::move(taken);
  const std::size_t blocks = all.size();
  for (int c = 0; c < detail::hole_classes; ++c) {
    CHECK((st.of_class[c] >= 0) == (((st.filled[c / 64] >> (c % 64)) & 1U) != 0));
    for (int h = st.of_class[c]; h >= 0; h = st.holes[h].next) {
      const detail::hole& x = st.holes[h];
      REQUIRE(detail::class_of(x.size) == c);
      REQUIRE(detail::hole_from(st, x.begin) == h);
      REQUIRE(detail::hole_up_to(st, x.begin + x.size) == h);
      all.push_back({x.begin, x.size});
    }
  }
  std::vector<int> hole(all.size());
  std::vector<std::size_t> order(all.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i, hole[i] = i >= blocks ? 1 : 0;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return all[a].begin < all[b].begin; });
  std::int64_t at = 0;
  bool after_hole = false;
  for (const std::size_t i : order) {
    REQUIRE(all[i].begin == at);
    REQUIRE(!(after_hole && hole[i] != 0));
    after_hole = hole[i] != 0;
    at += all[i].size;
  }
  REQUIRE(at == st.top);
}

// Where the next block goes by the law of `take`: the smallest hole of its own class that fits, the lowest of equals; else the
// smallest of the first class above; else the top, grown from a hole that touches it.
std::int64_t place_by_search(const detail::hole_table& st, std::int64_t need) {
  std::vector<block> holes;
  for (int c = 0; c < detail::hole_classes; ++c)
    for (int h = st.of_class[c]; h >= 0; h = st.holes[h].next) holes.push_back({st.holes[h].begin, st.holes[h].size});
  const int own = detail::class_of(need);
  const block* best = nullptr;
  for (const block& b : holes) {
    if (b.size < need) continue;
    const auto rank = [&](const block& x) { return detail::class_of(x.size) == own ? -1 : detail::class_of(x.size); };
    if (!best || rank(b) < rank(*best) ||
        (rank(b) == rank(*best) && (b.size < best->size || (b.size == best->size && b.begin < best->begin))))
      best = &b;
  }
  if (best) return best->begin;
  for (const block& b : holes)
    if (b.begin + b.size == st.top) return b.begin;
  return st.top;
}

}  // namespace

TEST_CASE("holes: blocks and holes tile the arena, whatever is taken and given back") {
  for (unsigned seed = 0; seed < 12; ++seed) {
    std::mt19937 roll(seed);
    const auto table = std::make_unique<detail::hole_table>();
    detail::clear_holes(*table);
    std::vector<block> taken;
    const int most = seed % 3 == 0 ? 8 : seed % 3 == 1 ? 40 : 3000;  // units: few sizes, which recur, and many
    for (int step = 0; step < 600; ++step) {
      const bool takes = taken.size() < 4 || (taken.size() < 120 && roll() % 2 == 0);
      if (takes) {
        const std::int64_t size = (1 + static_cast<std::int64_t>(roll() % static_cast<unsigned>(most))) * 64;
        const std::int64_t wanted = place_by_search(*table, size);
        const std::int64_t at = detail::take(*table, size);
        REQUIRE(at == wanted);
        taken.push_back({at, size});
      } else {
        const std::size_t i = roll() % taken.size();
        detail::give_back(*table, taken[i].begin, taken[i].size);
        taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(i));
      }
      check_tiling(*table, taken);
    }
    for (const block& b : taken) detail::give_back(*table, b.begin, b.size);
    check_tiling(*table, {});
  }
}

TEST_CASE("holes: a full table loses bytes, never a block") {
  const auto table = std::make_unique<detail::hole_table>();
  detail::clear_holes(*table);
  std::vector<block> taken;
  for (int i = 0; i < 2 * detail::max_holes + 20; ++i) taken.push_back({detail::take(*table, 64), 64});
  for (std::size_t i = 0; i < taken.size(); i += 2) detail::give_back(*table, taken[i].begin, 64);  // no two of them touch
  std::vector<std::int64_t> again;
  for (int i = 0; i < detail::max_holes + 5; ++i) again.push_back(detail::take(*table, 64));
  for (std::size_t i = 1; i < taken.size(); i += 2) again.push_back(taken[i].begin);
  std::sort(again.begin(), again.end());
  CHECK(std::adjacent_find(again.begin(), again.end()) == again.end());
}
