// SPDX-License-Identifier: Apache-2.0
// A rule is a table of single-mesh-axis rows; n axes are n independent look-ups. Matching, and the outcome of a rule.
#pragma once

#include <initializer_list>

#include <shardwise/propagation/attributes.hpp>
#include <shardwise/support/static_vector.hpp>
#include <shardwise/vocabulary/spec.hpp>

namespace shardwise::inline v0_1 {

// The shape of an operation's result (placements filled in later), or why there is none.
struct outcome {
  finding error;
  spec out;
};

constexpr outcome fail(problem p, const spec& fallback, int operand = -1, int dim = -1, long long have = 0,
                       long long want = 0, int axis = -1) {
  return {{p, operand, dim, axis, have, want}, fallback};
}

// A placement in a row, in one word: a table has up to 200 of them and is made for each application of a rule, and clang charges
// a constant for every member. From the lowest bit: kind and the block's run-time sizes (4 bits each), op, dim, factor - 1 (8 bits
// each), and block - 1 of a shard or order of another (32 bits; of overlapping shards 16 of each). So zero is replicate.
struct row_entry {
  std::uint64_t bits;

  row_entry() = default;
  constexpr bool operator==(const row_entry&) const = default;
  constexpr bool operator==(const placement& p) const { return *this == row_entry(p); }
  constexpr row_entry(const placement& p)
      : bits(static_cast<std::uint64_t>(p.kind) | static_cast<std::uint64_t>(p.block_sizes) << 4 |
             static_cast<std::uint64_t>(p.op) << 8 | static_cast<std::uint64_t>(static_cast<std::uint8_t>(p.dim)) << 16 |
             static_cast<std::uint64_t>(static_cast<std::uint8_t>(p.factor - 1)) << 24 |
             (p.overlaps()   ? static_cast<std::uint64_t>(p.block - 1) << 32 | static_cast<std::uint64_t>(p.more) << 48
              : p.is_shard() ? static_cast<std::uint64_t>(static_cast<std::uint32_t>(p.block - 1)) << 32
                             : static_cast<std::uint64_t>(p.more) << 32)) {}
  constexpr operator placement() const {
    const auto number = static_cast<std::uint32_t>(bits >> 32);
    const bool overlaps = kind() >= placement_kind::windows;
    return {kind(),
            static_cast<reduction>(bits >> 8 & 255),
            static_cast<std::int8_t>(dim()),
            static_cast<std::uint8_t>((bits >> 24 & 255) + 1),
            static_cast<std::int32_t>(overlaps     ? (number & 0xffff) + 1
                                      : is_shard() ? number + 1
                                                   : 1),
            static_cast<std::uint16_t>(bits >> 4 & 15),
            static_cast<std::uint16_t>(overlaps     ? number >> 16
                                       : is_shard() ? 0
                                                    : number)};
  }
  constexpr placement_kind kind() const { return static_cast<placement_kind>(bits & 15); }
  constexpr int dim() const { return static_cast<std::int8_t>(bits >> 16 & 255); }
  constexpr bool is_shard() const { return kind() == placement_kind::shard; }
  constexpr bool is_shard(int d) const { return is_shard() && dim() == d; }
  constexpr bool is_partial() const { return kind() == placement_kind::partial; }
  // Rows speak of its other fields, too.
  constexpr bool is_valued() const { return kind() >= placement_kind::partial; }
  constexpr bool is_reduced() const { return kind() == placement_kind::reduced; }
  constexpr bool is_whole() const { return kind() == placement_kind::replicate || is_reduced(); }
};
static_assert(placement(row_entry{}) == placement{} && row_entry(placement{}).bits == 0);

// One row: where the operands must be on one mesh axis, and where the result then is.
struct rule_row {
  row_entry in[max_inputs];
  row_entry out;
};

using rule_rows = static_vector<rule_row, 24>;

// A row of an operation with several results: {{operands...}, {results...}}.
struct results_row {
  placement in[max_inputs];
  placement out[max_results];
  int results = 0;  // that it places

  constexpr results_row() = default;
  constexpr results_row(std::initializer_list<placement> operands, std::initializer_list<placement> placed) {
    int k = 0;
    for (const placement& p : operands)
      if (k < max_inputs) in[k++] = p;
    for (const placement& p : placed) {  // what is too many is counted: `results` then says that the row is wrong
      if (results < max_results) out[results] = p;
      ++results;
    }
  }
};
using results_rows = static_vector<results_row, 24>;

constexpr rule_rows rows_of(const results_rows& all, int result) {
  rule_rows t;
  for (int r = 0; r < all.count; ++r) {
    rule_row one{};
    for (int k = 0; k < max_inputs; ++k) one.in[k] = all.item[r].in[k];
    one.out = all.item[r].out[result];
    t.push_back(one);
  }
  return t;
}

namespace rows {
inline constexpr placement R = replicate_value();
inline constexpr placement U = reduced_value();
inline constexpr placement P = partial_value();
constexpr placement S(int d) { return shard_value(d); }

constexpr rule_row all(placement p, placement out) {
  rule_row r{};
  const row_entry entry = p;
  for (row_entry& i : r.in) i = entry;
  r.out = out;
  return r;
}
}  // namespace rows

struct row_match {
  bool found = false;
  bool split_differs = false;  // a row fits but for the boundaries of the splits
  placement out;
};

// The placement of operand `k` on an axis as rows speak of it: indices have no gradient, so reduced reads as replicate.
constexpr placement as_row_entry(const spec& s, int axis) {
  placement p = s.place[axis];
  if (!is_floating(s.type) && p.is_reduced()) p = replicate_value();
  return p;
}

// First row that fits on `axis`; rows speak of shards by their dim alone. Shards of one row must split alike (block, and
// factor of a strided one), and so does the result where it is sharded.
constexpr row_match match(const rule_rows& table, const spec* in, int n, int axis) {
  row_match m;
  placement have[max_inputs]{};
  for (int k = 0; k < n; ++k) have[k] = as_row_entry(in[k], axis);
  for (int r = 0; r < table.count; ++r) {
    const rule_row& row = table.item[r];
    bool fits = true, same_split = true;
    const placement* split = nullptr;
    for (int k = 0; k < n && fits; ++k) {
      const placement& h = have[k];
      const row_entry& w = row.in[k];
      fits = w.is_shard() ? h.is_shard(w.dim()) : w.is_valued() ? h == placement(w) : h.kind == w.kind();
      if (fits && w.is_shard()) {
        if (!split) split = &h;
        same_split = same_split && split->splits_like(h);
      }
    }
    if (!fits) continue;
    if (!same_split) {
      m.split_differs = true;
      continue;
    }
    m.found = true;
    m.out = row.out;
    if (m.out.is_shard() && split) m.out = split_along(m.out.dim, *split);
    return m;
  }
  return m;
}

}  // namespace shardwise::inline v0_1
