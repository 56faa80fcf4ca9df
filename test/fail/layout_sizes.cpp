// SPDX-License-Identifier: Apache-2.0
// The layout pass is to decide by a batch that is larger than any the program takes.
// expect: optimize_layout: expected_sizes names a run-time size that no run of the program has
// expect(types): have<32(LL?)?>
// expect(text): expected: 32; bound: 16; size: 0
#include <shardwise/more_functions.hpp>
#include <shardwise/pass/layout/layout.hpp>
#include <shardwise/shardwise.hpp>

namespace sw = shardwise;

struct one : sw::axis<1> {};
struct blurred {
  constexpr auto operator()(const auto& x, const auto& w) const { return sw::conv2d(x, w); }
};
template <std::int64_t N>
using expecting = sw::optimize_layout<sw::layout_mode::automatic, sw::weight_storage::as_declared, sw::whole_graph,
                                      sw::linked_convolutions, sw::expected_sizes<N>>;
template <std::int64_t N>
using step = sw::function_step<
    blurred, sw::mesh<one>,
    sw::inputs<sw::input_tensor<float, sw::shape<sw::dyn<16>, 3, 8, 8>>, sw::input_tensor<float, sw::shape<4, 3, 3, 3>>>,
    sw::pipeline<expecting<N>>>;

#ifdef SHARDWISE_FAIL
using program = step<32>;
#else
using program = step<8>;
#endif
static_assert(program::program.node_count > 0);
