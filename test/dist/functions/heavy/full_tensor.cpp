// SPDX-License-Identifier: Apache-2.0
// full_tensor as a function: the whole tensor everywhere, at once and in programs, and the gradient that comes back.
#include <both_ways.hpp>

#include <numeric>

namespace {

using namespace test;

template <int N>
struct tp : sw::axis<N> {};
struct outer : sw::axis<2> {};
struct inner : sw::axis<3> {};
using R = sw::replicate;
using U = sw::reduced;
template <int D>
using S = sw::shard<D>;
using numbers = std::vector<double>;

struct whole_times {
  constexpr auto operator()(const auto& x, const auto& w) const { return sw::full_tensor(x) * w; }
};
// Each rank's own from there on: the cotangents of all ranks are summed.
struct own_times {
  constexpr auto operator()(const auto& x, const auto& w) const { return sw::full_tensor<sw::grad<sw::partial<>>>(x) * w; }
};

numbers some(std::size_t n, int salt) {
  numbers v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<double>((i * 7 + static_cast<std::size_t>(salt)) % 11) - 5;
  return v;
}

template <class Mesh, class X, class W>
void check_whole() {
  const auto n = static_cast<std::size_t>(sw::numel(X::sp));
  const numbers xs = some(n, 1), ws = some(n, 2);
  sw::launch<Mesh>([&](auto& rank) {
    sw::eager on(rank);
    const auto x = X::distribute(on, xs);
    const auto w = W::distribute(on, ws);
    both_ways<whole_times>(rank, x, w);
    const auto [y, dx, dw] = gradients_both_ways<whole_times, 0, 1>(rank, x, w);
    for (const sw::placement& p : {decltype(y)::sp.place[0]}) CHECK(p.is_replicate());
    static_assert(decltype(dw)::sp == W::sp);
    for (int a = 0; a < Mesh::axes; ++a) CHECK(decltype(dx)::sp.place[a] == sw::dual(X::sp.place[a]));
    const auto block = y.to_local();
    REQUIRE(block.data.size() == n);
    const auto gradient = values_of(dx.full_tensor().to_local());
    for (std::size_t i = 0; i < n; ++i) {
      CHECK(block.data[i] == xs[i] * ws[i]);
      CHECK(gradient[i] == ws[i]);
      CHECK(dw.to_local().data[i] == xs[i]);
    }
  });
}

template <int N, class Placement>
using one_axis = sw::dtensor_of<double, sw::shape<7, 3>, sw::mesh<tp<N>>, Placement>;

template <int N>
void check_ranks() {
  check_whole<sw::mesh<tp<N>>, one_axis<N, S<0>>, one_axis<N, R>>();
  check_whole<sw::mesh<tp<N>>, one_axis<N, S<1>>, one_axis<N, R>>();
  check_whole<sw::mesh<tp<N>>, one_axis<N, R>, one_axis<N, R>>();
  check_whole<sw::mesh<tp<N>>, one_axis<N, sw::partial<>>, one_axis<N, R>>();
}

}  // namespace

TEST_CASE("full_tensor: whole on every rank, and its gradient as the tensor is placed") {
  check_ranks<1>();
  check_ranks<2>();
  check_ranks<3>();
  check_ranks<4>();
  check_ranks<8>();
  using grid = sw::mesh<outer, inner>;
  using sw::on;
  check_whole<grid, sw::dtensor_of<double, sw::shape<7, 5>, grid, on<outer, S<0>>, on<inner, S<0>>>,
              sw::dtensor_of<double, sw::shape<7, 5>, grid>>();
  check_whole<grid, sw::dtensor_of<double, sw::shape<7, 5>, grid, on<outer, S<1>>, on<inner, S<0>>>,
              sw::dtensor_of<double, sw::shape<7, 5>, grid>>();
}

TEST_CASE("full_tensor: with a gradient's placement given, each rank computes on its own") {
  constexpr int N = 3;
  using mesh = sw::mesh<tp<N>>;
  using X = one_axis<N, S<0>>;
  using W = sw::dtensor_of<double, sw::shape<21, 3>, mesh, S<0>>;  // a block of (7, 3) a rank
  const numbers xs = some(21, 1), ws = some(63, 4);
  sw::launch<mesh>([&](auto& rank) {
    sw::eager on(rank);
    const auto x = X::distribute(on, xs);
    const auto w = W::distribute(on, ws);
    both_ways<own_times>(rank, x, w);
    const auto [y, dx] = gradients_both_ways<own_times, 0>(rank, x, w);
    static_assert(decltype(dx)::sp == X::sp);
    const int me = rank.index();
    for (std::int64_t i = 0; i < 7; ++i)
      for (std::int64_t j = 0; j < 3; ++j)
        CHECK(y.to_local()(i, j) ==
              xs[static_cast<std::size_t>(i * 3 + j)] * ws[static_cast<std::size_t>((me * 7 + i) * 3 + j)]);
    const auto mine = dx.to_local();
    for (std::int64_t i = 0; i < mine.layout.ext[0]; ++i)
      for (std::int64_t j = 0; j < 3; ++j) {
        double sum = 0;
        for (int r = 0; r < N; ++r) sum += ws[static_cast<std::size_t>((r * 7 + mine.layout.origin[0] + i) * 3 + j)];
        CHECK(mine(i, j) == sum);
      }
  });
}
