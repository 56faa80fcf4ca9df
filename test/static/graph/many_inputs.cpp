// SPDX-License-Identifier: Apache-2.0
// Inputs beyond the sixty-fourth have gradients, and only those that are asked for.
#include <shardwise/module/function.hpp>
#include <shardwise/runtime/host/backend.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace {

namespace sw = shardwise;

struct line : sw::axis<2> {};
using one = sw::input_tensor<float, sw::shape<2>>;
struct f {
  constexpr auto operator()(const auto& x, const auto&... more) const { return (x * ... * more); }
};
template <class Indices>
struct inputs_of;
template <std::size_t... I>
struct inputs_of<std::index_sequence<I...>> {
  template <std::size_t>
  struct each {
    using type = one;
  };
  using type = sw::inputs<typename each<I>::type...>;
};
using many = inputs_of<std::make_index_sequence<70>>::type;
using trace = sw::detail::gradient_trace<f, sw::mesh<line>, many, sw::wrt<65>>;
static_assert(trace::wants_input(65) && !trace::wants_input(1) && !trace::wants_input(64));
using step = sw::gradient_step<f, sw::mesh<line>, many, sw::wrt<65>>;
static_assert(step::program.output_count == 2);

}  // namespace
