// SPDX-License-Identifier: Apache-2.0
// Writes in place as they are traced, and the graphs that functionalise makes of them; programs without writes are as they
// were.
#include <shardwise/graph/functions/mutating_functions.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace {

namespace sw = shardwise;
using sw::op_code;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using rows = sw::input_tensor<float, sw::shape<4, 6>, sw::on<tp, sw::shard<0>>>;
template <class F>
using trace = sw::detail::traced_function<F, mesh, sw::inputs<rows>>;

template <class Graph>
constexpr int count_of(const Graph& g, op_code op) {
  int n = 0;
  for (int i = 0; i < g.node_count; ++i) n += g.nodes[i].op == op ? 1 : 0;
  return n;
}

// One write of a view, one of what it is a view of, read in between.
struct both {
  constexpr auto operator()(const auto& x) const {
    const auto part = sw::narrow<1, 1, 3>(sw::transpose<0, 1>(sw::transpose<0, 1>(x)));
    sw::mul_(part, 2);
    const auto between = sw::relu(x);
    sw::add_(x, between);
    return std::tuple{part, between};
  }
};
constexpr const auto& traced = trace<both>::value;
static_assert(sw::has_mutation(traced) && count_of(traced, op_code::copy_) == 2 && !sw::verify(traced));

using made = sw::apply_pass<sw::functionalise, trace<both>>;
static_assert(!sw::has_mutation(made::value) && !sw::verify(made::value));
static_assert(count_of(made::value, op_code::assign) == 1 && count_of(made::value, op_code::slice_scatter) == 1);
static_assert(made::value.nodes[made::value.outputs[0]].op == op_code::slice);
static_assert(made::value.spec_of(made::value.outputs[0]) == traced.spec_of(traced.outputs[0]));
static_assert(made::value.nodes[made::value.outputs[1]].op == op_code::relu);
static_assert(std::is_same_v<sw::why_not<sw::functionalise, made>, sw::pass_order::twice>);

// Two redistributions with a write between them are two.
struct twice {
  constexpr auto operator()(const auto& x) const {
    const auto before = sw::redistribute<tp, sw::replicate>(x);
    sw::neg_(x);
    return sw::add(before, sw::redistribute<tp, sw::replicate>(x));
  }
};
static_assert(count_of(trace<twice>::value, op_code::redistribute) == 2);

struct pure {
  constexpr auto operator()(const auto& x) const { return sw::relu(x); }
};
static_assert(!sw::has_mutation(trace<pure>::value));
static_assert(std::is_same_v<sw::detail::functional<trace<pure>, false>, trace<pure>>);

}  // namespace
