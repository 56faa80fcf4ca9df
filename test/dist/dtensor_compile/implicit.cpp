// SPDX-License-Identifier: Apache-2.0
// Implicit mode: redistributions that nobody wrote, chosen by DTensor's costs, seen in the graph; and their gradients.
#include <doctest/doctest.h>

#include <both_ways.hpp>

namespace {

using namespace test;
using sw::transition;

template <int N>
struct tp : sw::axis<N> {};
using R = sw::replicate;
using P = sw::partial<>;
template <int D>
using S = sw::shard<D>;
template <int N, class Shape, class Placement>
using tensor = sw::dtensor_of<float, Shape, sw::mesh<tp<N>>, Placement>;
using numbers = std::vector<float>;

numbers counted(int n, float from = 0) {
  numbers v(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) v[static_cast<std::size_t>(i)] = from + static_cast<float>(i);
  return v;
}

// x y, whole on every rank; the sum of the ranks' copies is taken once.
struct product_everywhere {
  constexpr auto operator()(const auto& x, const auto& y) const {
    return sw::to_local<sw::grad<R>>(sw::redistribute<tp<4>, R>(sw::matmul(x, y)));
  }
};

struct twice {
  constexpr auto operator()(const auto& x) const { return x + x; }
};
struct twice_times {
  constexpr auto operator()(const auto& x, const auto& y) const { return sw::matmul(x + x, y); }
};

}  // namespace

TEST_CASE("dtensor compile: test_compile_dtensor_redistribute_backward") {
  using X = tensor<4, sw::shape<8, 4>, S<0>>;
  using Y = tensor<4, sw::shape<4, 8>, S<1>>;
  using forward = function_of<sw::implicitly<product_everywhere>, X, Y>;
  using both = gradient_of<sw::implicitly<product_everywhere>, sw::wrt<0, 1>, X, Y>;
  // y is gathered, as left rows stay where they are; then the result
  static_assert(collectives_of<forward>() == in_order(transition::all_gather, transition::all_gather));
  static_assert(collectives_of<both>() ==
                in_order(transition::all_gather, transition::all_gather, transition::reduce_scatter));
  static_assert([] {
    const auto g = forward::program;
    for (int i = 0; i < g.node_count; ++i)
      if (g.nodes[i].op == sw::op_code::einsum)
        return g.spec_of(i).place[0] == sw::shard_value(0) && g.nodes[g.nodes[i].in[0]].op == sw::op_code::input &&
               g.nodes[g.nodes[i].in[1]].op == sw::op_code::redistribute;
    return false;
  }());
  sw::launch<sw::mesh<tp<4>>>([](auto& rank) {
    sw::eager on(rank);
    const auto x = X::from_local(on, counted(8));
    const auto y = Y::from_local(on, counted(8));
    both_ways<sw::implicitly<product_everywhere>>(rank, x, y);
    const auto [out, dx, dy] = gradients_both_ways<sw::implicitly<product_everywhere>, 0, 1>(rank, x, y);
    const auto o = out.to_local();
    CHECK(o.layout.ext[0] == 8);
    CHECK(o.layout.ext[1] == 8);
    const float tile[2][2] = {{28, 34}, {76, 98}};
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < 8; ++j) CHECK(o(i, j) == tile[i % 2][j % 2]);
    static_assert(decltype(dx)::sp == X::sp && decltype(dy)::sp == Y::sp);
    CHECK(values_of(dx.to_local()) == numbers{4, 20, 36, 52, 4, 20, 36, 52});
    CHECK(values_of(dy.to_local()) == numbers{16, 16, 24, 24, 32, 32, 40, 40});
  });
}

TEST_CASE("dtensor compile: test_dtensor_partial_placement_graph_output") {
  using X = tensor<2, sw::shape<4, 4>, P>;
  using Y = tensor<2, sw::shape<4, 4>, R>;
  using sum = function_of<twice, X>;
  static_assert(sum::traffic.collectives == 0);
  // x is scattered by columns and y's rows are taken: the product is partial again
  using product = function_of<sw::implicitly<twice_times>, X, Y>;
  static_assert(collectives_of<product>() == in_order(transition::reduce_scatter));
  static_assert(product::program.spec_of(product::program.outputs[0]).place[0] == sw::partial_value());
  with_and_without_peers<sw::mesh<tp<2>>>([](auto& rank) {
    sw::eager on(rank);
    const auto summand = [](int r) { return counted(16, r == 0 ? 1.0F : -3.0F); };
    const numbers mine = summand(rank.index());
    const auto x = X::from_local(on, mine);
    const auto [two_x] = both_ways<twice>(rank, x);
    static_assert(decltype(two_x)::sp == X::sp);
    for (std::size_t i = 0; i < 16; ++i) CHECK(two_x.to_local().data[i] == 2 * mine[i]);
    const auto y = Y::distribute(on, counted(16, -5));
    both_ways<sw::implicitly<twice_times>>(rank, x, y);
    const auto [z, dx, dy] = gradients_both_ways<sw::implicitly<twice_times>, 0, 1>(rank, x, y);
    const auto whole = z.full_tensor();
    // against the same on one device: x = sum of the ranks' summands
    numbers total(16), yv = counted(16, -5);
    for (std::size_t i = 0; i < 16; ++i) total[i] = 2 * (summand(found_at(rank, 0))[i] + summand(found_at(rank, 1))[i]);
    // x's columns and y's rows lie two to a rank
    const auto at = [&](int k) { return 2 * found_at(rank, k / 2) + k % 2; };
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) {
        float v = 0, gx = 0, gy = 0;
        for (int k = 0; k < 4; ++k) {
          v += total[static_cast<std::size_t>(4 * i + at(k))] * yv[static_cast<std::size_t>(4 * at(k) + j)];
          gx += 2 * yv[static_cast<std::size_t>(4 * at(j) + k)];
          gy += total[static_cast<std::size_t>(4 * k + at(i))];
        }
        CHECK(whole.to_local()(i, j) == v);
        CHECK(dx.to_local()(i, j) == gx);
        CHECK(dy.to_local()(i, j) == gy);
      }
    // every summand's gradient is the sum's: equal on all ranks, what DTensor calls replicate
    static_assert(decltype(dx)::sp.place[0] == sw::reduced_value());
    static_assert(sw::dtensor_view(decltype(dx)::sp.place[0]) == sw::replicate_value());
    static_assert(decltype(dy)::sp.place[0].is_replicate());
  });
}
