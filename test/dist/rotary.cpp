// SPDX-License-Identifier: Apache-2.0
// rotary_embedding against complex numbers turned by hand, on meshes too; its gradient against differences; that products of queries
// and keys depend on how far apart they are alone.
#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <figures.hpp>
#include <shardwise/laws/gradcheck.hpp>
#include <shardwise/shardwise.hpp>
#include <vector>

namespace {

namespace sw = shardwise;
using figures::apart;
using figures::some;
using figures::whole;
using options = sw::rotary_options;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};
template <int N, int M>
using mesh = sw::mesh<dp<N>, tp<M>>;

constexpr int B = 2, H = 3, T = 5, D = 6;
// Of x (batch, heads, time, size), or (batch, time, heads, size).
std::vector<double> turned(std::vector<double> x, bool by_time, bool interleaved, double base, int first) {
  for (int n = 0; n < B * H * T; ++n) {
    const int t = by_time ? n / H % T : n % T;
    for (int i = 0; i < D / 2; ++i) {
      double& u = x[static_cast<std::size_t>(n * D + (interleaved ? 2 * i : i))];
      double& v = x[static_cast<std::size_t>(n * D + (interleaved ? 2 * i + 1 : i + D / 2))];
      const auto z = std::complex<double>(u, v) * std::polar(1.0, (first + t) * std::pow(base, -2.0 * i / D));
      u = z.real();
      v = z.imag();
    }
  }
  return x;
}
template <options O, int N, int M, class P, class Q>
std::vector<double> on_mesh(int first) {
  using shape = std::conditional_t<O.layout == sw::head_layout::bthd, sw::shape<B, T, H, D>, sw::shape<B, H, T, D>>;
  std::vector<double> all;
  sw::launch<mesh<N, M>>([&](auto& rank) {
    sw::eager e(rank);
    const auto x =
        sw::dtensor_of<double, shape, mesh<N, M>, sw::on<dp<N>, P>, sw::on<tp<M>, Q>>::distribute(e, some(B * H * T * D, 0));
    const auto y = whole(sw::rotary_embedding<O>(x, first));
    if (rank.index() == 0) all = y;
  });
  return all;
}

TEST_CASE("rotary_embedding: both forms and layouts, bases and first positions, by the position in the whole") {
  constexpr options plain{}, neighbours{.layout = sw::head_layout::bthd, .form = sw::rotary_form::interleaved, .base = 100};
  const auto x = some(B * H * T * D, 0);
  CHECK(apart(on_mesh<plain, 1, 1, sw::replicate, sw::replicate>(0), turned(x, false, false, 10000, 0)) < 1e-14);
  CHECK(apart(on_mesh<plain, 2, 3, sw::shard<2>, sw::shard<1>>(7), turned(x, false, false, 10000, 7)) < 1e-14);
  CHECK(apart(on_mesh<plain, 3, 1, sw::shard<2>, sw::replicate>(0), turned(x, false, false, 10000, 0)) < 1e-14);  // 2, 2, 1
  CHECK(apart(on_mesh<plain, 2, 1, sw::partial<>, sw::replicate>(0), turned(x, false, false, 10000, 0)) < 1e-14);
  CHECK(apart(on_mesh<neighbours, 1, 1, sw::replicate, sw::replicate>(3), turned(x, true, true, 100, 3)) < 1e-14);
  CHECK(apart(on_mesh<neighbours, 4, 1, sw::shard<1>, sw::replicate>(3), turned(x, true, true, 100, 3)) < 1e-14);
}

template <options O>
struct turn {
  constexpr auto operator()(const auto& x) const { return sw::rotary_embedding<O>(x, 4); }
};
TEST_CASE("rotary_embedding: gradients against differences, and of gradients") {
  CHECK(sw::gradcheck<turn<options{}>, sw::shape<1, 2, 3, 4>>() == 24);
  CHECK(sw::gradcheck<turn<options{.layout = sw::head_layout::bthd, .form = sw::rotary_form::interleaved}>,
                      sw::shape<1, 3, 2, 4>>() == 24);
}

// Law: <turned q at i, turned k at j> is a function of i - j. Float angles would lose it: position 100000 has 7 digits before the point.
TEST_CASE("rotary_embedding: products know how far apart positions are and no more") {
  using tensor = sw::dtensor_of<float, sw::shape<1, 1, T, D>, mesh<1, 1>>;
  sw::launch<mesh<1, 1>>([&](auto& rank) {
    sw::eager e(rank);
    std::vector<float> q, k;
    for (int t = 0; t < T; ++t)
      for (int i = 0; i < D; ++i) {
        q.push_back(static_cast<float>(std::sin(i + 1.0)));
        k.push_back(static_cast<float>(std::cos(2.0 * i)));
      }
    const auto product = [&](std::int64_t first) {
      return whole(sw::matmul(sw::rotary_embedding(tensor::distribute(e, q), first),
                              sw::transpose<2, 3>(sw::rotary_embedding(tensor::distribute(e, k), first))));
    };
    const auto near = product(0);
    CHECK(apart(near, product(100000)) < 1e-5);
    for (int i = 1; i < T; ++i)
      for (int j = 1; j < T; ++j)
        CHECK(std::abs(near[static_cast<std::size_t>(i * T + j)] - near[static_cast<std::size_t>((i - 1) * T + j - 1)]) <
              1e-5);
    CHECK(std::abs(near[1] - near[0]) > 0.01);
  });
}

}  // namespace
