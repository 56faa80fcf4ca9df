// SPDX-License-Identifier: Apache-2.0
// Attention projections that share one gather: it starts as early as it can and is waited for right before its first use.
#include <doctest/doctest.h>

#include <both_ways.hpp>
#include <shardwise/module/hana.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/waits.hpp>

namespace {

using namespace test;
using sw::op_code;
using sw::transition;

template <int N>
struct tp : sw::axis<N> {};
using numbers = std::vector<double>;

template <class Bound = sw::unbound>
struct fake_attention : sw::module<fake_attention<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(fake_attention, (sw::linear<16, 16, sw::child<Bound, 0>>, wq),
                           (sw::linear<16, 16, sw::child<Bound, 1>>, wk), (sw::linear<16, 16, sw::child<Bound, 2>>, wv),
                           (sw::linear<16, 16, sw::child<Bound, 3>>, wo));
  constexpr auto forward(const auto& x) const { return wo(wq(x) + wk(x) + wv(x)); }
};
template <class Bound = sw::unbound>
struct fake_block : sw::module<fake_block<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(fake_block, (fake_attention<sw::child<Bound, 0>>, attn));
  constexpr auto forward(const auto& x) const { return attn(x); }
};
template <class Bound = sw::unbound>
struct fake_transformer : sw::module<fake_transformer<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(fake_transformer, (fake_block<sw::child<Bound, 0>>, block));
  constexpr auto forward(const auto& x) const { return block(x); }
};
template <class B>
using model = fake_transformer<B>;

using R = sw::replicate;
using S0 = sw::shard<0>;
template <class Axis>
using plan = sw::plan<sw::at<"block.attn", sw::prepare_input<Axis, R, S0>>, sw::at<"block.attn.wq", sw::colwise<Axis>>,
                      sw::at<"block.attn.wk", sw::colwise<Axis>>, sw::at<"block.attn.wv", sw::colwise<Axis>>,
                      sw::at<"block.attn.wo", sw::rowwise<Axis, 1, sw::output<S0>>>>;
template <class Axis, class Placement>
struct task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<40, 16>, sw::on<Axis, Placement>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return m(x); }
};

using mesh = sw::mesh<tp<2>>;
template <class Pipeline>
using forward = sw::forward_step<model, task<tp<2>, S0>, plan<tp<2>>, mesh, Pipeline, double>;
using unscheduled = forward<sw::pipeline<>>;
using single = sw::forward_step<model, task<tp<1>, R>, sw::plan<>, sw::mesh<tp<1>>, sw::pipeline<>, double>;
using scheduled = forward<sw::pipeline<sw::schedule_comm_wait>>;
using reordered = forward<sw::pipeline<sw::reorder_compute_for_overlap<>, sw::sink_waits, sw::raise_comms>>;

// Small integers: sums are exact in any order.
numbers integers(std::int64_t n, int salt) {
  numbers v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<double>((i * 7 + i / 5 + static_cast<std::size_t>(salt) * 3) % 5) - 2;
  return v;
}
void set_parameters(auto& program) {
  REQUIRE(program.parameter_count() == 8);
  for (int i = 0; i < 8; ++i) program.set_parameter(i, integers(i % 2 == 0 ? 256 : 16, i));
}

// The local extents of node i's value on rank 0.
template <class Program>
std::pair<std::int64_t, std::int64_t> local(int i) {
  const auto l = sw::runtime::local_layout(Program::program.spec_of(i), mesh::coordinate(0).data());
  return {l.ext[0], l.ext[1]};
}
using extents = std::pair<std::int64_t, std::int64_t>;

template <class Program>
void check_order() {
  static_assert(!sw::verify(Program::program));
  static_assert(collectives_of<Program>() == in_order(transition::all_gather, transition::reduce_scatter));
  const auto& g = Program::program;
  int gather = -1, gathered = -1, first = -1, last = -1, scatter = -1, scattered = -1;
  for (int i = 0; i < g.node_count; ++i) {
    const sw::node& n = g.nodes[i];
    if (n.op == op_code::einsum && first < 0) first = i;
    if (n.op == op_code::einsum) last = i;
    if (sw::is_collective(g, i)) (gather < 0 ? gather : scatter) = i;
    if (n.op == op_code::wait) (gathered < 0 ? gathered : scattered) = i;
  }
  CHECK(sw::collective_of(g, gathered) == gather);
  CHECK(sw::collective_of(g, scattered) == scatter);
  CHECK(count_of<Program>(op_code::wait) == 2);
  CHECK(count_of<Program>(op_code::einsum) == 4);
  // one gather for three products: started, waited for, read; nothing but a change of name stands between wait and product
  CHECK(gather < gathered);
  CHECK(gathered < first);
  int products_of_it = 0, between = 0;
  for (int i = gathered + 1; i < g.node_count; ++i) {
    const sw::node& n = g.nodes[i];
    if (i < first && !(sw::may_view(n.op) && sw::is_view(n, g.spec_of(n.in[0]), g.spec_of(i)))) ++between;
    if (n.op != op_code::einsum) continue;
    int x = n.in[0];
    while (g.nodes[x].op == op_code::redistribute && !sw::is_collective(g, x)) x = g.nodes[x].in[0];
    products_of_it += x == gathered ? 1 : 0;
  }
  CHECK(between == 0);
  CHECK(products_of_it == 3);
  CHECK(g.nodes[g.nodes[gather].in[0]].op == op_code::input);
  CHECK(last < scatter);
  CHECK(scatter < scattered);
  // (20, 16) is gathered to (40, 16), the attention's heads are (40, 8), their product (40, 16) is scattered to (20, 16)
  CHECK(local<Program>(g.nodes[gather].in[0]) == extents{20, 16});
  CHECK(local<Program>(gather) == extents{40, 16});
  CHECK(local<Program>(g.nodes[last].in[0]) == extents{40, 8});
  CHECK(local<Program>(g.nodes[last].in[1]) == extents{16, 8});
  CHECK(local<Program>(g.nodes[first].in[1]) == extents{8, 16});
  CHECK(local<Program>(g.nodes[scatter].in[0]) == extents{40, 16});
  CHECK(local<Program>(scatter) == extents{20, 16});
}

TEST_CASE("dtensor compile: test_tp_compile_comm_reordering") {
  check_order<scheduled>();
  check_order<reordered>();
  static_assert(count_of<unscheduled>(op_code::wait) == 0);
  static_assert(scheduled::traffic.order_hash == unscheduled::traffic.order_hash);

  const numbers x = integers(640, 1);
  numbers wanted;
  sw::launch<sw::mesh<tp<1>>>([&](auto& rank) {
    sw::executor<single, std::remove_reference_t<decltype(rank)>> program(rank);
    set_parameters(program);
    program.set_input(0, x);
    program.run({});
    wanted = values_of(program.output(0));
  });
  REQUIRE(wanted.size() == 640);
  CHECK(wanted != x);

  sw::launch<mesh>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<scheduled, rank_type> waits(rank, sw::executor_checks::poison);
    sw::executor<reordered, rank_type> moved(rank, sw::executor_checks::poison);
    sw::eager on(rank);
    sw::bind_eager<model, plan<tp<2>>, mesh, double> eager_model{};
    set_parameters(waits);
    set_parameters(moved);
    sw::load_parameters(eager_model, on, waits);
    const auto mine = sw::dtensor_of<double, sw::shape<40, 16>, mesh, S0>::distribute(on, x);
    for (int round = 0; round < 2; ++round) {
      waits.set_input(0, x);
      moved.set_input(0, x);
      rank.reset_counts();
      waits.run({});
      const std::int64_t sent = rank.bytes_written(0);
      CHECK(sent == 2 * 20 * 16 * 8);
      moved.run({});
      CHECK(rank.bytes_written(0) == 2 * sent);
    }
    const auto rows = waits.output(0);
    for (std::int64_t r = 0; r < 20; ++r)
      for (std::int64_t k = 0; k < 16; ++k)
        CHECK(rows(r, k) == wanted[static_cast<std::size_t>((rows.layout.origin[0] + r) * 16 + k)]);
    CHECK(same_bits(moved.output(0), rows));
    // at once: the model as it is, and its parts with the gather and the scatter on their way
    rank.reset_counts();
    const auto y = eager_model(mine);
    CHECK(rank.bytes_written(0) == 2 * 20 * 16 * 8);
    CHECK(same_bits(y.to_local(), rows));
    const auto& attn = eager_model.block.attn;
    auto gather = sw::redistribute_async<tp<2>, R>(mine);
    const auto whole = std::move(gather).wait();
    const auto heads = attn.wq(whole) + attn.wk(whole) + attn.wv(whole);
    auto scatter = sw::redistribute_async<tp<2>, S0>(sw::linear_product(heads, attn.wo.weight));
    const auto z = std::move(scatter).wait() + attn.wo.bias;
    CHECK(same_bits(z.to_local(), rows));
  });
}

}  // namespace
