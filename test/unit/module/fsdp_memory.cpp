// SPDX-License-Identifier: Apache-2.0
// The memory of fully sharded steps against the formula of the model's numbers, on 1, 2, 4 and 8 ranks.
#include <doctest/doctest.h>

#include <fsdp_memory.hpp>
#include <shardwise/pass/communication/prefetch.hpp>
#include <type_traits>

namespace {

using namespace test;
using namespace test::fsdp;

template <class Step>
constexpr std::int64_t persistent_bytes = Step::memory::value.persistent_end - Step::memory::value.workspace;

// Leaves: shards of parameters and both moments, and int32 inputs. Each is rounded up to 64 bytes, three times 150 tensors at most.
template <int Ranks>
constexpr bool keeps_shards() {
  using formula = deep_formula<Ranks>;
  constexpr std::int64_t inputs = (2 * formula::tokens + twelve_layers::time) * 4,
                         kept = persistent_bytes<deep_in_shards<Ranks>>;
  return kept >= formula::parts(3) + inputs && kept <= formula::parts(3) + inputs + 3 * 150 * 64;
}
static_assert(keeps_shards<1>() && keeps_shards<2>() && keeps_shards<4>() && keeps_shards<8>());

// No factor: kernels' scratch and what alignment costs, of which the formula knows nothing, are less than what it counts that is not
// there at a time.
template <int Ranks>
constexpr bool within_promise = deep_in_shards<Ranks>::peak_bytes <= deep_formula<Ranks>::promised;
static_assert(within_promise<1> && within_promise<2> && within_promise<4> && within_promise<8>);

// And the formula promises nothing that is not needed: what is there at a time is met within a tenth.
template <int Ranks>
constexpr bool as_expected() {
  constexpr std::int64_t peak = deep_in_shards<Ranks>::peak_bytes, formula = deep_formula<Ranks>::at_once;
  return 10 * peak >= 9 * formula && 20 * peak <= 21 * formula;
}
static_assert(as_expected<1>() && as_expected<2>() && as_expected<4>() && as_expected<8>());

// A second layer is gathered ahead.
template <int Ranks>
using ahead = sw::train_step<transformer<twelve_layers>::model, language_task<twelve_layers, deep_batch, dp<Ranks>>,
                             sw::plan<sw::fully_shard<dp<Ranks>>, sw::at<"layers.*", sw::fully_shard<dp<Ranks>>>>,
                             sw::mesh<dp<Ranks>>, sw::adam<>, sw::pipeline<sw::prefetch<1>>>;
static_assert(ahead<4>::peak_bytes > deep_in_shards<4>::peak_bytes);
static_assert(ahead<4>::peak_bytes <= deep_formula<4>::promised);

TEST_CASE("fully_shard: memory falls as the formula says") {
  const auto say = []<int Ranks>(std::integral_constant<int, Ranks>) {
    using step = deep_in_shards<Ranks>;
    using formula = deep_formula<Ranks>;
    MESSAGE(Ranks << " ranks: " << persistent_bytes<step> << " bytes throughout, " << step::peak_bytes
                  << " at most; promised " << formula::parts(3) << " and " << formula::promised);
    // Each halving of the shards takes off what the formula says, within a tenth.
    if constexpr (Ranks > 1) {
      const double fall = static_cast<double>(deep_in_shards<Ranks / 2>::peak_bytes - step::peak_bytes);
      const double promised = static_cast<double>(deep_formula<Ranks / 2>::at_once - formula::at_once);
      CHECK(fall > 0.9 * promised);
      CHECK(fall < 1.1 * promised);
    }
  };
  say(std::integral_constant<int, 1>{});
  say(std::integral_constant<int, 2>{});
  say(std::integral_constant<int, 4>{});
  say(std::integral_constant<int, 8>{});
}

}  // namespace
