// SPDX-License-Identifier: Apache-2.0
// Programs that were silently wrong elsewhere in 2025 and 2026, named by their public threads: here they give the exact
// result, or stop with an exception. Those that do not compile here are test/fail/silent_*.cpp. Without a replica:
//   torchtitan#3109, torchao#3982   there is no 8-bit type; a scale taken from a rank's own largest value is
//                                   fail/silent_torchtitan_3109.cpp, largest values of uneven shards are below
//   Megatron-LM#1836                nothing is saved yet
//   DeepSpeed#8437                  there is no Muon
//   pytorch#172668, Megatron-LM#5100   there are no pipeline schedules; that ranks run one list of collectives is below
//   SkyRL#1470                      nothing is allocated after the first step: dist/allocation
//   pytorch#172547                  nothing is compiled at run time
//   jax#36886                       fail/to_local_gradient_missing.cpp: the gradient's placement must be said
#include <doctest/doctest.h>

#include <algorithm>
#include <both_ways.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace {

using namespace test;
using sw::on;

template <int D>
using S = sw::shard<D>;
using R = sw::replicate;
using U = sw::reduced;
using P = sw::partial<>;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
struct ring : sw::axis<3> {};
using line = sw::mesh<tp>;
using three = sw::mesh<ring>;
using square = sw::mesh<dp, tp>;
template <class Shape, class Mesh, class... Placements>
using tensor = sw::dtensor_of<double, Shape, Mesh, Placements...>;

std::vector<double> counted(std::int64_t n, double from = 0) {
  std::vector<double> v(static_cast<std::size_t>(n));
  for (double& x : v) x = from++;
  return v;
}
template <class X>
std::vector<double> whole(const X& x) {
  return values_of(x.full_tensor().to_local());
}

// Experts e of rank ep hold w[e]; tokens c are split over dp: y[c, f] = sum_e gate[e, c] (x[e, c, :] w[e]).
struct experts {
  constexpr auto operator()(const auto& x, const auto& w, const auto& gate) const {
    return sw::redistribute<tp, R>(sw::sum<0>(sw::matmul(x, w) * gate));
  }
};

// Every rank has the logits of its own experts; the weighing of all of them needs all.
struct router {
  constexpr auto operator()(const auto& logits, const auto& weight) const {
    return sw::redistribute<tp, R>(logits) * weight;
  }
};

// The loss of a sequence that is split over ranks, a mean over all tokens.
struct token_mean {
  constexpr auto operator()(const auto& x, const auto& w) const { return sw::mean(sw::matmul(x, w)); }
};

struct row_sums {
  constexpr auto operator()(const auto& x) const { return sw::sum<1>(x); }
};
struct column_sums {
  constexpr auto operator()(const auto& x) const { return sw::sum<0>(x); }
};
struct row_softmax {
  constexpr auto operator()(const auto& x) const { return sw::softmax<1>(x * 0.125); }
};
struct turned {
  constexpr auto operator()(const auto& x) const { return sw::transpose<0, 1>(x) * 2.0; }
};
struct middle_columns {
  constexpr auto operator()(const auto& x) const { return sw::slice<1, 1, 3>(x) + 1.0; }
};

struct largest {
  constexpr auto operator()(const auto& x) const { return sw::redistribute<ring, R>(sw::max(sw::abs(x))); }
};

struct doubled {
  constexpr auto operator()(const auto& x) const { return sw::redistribute<tp, R>(x * 2.0); }
};
struct summed {
  constexpr auto operator()(const auto& x) const { return sw::redistribute<tp, R>(sw::sum(x)); }
};

}  // namespace

TEST_CASE("silent bug: pytorch#160285, expert parallelism of two does not double the experts' gradients") {
  constexpr std::int64_t E = 4, C = 6, D = 3, F = 2;
  sw::launch<square>([](auto& rank) {
    sw::eager on(rank);
    const auto x = tensor<sw::shape<E, C, D>, square, S<1>, S<0>>::distribute(on, counted(E * C * D, -7));
    const auto w = tensor<sw::shape<E, D, F>, square, U, S<0>>::distribute(on, counted(E * D * F, 1));
    const auto gate = tensor<sw::shape<E, C, 1>, square, S<1>, S<0>>::distribute(on, counted(E * C, 2));
    const auto [y, dw] = gradients_both_ways<experts, 1>(rank, x, w, gate);
    std::vector<double> want_y(C * F), want_dw(E * D * F);
    for (std::int64_t e = 0; e < E; ++e)
      for (std::int64_t c = 0; c < C; ++c)
        for (std::int64_t d = 0; d < D; ++d)
          for (std::int64_t f = 0; f < F; ++f) {
            const double xv = static_cast<double>((e * C + c) * D + d - 7),
                         wv = static_cast<double>((e * D + d) * F + f + 1);
            const double gv = static_cast<double>(e * C + c + 2);
            want_y[static_cast<std::size_t>(c * F + f)] += xv * wv * gv;
            want_dw[static_cast<std::size_t>((e * D + d) * F + f)] += xv * gv;
          }
    CHECK(whole(y) == want_y);
    static_assert(decltype(dw)::sp.place[0].is_partial() && decltype(dw)::sp.place[1].is_shard(0));
    CHECK(whole(dw) == want_dw);
  });
}

TEST_CASE("silent bug: NeMo Automodel#2995, a gathered router keeps its gradient") {
  sw::launch<line>([](auto& rank) {
    sw::eager on(rank);
    const auto logits = tensor<sw::shape<3, 4>, line, S<1>>::distribute(on, counted(12));
    const auto weight = tensor<sw::shape<3, 4>, line, R>::distribute(on, counted(12, 5));
    const auto [y, dlogits] = gradients_both_ways<router, 0>(rank, logits, weight);
    CHECK(whole(dlogits) == counted(12, 5));
  });
}

TEST_CASE("silent bug: Megatron-LM#3959, no gradient is divided by the number of ranks that split the sequence") {
  const auto check = []<std::int64_t N, class Mesh, class... Placements>(sw::shape<N>*, Mesh*, sw::grad<Placements...>*) {
    sw::launch<Mesh>([](auto& rank) {
      sw::eager on(rank);
      const auto x = tensor<sw::shape<N, 3>, Mesh, Placements...>::distribute(on, counted(N * 3));
      constexpr auto whole_everywhere = [] {
        if constexpr (Mesh::axes == 1) return std::type_identity<tensor<sw::shape<3, 1>, Mesh, U>>{};
        else return std::type_identity<tensor<sw::shape<3, 1>, Mesh, U, U>>{};
      }();
      const auto w = decltype(whole_everywhere)::type::distribute(on, counted(3, 1));
      const auto [y, dw] = gradients_both_ways<token_mean, 1>(rank, x, w);
      std::vector<double> want(3);
      for (std::int64_t i = 0; i < N; ++i)
        for (std::int64_t d = 0; d < 3; ++d) want[static_cast<std::size_t>(d)] += static_cast<double>(i * 3 + d);
      const auto have = whole(dw);
      REQUIRE(have.size() == 3);
      for (std::size_t d = 0; d < 3; ++d) CHECK(have[d] == doctest::Approx(want[d] / N).epsilon(1e-15));
    });
  };
  check(static_cast<sw::shape<8>*>(nullptr), static_cast<line*>(nullptr), static_cast<sw::grad<S<0>>*>(nullptr));
  check(static_cast<sw::shape<7>*>(nullptr), static_cast<three*>(nullptr), static_cast<sw::grad<S<0>>*>(nullptr));
  check(static_cast<sw::shape<5>*>(nullptr), static_cast<square*>(nullptr), static_cast<sw::grad<S<0>, S<0>>*>(nullptr));
}

// Eight rows as strided_shard<0, 2>, shard<0> of a 2 x 2 mesh: the ranks hold rows 0-1, 4-5, 2-3, 6-7.
TEST_CASE("silent bug: pytorch#178785, softmax, sums, transposes and slices of a strided shard") {
  using X = tensor<sw::shape<8, 4>, square, sw::strided_shard<0, 2>, S<0>>;
  const auto at = [](std::int64_t i, std::int64_t j) { return static_cast<double>(i * 4 + j); };
  sw::launch<square>([&](auto& rank) {
    sw::eager on(rank);
    const auto x = X::distribute(on, counted(32));
    const auto all = std::tuple_cat(gradients_both_ways<row_sums, 0>(rank, x), gradients_both_ways<column_sums, 0>(rank, x),
                                    both_ways<row_softmax>(rank, x), gradients_both_ways<turned, 0>(rank, x),
                                    gradients_both_ways<middle_columns, 0>(rank, x));
    const auto& [rows, drows, columns, dcolumns, soft, turn, dturn, part, dpart] = all;
    const auto r = whole(rows), c = whole(columns), s = whole(soft), t = whole(turn), m = whole(part), dm = whole(dpart);
    REQUIRE(r.size() == 8);
    REQUIRE(c.size() == 4);
    REQUIRE(s.size() == 32);
    REQUIRE(t.size() == 32);
    REQUIRE(m.size() == 24);
    for (std::int64_t i = 0; i < 8; ++i) {
      CHECK(r[static_cast<std::size_t>(i)] == 4 * at(i, 0) + 6);
      double below = 0;
      for (std::int64_t j = 0; j < 4; ++j) below += std::exp(at(0, j) / 8);
      for (std::int64_t j = 0; j < 4; ++j) {
        CHECK(s[static_cast<std::size_t>(i * 4 + j)] == doctest::Approx(std::exp(at(0, j) / 8) / below).epsilon(1e-14));
        CHECK(t[static_cast<std::size_t>(j * 8 + i)] == 2 * at(i, j));
        CHECK(dm[static_cast<std::size_t>(i * 4 + j)] == (j == 0 ? 0 : 1));
      }
      for (std::int64_t j = 0; j < 3; ++j) CHECK(m[static_cast<std::size_t>(i * 3 + j)] == at(i, j + 1) + 1);
    }
    for (std::int64_t j = 0; j < 4; ++j) CHECK(c[static_cast<std::size_t>(j)] == 8 * 4 * 3.5 + 8.0 * static_cast<double>(j));
    CHECK(whole(drows) == std::vector<double>(32, 1));
    CHECK(whole(dcolumns) == std::vector<double>(32, 1));
    CHECK(whole(dturn) == std::vector<double>(32, 2));
  });
}

// Of 4 over 3 ranks the last one has none.
TEST_CASE("silent bug: torchao#3982, the largest magnitude of uneven and empty shards") {
  const auto check = []<std::int64_t N>(sw::shape<N>*) {
    sw::launch<three>([](auto& rank) {
      sw::eager on(rank);
      const auto x = tensor<sw::shape<N>, three, S<0>>::distribute(on, counted(N, -5));
      const auto [top] = both_ways<largest>(rank, x);
      CHECK(top.item() == std::max(5.0, static_cast<double>(N - 6)));
    });
  };
  check(static_cast<sw::shape<4>*>(nullptr));
  check(static_cast<sw::shape<7>*>(nullptr));
  check(static_cast<sw::shape<13>*>(nullptr));
}

TEST_CASE("silent bug: marin#9042, ranks that run different programs are told before the first collective") {
  using X = tensor<sw::shape<4>, line, S<0>>;
  using first = function_of<doubled, X>;
  using second = function_of<summed, X>;
  std::string what = "no exception";
  try {
    sw::launch<line>([](auto& rank) {
      using rank_type = std::remove_reference_t<decltype(rank)>;
      if (rank.index() == 0) sw::executor<first, rank_type> run(rank);
      else sw::executor<second, rank_type> run(rank);
    });
  } catch (const std::exception& e) {
    what = e.what();
  }
  CHECK(what.find("the ordered list of collectives") != std::string::npos);
}
