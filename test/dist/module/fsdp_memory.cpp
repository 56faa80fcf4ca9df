// SPDX-License-Identifier: Apache-2.0
// The memory of fully sharded steps, measured from outside: ranks train in arenas full of NaNs, between canaries. No byte is written
// that peak_bytes does not count, nearly all that it counts are written, and what was there before is not read.
#include <doctest/doctest.h>

#include <algorithm>
#include <fsdp_memory.hpp>
#include <outside_memory.hpp>
#include <type_traits>
#include <vector>

namespace {

using namespace test;
using namespace test::fsdp;

constexpr int steps = 2;

// Losses of one rank; `more` goes to its executor.
template <class Step, class... More>
std::vector<float> trained(auto& rank, More&&... more) {
  sw::executor<Step, std::remove_reference_t<decltype(rank)>> run(rank, more...);
  run.initialise(7);
  std::vector<std::int32_t> tokens(deep_batch * twelve_layers::time), targets(tokens), positions(twelve_layers::time);
  for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<std::int32_t>(i);
  std::vector<float> losses;
  for (int s = 1; s <= steps; ++s) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = static_cast<std::int32_t>((i * 37 + static_cast<std::size_t>(s) * 11) % twelve_layers::vocabulary);
      targets[i] = static_cast<std::int32_t>((i * 53 + 5) % twelve_layers::vocabulary);
    }
    run.set_input(0, tokens);
    run.set_input(1, targets);
    run.set_input(2, positions);
    sw::step_env env;
    env.step = s;
    env.lr = 1e-3;
    run.run(env);
    losses.push_back(run.loss());
  }
  rank.barrier();  // until then others may read this rank's blocks
  return losses;
}

template <class Step>
void check_from_outside() {
  using mesh = typename Step::mesh_type;
  constexpr auto peak = static_cast<std::size_t>(Step::peak_bytes);
  std::vector<std::vector<float>> plain(mesh::size), poisoned(mesh::size);
  sw::launch<mesh>([&](auto& rank) { plain[static_cast<std::size_t>(rank.index())] = trained<Step>(rank); });

  std::vector<std::vector<char>> written(mesh::size, std::vector<char>(peak));
  std::vector<std::int64_t> highest(mesh::size, -1);
  std::vector<char> intact(mesh::size, 1);
  for (const std::uint32_t pattern : nan_patterns) {
    sw::launch<mesh>([&](auto& rank) {
      const auto r = static_cast<std::size_t>(rank.index());
      const outside_memory memory(Step::peak_bytes, pattern);
      poisoned[r] = trained<Step>(rank, memory.arena());
      highest[r] = std::max(highest[r], memory.highest_touched());
      intact[r] = intact[r] && memory.intact_before();
      memory.mark(written[r]);
    });
    CHECK(poisoned == plain);  // a NaN that was read is no loss
  }
  CHECK(highest[0] == Step::peak_bytes - 1);  // its shards are the largest
  const auto touched = std::count(written[0].begin(), written[0].end(), 1);
  MESSAGE(mesh::size << " ranks: " << touched << " of " << peak << " bytes written");
  CHECK(static_cast<double>(touched) > 0.95 * static_cast<double>(peak));
  for (std::size_t r = 0; r < mesh::size; ++r) {
    CHECK(highest[r] < Step::peak_bytes);
    CHECK(intact[r] == 1);
  }
}

TEST_CASE("fully_shard: bytes that steps write, 1 rank") { check_from_outside<deep_in_shards<1>>(); }
TEST_CASE("fully_shard: bytes that steps write, 2 ranks") { check_from_outside<deep_in_shards<2>>(); }
TEST_CASE("fully_shard: bytes that steps write, 4 ranks") { check_from_outside<deep_in_shards<4>>(); }
TEST_CASE("fully_shard: bytes that steps write, 8 ranks") { check_from_outside<deep_in_shards<8>>(); }
TEST_CASE("fully_shard: bytes that steps write, 3 ranks, which divide neither rows nor batch") {
  check_from_outside<deep_in_shards<3>>();
}

}  // namespace
