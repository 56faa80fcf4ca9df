// SPDX-License-Identifier: Apache-2.0
// A group of parameters moved by one collective on rank threads: gathered, each parameter is whole again; scattered, every
// rank has the sums of its own rows; over two axes, the averages of all ranks.
#include <shardwise/shardwise.hpp>
#include <shardwise/vocabulary/flat_group.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace {

namespace sw = shardwise;
using numbers = std::vector<double>;

template <int N>
struct rows : sw::axis<N> {};
struct replica : sw::axis<2> {};
using Avg = sw::partial<sw::reduction::avg>;

// Uneven, short, one row, none, even.
constexpr std::int64_t shapes[][2] = {{5, 2}, {3, 1}, {1, 7}, {0, 4}, {16, 3}, {9, 5}};
constexpr int count = 6;
template <int N>
constexpr auto layout = [] {
  sw::flat_group<count> g(N);
  for (const auto& s : shapes) g.add(s[0], s[1]);
  return g;
}();

double value(int k, std::int64_t i) { return 100 * k + static_cast<double>(i) + 1; }
double gradient(int rank, int k, std::int64_t i) { return (rank + 1) * value(k, i) - 7 * rank; }

// A part as a rank keeps it; padding is no number, so that nobody may read it.
template <int N>
numbers part_of(int r) {
  constexpr const auto& g = layout<N>;
  numbers part(static_cast<std::size_t>(g.part), std::nan(""));
  for (int k = 0; k < count; ++k)
    for (std::int64_t i = 0; i < g.entries[k].numel(); ++i)
      if (const auto at = g.position(k, i); at.rank == r) part[static_cast<std::size_t>(at.offset)] = value(k, i);
  return part;
}
// All chunks of all gradients of one rank, (N, part), padded with zeros.
template <int N>
numbers gradients_of(int rank) {
  constexpr const auto& g = layout<N>;
  numbers all(static_cast<std::size_t>(g.scatter_input()));
  for (int k = 0; k < count; ++k)
    for (std::int64_t i = 0; i < g.entries[k].numel(); ++i)
      all[static_cast<std::size_t>(g.gathered(k, i))] = gradient(rank, k, i);
  return all;
}
// A rank's views of the scattered gradients: `rows` at each entry's offset, zeros after them.
template <int N>
void check_views(const auto& part, int r, const auto& wanted) {
  constexpr const auto& g = layout<N>;
  for (int k = 0; k < count; ++k) {
    const sw::flat_entry& e = g.entries[k];
    const sw::interval mine = g.rows_of(k, r);
    for (std::int64_t i = 0; i < e.padded(); ++i) {
      const double have = part[static_cast<std::size_t>(e.offset + i)];
      CHECK(have == (i < mine.size * e.row ? wanted(k, mine.begin * e.row + i) : 0));
    }
  }
}

template <int N>
void check() {
  using mesh = sw::mesh<rows<N>>;
  sw::launch<mesh>([](auto& rank) {
    constexpr const auto& g = layout<N>;
    sw::eager on(rank);
    const int r = rank.index();
    using flat = sw::dtensor_of<double, sw::shape<g.gather_output()>, mesh, sw::shard<0>>;
    const auto whole = flat::from_local(on, part_of<N>(r)).full_tensor();
    const auto gathered = whole.to_local().data;
    for (int k = 0; k < count; ++k)
      for (std::int64_t i = 0; i < g.entries[k].numel(); ++i)
        CHECK(gathered[static_cast<std::size_t>(g.gathered(k, i))] == value(k, i));
    // and a parameter's buffer, (ranks, padded), begins with the parameter
    for (int k = 0; k < count; ++k) {
      const sw::flat_entry& e = g.entries[k];
      numbers buffer;
      for (int q = 0; q < N; ++q)
        for (std::int64_t i = 0; i < e.padded(); ++i)
          buffer.push_back(gathered[static_cast<std::size_t>(q * g.part + e.offset + i)]);
      REQUIRE(static_cast<std::int64_t>(buffer.size()) >= e.numel());
      for (std::int64_t i = 0; i < e.numel(); ++i) CHECK(buffer[static_cast<std::size_t>(i)] == value(k, i));
    }
    using summands = sw::dtensor_of<double, sw::shape<N, g.part>, mesh, sw::partial<>>;
    const auto scattered = sw::redistribute<rows<N>, sw::shard<0>>(summands::from_local(on, gradients_of<N>(r)));
    const auto part = scattered.to_local();
    REQUIRE(part.layout.numel() == g.scatter_output());
    check_views<N>(part.data, r, [](int k, std::int64_t i) {
      double sum = 0;
      for (int q = 0; q < N; ++q) sum += gradient(q, k, i);
      return sum;
    });
  });
}

}  // namespace

TEST_CASE("flat group: gathered and scattered on 1, 2, 3, 4 and 8 ranks") {
  check<1>();
  check<2>();
  check<3>();
  check<4>();
  check<8>();
}

TEST_CASE("flat group: scattered over one axis and averaged over both") {
  using mesh = sw::mesh<replica, rows<2>>;
  sw::launch<mesh>([](auto& rank) {
    constexpr const auto& g = layout<2>;
    sw::eager on(rank);
    using summands = sw::dtensor_of<double, sw::shape<2, g.part>, mesh, Avg, Avg>;
    const auto mine = summands::from_local(on, gradients_of<2>(rank.index()));
    rank.reset_counts();
    const auto part = sw::redistribute<replica, sw::replicate>(sw::redistribute<rows<2>, sw::shard<0>>(mine));
    CHECK(rank.bytes_written(1) == 8 * g.part);  // the scatter first: the replicas exchange parts only
    CHECK(rank.bytes_written(0) == 8 * g.part);
    check_views<2>(part.to_local().data, rank.coordinate(1), [](int k, std::int64_t i) {
      return (gradient(0, k, i) + gradient(1, k, i) + gradient(2, k, i) + gradient(3, k, i)) / 4;
    });
  });
}

TEST_CASE("flat group: for random groups every element has one place, within its rank's rows") {
  std::uint64_t state = 1;
  const auto draw = [&](std::uint64_t below) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::int64_t>((state >> 33) % below);
  };
  for (int round = 0; round < 400; ++round)
    for (const int ranks : {1, 2, 3, 4, 8}) {
      sw::flat_group<12> g(ranks);
      const std::int64_t n = 1 + draw(12);
      for (std::int64_t k = 0; k < n; ++k) g.add(draw(20), draw(6));
      std::vector<int> taken(static_cast<std::size_t>(g.gather_output()));
      std::int64_t elements = 0, padding = 0;
      bool good = true;
      for (int k = 0; k < g.entries.size(); ++k) {
        const sw::flat_entry& e = g.entries[k];
        good = good && e.offset == (k == 0 ? 0 : g.entries[k - 1].offset + g.entries[k - 1].padded());
        elements += e.numel();
        for (std::int64_t i = 0; i < e.numel(); ++i) {
          const sw::flat_position at = g.position(k, i);
          const sw::interval mine = g.rows_of(k, at.rank);
          good = good && i / e.row >= mine.begin && i / e.row < mine.begin + mine.size;
          good = good && at.offset - e.offset == i - mine.begin * e.row;
          good = good && ++taken[static_cast<std::size_t>(g.gathered(k, i))] == 1;
        }
      }
      for (int r = 0; r < ranks; ++r) padding += g.padding(r);
      CHECK(good);
      CHECK(g.gather_output() == elements + padding);
    }
}
