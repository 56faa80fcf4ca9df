// SPDX-License-Identifier: Apache-2.0
// flat_group: several parameters, each split by rows over the ranks of one axis, as one buffer that one collective moves.
#pragma once

#include <shardwise/support/static_vector.hpp>
#include <shardwise/vocabulary/spec.hpp>

namespace shardwise::inline v0_1 {

// One parameter of a group. All ranks give it equal storage, that of the first chunk of rows; what the last ranks lack is
// padding at the tail of theirs. Sizes and offsets are in elements.
struct flat_entry {
  std::int64_t rows = 0;    // extent of dim 0
  std::int64_t row = 0;     // elements of a row
  std::int64_t chunk = 0;   // rows that a rank has storage for: ceil(rows / ranks)
  std::int64_t offset = 0;  // of that storage in a rank's part

  constexpr std::int64_t numel() const { return rows * row; }
  constexpr std::int64_t padded() const { return chunk * row; }  // of one rank
};

// Where an element is: on which rank, and where in its part.
struct flat_position {
  int rank = 0;
  std::int64_t offset = 0;

  constexpr bool operator==(const flat_position&) const = default;
};

// The layout of a group over `ranks` ranks. A rank's part holds its padded chunk of each parameter, in the order in which
// they were added. A gather makes every part into (ranks, part); a gradient's reduce-scatter takes (ranks, part), that is
// each rank's chunks of all gradients side by side, and leaves a part of sums. Law: chunks are disjoint, and every element
// of every parameter is at one position.
template <int Capacity>
struct flat_group {
  int ranks = 1;
  static_vector<flat_entry, Capacity> entries;
  std::int64_t part = 0;

  constexpr explicit flat_group(int n) : ranks(n) {}

  // Rows of `row` elements each; more parameters than Capacity do not compile, or throw.
  constexpr void add(std::int64_t rows, std::int64_t row) {
    const flat_entry e{rows, row, chunk_size(rows, 1, ranks), part};
    entries.push_back(e);
    part += e.padded();
  }
  // A parameter as the rank at coordinate `c` of the other axes holds it: those split it before this group does.
  constexpr void add(const spec& s, const int* c) {
    std::int64_t row = 1;
    for (int d = 1; d < s.rank; ++d) row *= local_interval(s, d, c).size;
    add(s.rank == 0 ? 1 : local_interval(s, 0, c).size, row);
  }

  constexpr std::int64_t gather_input() const { return part; }
  constexpr std::int64_t gather_output() const { return part * ranks; }
  constexpr std::int64_t scatter_input() const { return part * ranks; }
  constexpr std::int64_t scatter_output() const { return part; }

  // The rows of parameter k that rank r holds, without padding. A rank without any begins at the last one's end.
  constexpr interval rows_of(int k, int r) const { return split({0, entries[k].rows}, 1, ranks, r); }
  constexpr std::int64_t padding(int r) const {
    std::int64_t own = 0;
    for (int k = 0; k < entries.size(); ++k) own += rows_of(k, r).size * entries[k].row;
    return part - own;
  }
  // Of element i, row-major, of parameter k.
  constexpr flat_position position(int k, std::int64_t i) const {
    const flat_entry& e = entries[k];
    const std::int64_t rank = i / e.padded();
    return {static_cast<int>(rank), e.offset + i % e.padded()};
  }
  // Where the gather's output, or the scatter's input, has it.
  constexpr std::int64_t gathered(int k, std::int64_t i) const {
    const flat_position at = position(k, i);
    return at.rank * part + at.offset;
  }
};

// --- gradients: who averages ----------------------------------------------------------------------------------------

// A sum over `ranks` that is divided in two steps, so that neither the summands of a narrow type nor their sum overflow:
// before the sum by about its root, a power of two, after it by the rest. Element types that need no such care are averaged
// by the collective. Over (replicate, shard) axes the scatter divides over one and the all-reduce over the other; together
// that is the average over all ranks.
struct split_average {
  int before = 1;
  double after = 1;
};
constexpr split_average average_over(int ranks) {
  int f = 1;
  while (ranks % f == 0 && ranks / f > f) f *= 2;
  return {f, static_cast<double>(ranks) / f};
}

// --- what happens to gathered parameters after the forward pass ------------------------------------------------------

enum class reshard : std::uint8_t {
  never,      // they stay whole until the backward pass has used them
  fully,      // each rank keeps its part; the backward pass gathers over the whole axis
  to_groups,  // each rank keeps a larger part; the backward pass gathers within groups of neighbours
};

struct reshard_setting {
  finding error;
  reshard kind = reshard::fully;
  int groups = 1, group = 1;  // groups of so many neighbouring ranks: the axis as (groups, group)
};

// For parameters over `ranks` ranks, to be kept over k of them: 1 is never, all of them is fully.
constexpr reshard_setting reshard_over_ranks(int k, int ranks) {
  if (k < 1 || ranks % k != 0) return {{problem::fsdp_factor, -1, -1, -1, k, ranks}};
  return {{}, k == 1 ? reshard::never : k == ranks ? reshard::fully : reshard::to_groups, ranks / k, k};
}

// The same for an axis, as a type: reshard_over<shard_axis, 2>::value; no factor of its size does not compile.
template <class Axis, int K>
struct reshard_over {
  static constexpr reshard_setting value = reshard_over_ranks(K, Axis::size);
  static_assert(raise_finding<value.error, void, Axis, reshard_over>::ok);
};

}  // namespace shardwise::inline v0_1
