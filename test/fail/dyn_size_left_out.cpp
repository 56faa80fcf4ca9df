// SPDX-License-Identifier: Apache-2.0
// The program's only run-time size is declared as its second.
// expect: step: the numbers of the program's run-time sizes leave one out
#include <shardwise/core.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct doubled {
  constexpr auto operator()(const auto& x) const { return x * 2.f; }
};
#ifdef SHARDWISE_FAIL
inline constexpr std::int64_t rows = sw::dyn<8, 1>;
#else
inline constexpr std::int64_t rows = sw::dyn<8>;
#endif
using step =
    sw::function_step<doubled, sw::mesh<dp>, sw::inputs<sw::input_tensor<float, sw::shape<rows>, sw::on<dp, sw::shard<0>>>>>;
static_assert(step::peak_bytes > 0);
