// SPDX-License-Identifier: Apache-2.0
// Implicit mode on permuted tensors: placements along the chain, strides of results, gradients that arrive elsewhere.
#include <doctest/doctest.h>

#include <both_ways.hpp>

#include <cmath>

namespace {

using namespace test;
using sw::transition;

template <int N>
struct tp : sw::axis<N> {};
using R = sw::replicate;
template <int D>
using S = sw::shard<D>;
template <int N, class Shape, class Placement>
using tensor = sw::dtensor_of<double, Shape, sw::mesh<tp<N>>, Placement>;
using numbers = std::vector<double>;

numbers some(int n, int salt) {
  numbers v(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) v[static_cast<std::size_t>(i)] = (i * 37 + salt * 11) % 23 - 11;
  return v;
}

// linear(x turned, y, z), turned back.
struct turned_linear {
  constexpr auto operator()(const auto& x, const auto& y, const auto& z) const {
    const auto turned = sw::contiguous(sw::permute<0, 2, 1>(x));
    return sw::permute<0, 2, 1>(sw::linear_product(turned, y) + z);
  }
};

// matmul(layer_norm(x turned, y, z) turned back, x), turned; and the norm's result.
struct norm_then_product {
  constexpr auto operator()(const auto& x, const auto& y, const auto& z) const {
    const auto normed = sw::permute<0, 2, 1>(sw::layer_norm(sw::contiguous(sw::permute<0, 2, 1>(x)), y, z));
    return std::tuple{sw::permute<0, 2, 1>(sw::matmul(normed, x)), normed};
  }
};

constexpr bool has_strides(const sw::spec& s, std::int64_t a, std::int64_t b, std::int64_t c) {
  return s.rank == 3 && s.stride[0] == a && s.stride[1] == b && s.stride[2] == c;
}

template <class Program>
constexpr sw::spec spec_of_last(sw::op_code op) {
  const auto g = Program::program;
  int at = 0;
  for (int i = 0; i < g.node_count; ++i)
    if (g.nodes[i].op == op) at = i;
  return g.spec_of(at);
}

// Whole results and gradients of F on N ranks; every rank's are equal.
template <class F, int N, class SX, class SY>
std::vector<numbers> on_ranks(const numbers& x, const numbers& y, const numbers& z) {
  std::vector<numbers> whole;
  sw::launch<sw::mesh<tp<N>>>([&](auto& rank) {
    sw::eager on(rank);
    const auto tx = tensor<N, typename F::x, SX>::distribute(on, x);
    const auto ty = tensor<N, typename F::y, SY>::distribute(on, y);
    const auto tz = tensor<N, sw::shape<4>, R>::distribute(on, z);
    const auto all = gradients_both_ways<sw::implicitly<typename F::function>, 0, 1, 2>(rank, tx, ty, tz);
    both_ways<sw::implicitly<typename F::function>>(rank, tx, ty, tz);
    std::apply(
        [&](const auto&... r) {
          const std::vector<numbers> mine{values_of(r.full_tensor().to_local())...};
          if (rank.index() == 0) whole = mine;
        },
        all);
  });
  return whole;
}

// Each rank alone: all of it runs, at once and as a program with the same bits (both_ways), and makes the collectives
// that the programs list.
template <class F, int N, class SX, class SY>
void on_each_alone(const numbers& x, const numbers& y, const numbers& z) {
  using X = tensor<N, typename F::x, SX>;
  using Y = tensor<N, typename F::y, SY>;
  using Z = tensor<N, sw::shape<4>, R>;
  using function = sw::implicitly<typename F::function>;
  constexpr collective_list wanted = collectives_of<gradient_of<function, sw::wrt<0, 1, 2>, X, Y, Z>>();
  for (int q = 0; q < N; ++q)
    sw::launch_fake<sw::mesh<tp<N>>>(q, [&](auto& rank) {
      sw::eager on(rank);
      const auto tx = X::distribute(on, x);
      const auto ty = Y::distribute(on, y);
      const auto tz = Z::distribute(on, z);
      gradients_both_ways<function, 0, 1, 2>(rank, tx, ty, tz);
      both_ways<function>(rank, tx, ty, tz);
      rank.keep_log(true);
      const auto all = sw::value_and_grad<function, 0, 1, 2>(tx, ty, tz);
      static_assert(std::tuple_size_v<std::remove_const_t<decltype(all)>> >= 4);
      CHECK(static_cast<int>(rank.log().size()) == wanted.count);
      for (int k = 0; k < wanted.count; ++k) CHECK(rank.log()[static_cast<std::size_t>(k)].kind == wanted.kind[k]);
    });
}

struct linear_case {
  using function = turned_linear;
  using x = sw::shape<4, 32, 4>;
  using y = sw::shape<4, 32>;
};
struct norm_case {
  using function = norm_then_product;
  using x = sw::shape<4, 4, 4>;
  using y = sw::shape<4>;
};

}  // namespace

TEST_CASE("dtensor compile: test_dtensor_noncontiguous_output") {
  using X = tensor<2, linear_case::x, S<1>>;
  using Y = tensor<2, linear_case::y, S<1>>;
  using Z = tensor<2, sw::shape<4>, R>;
  using F = sw::implicitly<turned_linear>;
  using forward = function_of<F, X, Y, Z>;
  using both = gradient_of<F, sw::wrt<0, 1, 2>, X, Y, Z>;
  // permute: S(1) becomes S(2), the dim that linear contracts, so the product is partial and the bias is made so
  static_assert(spec_of_last<forward>(sw::op_code::contiguous).place[0] == sw::shard_value(2));
  static_assert(spec_of_last<forward>(sw::op_code::einsum).place[0] == sw::partial_value());
  static_assert(spec_of_last<forward>(sw::op_code::redistribute).place[0] == sw::partial_value());
  constexpr sw::spec out = forward::program.spec_of(forward::program.outputs[0]);
  static_assert(out.place[0] == sw::partial_value() && has_strides(out, 16, 1, 4) && !sw::is_contiguous(out));
  static_assert(forward::traffic.collectives == 0 && both::traffic.collectives == 0);
  static_assert(both::program.spec_of(both::program.outputs[1]) == X::sp);  // gradients lie where the operands do
  static_assert(both::program.spec_of(both::program.outputs[2]) == Y::sp);
  static_assert(both::program.spec_of(both::program.outputs[3]) == Z::sp);

  const numbers x = some(4 * 32 * 4, 1), y = some(4 * 32, 2), z = some(4, 3);
  const auto all = on_ranks<linear_case, 2, S<1>, S<1>>(x, y, z);
  REQUIRE(all.size() == 4);
  on_each_alone<linear_case, 2, S<1>, S<1>>(x, y, z);
  auto at = [](int i) { return static_cast<std::size_t>(i); };
  for (int b = 0; b < 4; ++b)
    for (int o = 0; o < 4; ++o)
      for (int t = 0; t < 4; ++t) {
        double v = z[at(o)];
        for (int k = 0; k < 32; ++k) v += x[at((b * 32 + k) * 4 + t)] * y[at(o * 32 + k)];
        CHECK(all[0][at((b * 4 + o) * 4 + t)] == v);
      }
  for (int k = 0; k < 32; ++k) {
    double dx = 0, dy = 0;
    for (int o = 0; o < 4; ++o) dx += y[at(o * 32 + k)];
    for (int b = 0; b < 4; ++b)
      for (int t = 0; t < 4; ++t) dy += x[at((b * 32 + k) * 4 + t)];
    for (int b = 0; b < 4; ++b)
      for (int t = 0; t < 4; ++t) CHECK(all[1][at((b * 32 + k) * 4 + t)] == dx);
    for (int o = 0; o < 4; ++o) CHECK(all[2][at(o * 32 + k)] == dy);
  }
  CHECK(all[3] == numbers{16, 16, 16, 16});
}

TEST_CASE("dtensor compile: test_dtensor_different_gradient_placement") {
  using X = tensor<2, norm_case::x, S<1>>;
  using Y = tensor<2, norm_case::y, R>;
  using F = sw::implicitly<norm_then_product>;
  using forward = function_of<F, X, Y, Y>;
  using both = gradient_of<F, sw::wrt<0, 1, 2>, X, Y, Y>;
  // the shard stands on the normalised dim after the permute: one gather, and the norm's result is whole
  static_assert(collectives_of<forward>() == in_order(transition::all_gather));
  static_assert(spec_of_last<forward>(sw::op_code::norm_apply).place[0] == sw::replicate_value());
  static_assert(forward::program.spec_of(forward::program.outputs[1]).place[0] == sw::replicate_value());
  // the product contracts x's sharded dim: free, as the left operand is cut
  static_assert(forward::program.spec_of(forward::program.outputs[0]).place[0] == sw::partial_value());
  // in the backward pass the norm's cotangent arrives sharded along dim 2 and is gathered to what the norm was
  static_assert(collectives_of<both>() == in_order(transition::all_gather, transition::all_gather));
  static_assert([] {
    const auto g = both::program;
    int gathers = 0;
    for (int i = 0; i < g.node_count; ++i) {
      if (g.nodes[i].op != sw::op_code::redistribute) continue;
      const sw::placement from = g.spec_of(g.nodes[i].in[0]).place[0], to = g.spec_of(i).place[0];
      if (from.is_shard() && to.is_whole() && ++gathers == 2)
        return from == sw::shard_value(2) && to == sw::replicate_value();
    }
    return false;
  }());
  static_assert(both::program.spec_of(both::program.outputs[2]) == X::sp);
  static_assert(both::program.spec_of(both::program.outputs[3]) == Y::sp);
  static_assert(both::program.spec_of(both::program.outputs[4]) == Y::sp);

  const numbers x = some(64, 1), y = some(4, 2), z = some(4, 3);
  const auto single = on_ranks<norm_case, 1, S<1>, R>(x, y, z), two = on_ranks<norm_case, 2, S<1>, R>(x, y, z);
  REQUIRE(single.size() == 5);
  on_each_alone<norm_case, 2, S<1>, R>(x, y, z);
  for (std::size_t k = 0; k < 5; ++k) {
    REQUIRE(two[k].size() == single[k].size());
    double largest = 0;
    for (std::size_t i = 0; i < single[k].size(); ++i) {
      CHECK(two[k][i] == doctest::Approx(single[k][i]).epsilon(1e-12));
      largest = std::fmax(largest, std::fabs(single[k][i]));
    }
    CHECK(largest > 0.1);
  }
  // one row of the norm by hand: y (v - mean) / sqrt(variance + eps) + z
  double mean = 0, variance = 0;
  for (std::size_t c = 0; c < 4; ++c) mean += x[c * 4] / 4;
  for (std::size_t c = 0; c < 4; ++c) variance += (x[c * 4] - mean) * (x[c * 4] - mean) / 4;
  for (std::size_t c = 0; c < 4; ++c)
    CHECK(single[1][c * 4] == doctest::Approx(y[c] * (x[c * 4] - mean) / std::sqrt(variance + 1e-5) + z[c]).epsilon(1e-12));
}
