// SPDX-License-Identifier: Apache-2.0
// Bytes and the order of collectives count however many distinct ones a program has.
#include <shardwise/module/function.hpp>
#include <shardwise/runtime/host/backend.hpp>
#include <shardwise/vocabulary/axis.hpp>

#include <utility>

namespace {

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;

// All-reduces of 1 to 200 numbers, and again the first of them.
template <bool Again>
struct many {
  template <std::size_t... K>
  static constexpr auto sums(const auto& x, std::index_sequence<K...>) {
    return (sw::sum(sw::redistribute<tp, sw::replicate>(sw::slice<0, 0, static_cast<std::int64_t>(K) + 1>(x))) + ...);
  }
  constexpr auto operator()(const auto& x) const {
    const auto all = sums(x, std::make_index_sequence<200>{});
    if constexpr (Again) return all + sw::sum(sw::redistribute<tp, sw::replicate>(sw::slice<0, 0, 1>(x)));
    else return all;
  }
};
template <bool Again>
using program = sw::function_step<many<Again>, mesh, sw::inputs<sw::input_tensor<double, sw::shape<200>, sw::partial<>>>>;

static_assert(program<false>::traffic.collectives == 200 && program<false>::traffic.count == 200);
static_assert(program<false>::comm_bytes<tp> == 8 * 200 * 201 / 2);
// an even all-reduce of n numbers sends n of them, one of a single number: one rank sends it, the other sends the sum
static_assert(program<true>::traffic.collectives == 201 && program<true>::traffic.count == 200);
static_assert(program<true>::comm_bytes<tp> == 8 * (200 * 201 / 2 + 1));
static_assert(program<true>::traffic.order_hash != program<false>::traffic.order_hash);

}  // namespace
