// SPDX-License-Identifier: Apache-2.0
// Runs as boxes. Law: the boxes of a run lie in the tensor and have its elements and no others, row-major one after the other, in at most 2 dims - 1 boxes.
#include <doctest/doctest.h>

#include <shardwise/io/checkpoint/runs.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

namespace storage = shardwise::storage;
using storage::extents;

// The row-major numbers of a box's elements, in the box's order.
std::vector<std::int64_t> numbers(const shardwise::runtime::layout& box, const extents& shape) {
  std::vector<std::int64_t> all;
  std::vector<std::int64_t> at(shape.size(), 0);
  for (std::int64_t left = box.numel(); left > 0; --left) {
    std::int64_t n = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) n = n * shape[d] + box.origin[d] + at[d];
    all.push_back(n);
    for (std::size_t d = shape.size(); d-- > 0 && ++at[d] == box.ext[d];) at[d] = 0;
  }
  return all;
}

bool law_holds(const extents& shape) {
  const std::int64_t all = storage::elements_in(shape);
  const std::size_t most = shape.empty() ? 1 : 2 * shape.size() - 1;
  bool holds = true;
  for (std::int64_t first = 0; first <= all; ++first)
    for (std::int64_t count = 0; first + count <= all; ++count) {
      std::int64_t next = first;
      std::size_t boxes = 0;
      storage::each_box(shape, first, count, [&](const shardwise::runtime::layout& box, std::int64_t at) {
        holds = holds && at == next - first;
        for (std::size_t d = 0; d < shape.size(); ++d) holds = holds && box.origin[d] + box.ext[d] <= shape[d];
        for (const std::int64_t n : numbers(box, shape)) holds = holds && n == next++;
        ++boxes;
      });
      holds = holds && next == first + count && boxes <= most;
    }
  return holds;
}

TEST_CASE("runs of elements as boxes") {
  for (const extents& shape :
       {extents{}, extents{1}, extents{9}, extents{4, 3}, extents{1, 5}, extents{5, 1}, extents{3, 1, 4}, extents{2, 3, 4},
        extents{1, 1, 1}, extents{2, 2, 3, 2}, extents{0, 3}, extents{3, 0}}) {
    CAPTURE(shape.size());
    CHECK(law_holds(shape));
  }
}

}  // namespace
