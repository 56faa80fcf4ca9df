// SPDX-License-Identifier: Apache-2.0
// The arena of a step, seen from outside: its highest byte, its canaries, poisoned dead buffers, and no overlaps.
#include <doctest/doctest.h>

#include <gpt.hpp>
#include <outside_memory.hpp>
#include <vector>

namespace {

namespace sw = shardwise;
using namespace test::gpt;

template <class Step>
void check_peak() {
  using mesh = typename Step::mesh_type;
  std::vector<std::int64_t> highest(mesh::size, -1);
  std::vector<char> intact(mesh::size, 1);
  for (const std::uint32_t pattern : test::nan_patterns)
    sw::launch<mesh>([&](auto& rank) {
      const test::outside_memory memory(Step::peak_bytes, pattern);
      {
        sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(rank, memory.arena());
        ex.initialise(7);
        for (int s = 1; s <= 2; ++s) {
          feed(ex, s);
          ex.run(environment(s));
        }
        rank.barrier();
      }
      const auto r = static_cast<std::size_t>(rank.index());
      highest[r] = std::max(highest[r], memory.highest_touched());
      intact[r] = intact[r] && memory.intact_before();
    });
  CHECK(highest[0] == Step::peak_bytes - 1);
  for (std::size_t r = 0; r < mesh::size; ++r) {
    CHECK(highest[r] < Step::peak_bytes);
    CHECK(intact[r] == 1);
  }
}

TEST_CASE("the highest byte a step touches is peak_bytes - 1, one rank") {
  check_peak<step<float, 1, 1>>();
  check_peak<step<double, 1, 1>>();
}
TEST_CASE("the highest byte a step touches is peak_bytes - 1, 2 x 2 ranks") { check_peak<step<float, 2, 2>>(); }
TEST_CASE("the highest byte a step touches is peak_bytes - 1, three data-parallel ranks") {
  check_peak<step<double, 3, 1>>();
}
TEST_CASE("the highest byte a step touches is peak_bytes - 1, three tensor-parallel ranks") {
  check_peak<step<float, 1, 3>>();
}
TEST_CASE("the highest byte a sequence-parallel step touches is peak_bytes - 1") {
  check_peak<step<double, 2, 3, sequence_parallel, dropout_sizes>>();
}

// --- poison ---------------------------------------------------------------------------------------------------------

// Every buffer becomes NaN when it dies; whoever reads it afterwards changes the result.
template <class Step>
void check_poison() {
  const auto plain = train<Step>(4), poisoned = train<Step>(4, sw::executor_checks::poison);
  CHECK(plain.losses == poisoned.losses);
  CHECK(plain.parameters == poisoned.parameters);
}

TEST_CASE("poisoning dead buffers changes no bit, one rank") { check_poison<step<float, 1, 1>>(); }
TEST_CASE("poisoning dead buffers changes no bit, 2 x 2 ranks") { check_poison<step<float, 2, 2>>(); }
TEST_CASE("poisoning dead buffers changes no bit, uneven meshes") {
  check_poison<step<double, 3, 1>>();
  check_poison<step<float, 1, 3>>();
  check_poison<step<double, 2, 3, sequence_parallel, dropout_sizes>>();
}

// --- overlaps -------------------------------------------------------------------------------------------------------

// Lifetimes from the graph alone: a buffer lives from the node that makes it to the last one that reads it or a view of
// it; what belongs to the caller lives always.
template <class Step>
void check_overlaps() {
  using mesh = typename Step::mesh_type;
  const auto& g = Step::program;
  const auto& plan = Step::memory::value;
  const int n = g.node_count;
  std::vector<int> home(static_cast<std::size_t>(n)), first(home), last(home);
  for (int i = 0; i < n; ++i) {
    const sw::node& x = g.nodes[i];
    const auto at = static_cast<std::size_t>(i);
    home[at] = sw::has_results(g, i) ? -1 : i;  // it has no storage; its results' is taken where it stands
    if (sw::is_update(x.op) || (x.inputs > 0 && sw::is_view(x, g.spec_of(x.in[0]), g.spec_of(i))))
      home[at] = home[static_cast<std::size_t>(x.in[0])];
    const bool leaf = sw::is_leaf(x.op);
    first[at] = leaf ? 0 : x.op == sw::op_code::getitem ? x.in[0] : i;
    last[at] = leaf ? n : i;
    for (int k = 0; k < x.inputs; ++k) {
      if (home[static_cast<std::size_t>(x.in[k])] < 0) continue;
      int& l = last[static_cast<std::size_t>(home[static_cast<std::size_t>(x.in[k])])];
      l = std::max(l, i);
    }
  }
  for (int i = 0; i < g.output_count; ++i) last[static_cast<std::size_t>(home[static_cast<std::size_t>(g.outputs[i])])] = n;

  int buffers = 0, overlaps = 0, overwritten = 0, too_small = 0, outside = 0, unaligned = 0;
  std::int64_t top = 0;
  std::vector<std::int64_t> size(static_cast<std::size_t>(n));
  // A pointwise result may take the very place of an operand that it is the last to read.
  auto overwrites = [&](int i, int j) {
    const sw::node& x = g.nodes[i];
    bool operand = false;
    for (int k = 0; k < x.inputs; ++k)
      operand = operand || (home[static_cast<std::size_t>(x.in[k])] == j && g.nodes[x.in[k]].spec == x.spec);
    return operand && (sw::rules::is_pointwise(x.op) || x.op == sw::op_code::nll_dx) &&
           last[static_cast<std::size_t>(j)] == i && plan.offset[i] == plan.offset[j] &&
           size[static_cast<std::size_t>(i)] == size[static_cast<std::size_t>(j)];
  };
  for (int i = 0; i < n; ++i) {
    if (home[static_cast<std::size_t>(i)] != i) continue;
    std::int64_t& bytes = size[static_cast<std::size_t>(i)];
    for (int r = 0; r < mesh::size; ++r) {
      const auto c = mesh::coordinate(r);
      bytes = std::max(bytes,
                       sw::local_numel(g.spec_of(i), c.data()) * static_cast<std::int64_t>(sw::size_of(g.spec_of(i).type)));
    }
    ++buffers;
    too_small += plan.bytes[plan.owner[i]] < bytes ? 1 : 0;
    outside += plan.offset[i] < plan.workspace || plan.offset[i] + bytes > Step::peak_bytes ? 1 : 0;
    unaligned += plan.offset[i] % 64 != 0 ? 1 : 0;
    top = std::max(top, plan.offset[i] + bytes);
    for (int j = 0; j < i; ++j) {
      if (home[static_cast<std::size_t>(j)] != j) continue;
      const bool together = first[static_cast<std::size_t>(i)] <= last[static_cast<std::size_t>(j)] &&
                            first[static_cast<std::size_t>(j)] <= last[static_cast<std::size_t>(i)];
      const bool crossing =
          plan.offset[i] < plan.offset[j] + size[static_cast<std::size_t>(j)] && plan.offset[j] < plan.offset[i] + bytes;
      if (!together || !crossing) continue;
      (overwrites(i, j) ? overwritten : overlaps) += 1;
    }
  }
  CHECK(buffers > 100);
  CHECK(overwritten > 10);
  CHECK(overlaps == 0);
  CHECK(too_small == 0);
  CHECK(outside == 0);
  CHECK(unaligned == 0);
  CHECK(top == Step::peak_bytes);
}

TEST_CASE("two live buffers never overlap") {
  check_overlaps<step<float, 1, 1>>();
  check_overlaps<step<float, 2, 2>>();
  check_overlaps<step<double, 3, 1>>();
  check_overlaps<step<float, 1, 3>>();
  check_overlaps<step<double, 2, 3, sequence_parallel, dropout_sizes>>();
}

}  // namespace
