// SPDX-License-Identifier: Apache-2.0
// A pass that keeps collectives may leave out one that nobody reads, as writing a graph anew does; none that is read.
#include <shardwise/shardwise.hpp>
#include <shardwise/pass/framework/pass.hpp>
#include <shardwise/pass/framework/sweep.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>
#include <tuple>

namespace {

namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
using in = sw::input_tensor<float, sw::shape<6, 4>, sw::on<dp, sw::shard<0>>>;

// The gathered tensor is read for its extents alone.
struct drawn {
  constexpr auto operator()(const auto& x) const {
    const auto gathered = sw::redistribute<dp, sw::replicate>(x);
    const auto sum = sw::redistribute<dp, sw::replicate>(sw::sum(x));
    return std::tuple{sw::randn_like(gathered), sum};
  }
};
using plain = sw::function_step<drawn, mesh, sw::inputs<in>>;
using joined = sw::function_step<drawn, mesh, sw::inputs<in>, sw::pipeline<sw::join_norm_adjoints>>;
static_assert(plain::traffic.collectives == 1 && joined::traffic.collectives == 1);
static_assert(plain::traffic.order_hash == joined::traffic.order_hash);

constexpr auto traced = sw::detail::function_graph<drawn, mesh, sw::inputs<in>, sw::pipeline<>>::trace_type::value;
constexpr auto without_dead = [] {
  auto g = traced;
  sw::passes::remove_dead(g);
  return g;
}();
constexpr auto without_any = [] {  // the sum's all-reduce, too
  auto g = without_dead;
  for (int k = 0; k < g.output_count; ++k)
    if (g.nodes[g.outputs[k]].op == sw::op_code::redistribute) g.outputs[k] = g.nodes[g.outputs[k]].in[0];
  sw::passes::remove_dead(g);
  return g;
}();
static_assert(sw::passes::order_of(traced).collectives == 2 && sw::passes::order_of(without_dead).collectives == 1 &&
              sw::passes::order_of(without_any).collectives == 0);
static_assert(sw::kept::collectives::holds(traced, without_dead));
static_assert(!sw::kept::collectives::holds(traced, without_any));

// Nor may one that is read come in the place of one that nobody reads, though they are equal: the lists of all are the same.
struct two_sums {
  constexpr auto operator()(const auto& x) const {
    const auto local = sw::sum(x);
    const auto unread = sw::redistribute<dp, sw::replicate>(local);
    const auto read = sw::redistribute<dp, sw::replicate>(sw::scale(local, 2.0));
    return std::tuple{read, sw::detach(read), sw::randn_like(unread)};
  }
};
struct graph_of_sums {
  static constexpr const auto& value =
      sw::detail::function_graph<two_sums, mesh, sw::inputs<in>, sw::pipeline<>>::trace_type::value;
};
struct both_are_read {
  static constexpr auto value = [] {
    auto g = graph_of_sums::value;
    for (int i = 0; i < g.node_count; ++i)
      if (g.nodes[i].op == sw::op_code::redistribute) {
        g.outputs[1] = i;
        break;
      }
    return g;
  }();
};
constexpr auto all_of_sums = sw::passes::order_of(graph_of_sums::value);
static_assert(all_of_sums.collectives == 2 && all_of_sums == sw::passes::order_of(both_are_read::value));
static_assert(sw::detail::is_kept<sw::kept::collectives, graph_of_sums, graph_of_sums>);
static_assert(!sw::kept::collectives::holds(graph_of_sums::value, both_are_read::value));
static_assert(!sw::detail::is_kept<sw::kept::collectives, graph_of_sums, both_are_read>);

}  // namespace
