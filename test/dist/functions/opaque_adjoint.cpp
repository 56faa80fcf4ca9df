// SPDX-License-Identifier: Apache-2.0
// Gradients through opaque functions that have an adjoint are those of the same function written with operations, on any number of
// ranks, however placed, eager, in programs and in train steps with and without passes.
#include <doctest/doctest.h>

#include <both_ways.hpp>
#include <results_run.hpp>
#include <shardwise/graph/functions/opaque.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/layout/layout.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/shardwise.hpp>

namespace {

using namespace test;

template <int N>
struct tp : sw::axis<N> {};
template <int N>
using mesh = sw::mesh<tp<N>>;
using R = sw::replicate;
using U = sw::reduced;
template <int D>
using S = sw::shard<D>;
template <int N, class Shape, class Placement>
using tensor = sw::dtensor_of<double, Shape, mesh<N>, Placement>;
using numbers = std::vector<double>;

numbers some(std::int64_t n, int seed) {
  numbers r(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < r.size(); ++i)
    r[i] = static_cast<double>((i * 37 + static_cast<std::size_t>(seed) * 11) % 23) / 8 - 1.25;
  return r;
}

// Rows x of four elements times weights w of a row, and their squares added: y = x w + x x.
struct rows {
  template <class T>
  void operator()(std::span<T> y, std::span<const T> x, std::span<const T> w) const {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i] * w[i % 4] + x[i] * x[i];
  }
  template <int K, class T>
  static void adjoint(std::span<T> d, std::span<const T> dy, std::span<const T> x, std::span<const T> w) {
    if constexpr (K == 0) {
      for (std::size_t i = 0; i < d.size(); ++i) d[i] = dy[i] * w[i % 4] + 2 * dy[i] * x[i];
    } else {
      for (T& e : d) e = 0;
      for (std::size_t i = 0; i < x.size(); ++i) d[i % 4] += dy[i] * x[i];
    }
  }
};
struct opaque_rows {
  constexpr auto operator()(const auto& x, const auto& w) const { return sw::exp(sw::opaque<rows>(x * 0.5, w)) * 0.25; }
};
struct plain_rows {
  constexpr auto operator()(const auto& x, const auto& w) const {
    const auto h = x * 0.5;
    return sw::exp(h * w + h * h) * 0.25;
  }
};

template <class A, class B>
void check_close(const A& a, const B& b) {
  static_assert(std::remove_cvref_t<A>::sp == std::remove_cvref_t<B>::sp);
  const auto p = values_of(a.to_local()), q = values_of(b.to_local());
  REQUIRE(p.size() == q.size());
  for (std::size_t i = 0; i < p.size(); ++i) CHECK(p[i] == doctest::Approx(q[i]).epsilon(1e-12));
}
template <class A, class B>
void check_all_close(const A& a, const B& b) {
  static_assert(std::tuple_size_v<A> == std::tuple_size_v<B>);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (check_close(std::get<I>(a), std::get<I>(b)), ...);
  }(std::make_index_sequence<std::tuple_size_v<A>>{});
}

// Value and both gradients of seven rows on N ranks.
template <int N, class PX, class PW>
void check_rows() {
  sw::launch<mesh<N>>([](auto& rank) {
    sw::eager on(rank);
    const auto x = tensor<N, sw::shape<7, 4>, PX>::distribute(on, some(28, 1));
    const auto w = tensor<N, sw::shape<4>, PW>::distribute(on, some(4, 2));
    check_all_close(gradients_both_ways<opaque_rows, 0, 1>(rank, x, w), sw::value_and_grad<plain_rows, 0, 1>(x, w));
  });
}

// Value and gradients by a program under passes, which keep every bit.
template <class... Passes>
void check_passes() {
  sw::launch<mesh<3>>([](auto& rank) {
    sw::eager on(rank);
    const auto x = tensor<3, sw::shape<7, 4>, S<0>>::distribute(on, some(28, 1));
    const auto w = tensor<3, sw::shape<4>, U>::distribute(on, some(4, 2));
    using X = std::remove_cvref_t<decltype(x)>;
    using W = std::remove_cvref_t<decltype(w)>;
    using step = sw::gradient_step<opaque_rows, mesh<3>, sw::inputs<sw::input_like<X>, sw::input_like<W>>, sw::wrt<0, 1>,
                                   sw::pipeline<Passes...>>;
    check_program<step>(rank, sw::value_and_grad<opaque_rows, 0, 1>(x, w), x, w);
  });
}

// Rows picked by numbers: integers, of which there is no gradient, beside an operand that is whole.
struct picked {
  template <class T>
  void operator()(std::span<T> y, std::span<const T> x, std::span<const std::int32_t> at) const {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = 3 * x[i] * static_cast<T>(at[i % at.size()]);
  }
  template <int K, class T>
  static void adjoint(std::span<T> d, std::span<const T> dy, std::span<const T>, std::span<const std::int32_t> at) {
    static_assert(K == 0);
    for (std::size_t i = 0; i < d.size(); ++i) d[i] = 3 * dy[i] * static_cast<T>(at[i % at.size()]);
  }
};
struct opaque_picked {
  constexpr auto operator()(const auto& x, const auto& at) const { return sw::opaque<picked>(x, at) * x; }
};

// Integers that are made of what a gradient is asked of: through them there is none.
struct opaque_truncated {
  constexpr auto operator()(const auto& x) const { return sw::opaque<picked>(x, sw::cast<std::int32_t>(x)); }
};

// A replicate result with a reduced operand: one rank keeps the whole gradient as its summand.
struct product {
  template <class T>
  void operator()(std::span<T> y, std::span<const T> a, std::span<const T> b) const {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = a[i] * b[i];
  }
  template <int K, class T>
  static void adjoint(std::span<T> d, std::span<const T> dy, std::span<const T> a, std::span<const T> b) {
    for (std::size_t i = 0; i < d.size(); ++i) d[i] = (K == 0 ? b[i] : a[i]) * dy[i];
  }
};
struct opaque_product {
  constexpr auto operator()(const auto& x, const auto& y) const { return sw::opaque<product>(x, y) * 2; }
};
// One operand given twice: its gradient is the sum of both.
struct opaque_square {
  constexpr auto operator()(const auto& x) const { return sw::opaque<product>(x, x); }
};

// --- in a train step --------------------------------------------------------------------------------------------------

template <bool Opaque>
struct of_rows {
  template <class Bound = sw::unbound>
  struct model : sw::module<model<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::linear<6, 4>, up), (sw::linear<4, 4>, beside), (sw::linear<4, 6>, down));
    constexpr auto forward(const auto& x) const {
      const auto h = up(x), g = sw::tanh(beside(h));
      if constexpr (Opaque) return down(sw::opaque<product>(h, g));
      else return down(h * g);
    }
  };
  template <class B>
  using of = model<B>;
};
template <bool Opaque, int D, class... More>
struct trained {
  template <class... Passes>
  using step = sw::train_step<of_rows<Opaque>::template of, results::task<results::dp<D>>,
                              sw::plan<sw::data_parallel<results::dp<D>>, More...>, results::mesh<D, 1>, sw::adam<>,
                              sw::pipeline<Passes...>, double>;
};

}  // namespace

TEST_CASE("opaque: gradients of shards and of what is whole beside them are those of the operations") {
  check_rows<1, S<0>, U>();
  check_rows<2, S<0>, U>();
  check_rows<3, S<0>, U>();
  check_rows<4, S<0>, U>();
}

TEST_CASE("opaque: gradients where all operands are whole") {
  check_rows<1, R, R>();
  check_rows<3, R, R>();
  check_rows<3, U, U>();
  check_rows<4, R, R>();
}

TEST_CASE("opaque: a replicate result's gradient of a reduced operand is one rank's summand") {
  sw::launch<mesh<3>>([](auto& rank) {
    sw::eager on(rank);
    const numbers vx = some(5, 1), vy = some(5, 2);
    const auto x = tensor<3, sw::shape<5>, R>::distribute(on, vx);
    const auto y = tensor<3, sw::shape<5>, U>::distribute(on, vy);
    const auto [z, dx, dy] = gradients_both_ways<opaque_product, 0, 1>(rank, x, y);
    static_assert(decltype(dx)::sp == decltype(x)::sp && decltype(dy)::sp == tensor<3, sw::shape<5>, sw::partial<>>::sp);
    const auto whole = values_of(dy.full_tensor().to_local()), own = values_of(dx.to_local());
    for (std::size_t i = 0; i < 5; ++i) {
      CHECK(own[i] == 2 * vy[i]);
      CHECK(whole[i] == 2 * vx[i]);
    }
  });
}

TEST_CASE("opaque: one operand given twice, and no elements") {
  sw::launch<mesh<4>>([](auto& rank) {
    sw::eager on(rank);
    const auto x = tensor<4, sw::shape<2>, S<0>>::distribute(on, some(2, 1));  // two ranks have none
    const auto [y, dx] = gradients_both_ways<opaque_square, 0>(rank, x);
    const auto in = values_of(x.to_local()), d = values_of(dx.to_local());
    for (std::size_t i = 0; i < in.size(); ++i) CHECK(d[i] == 2 * in[i]);
  });
}

TEST_CASE("opaque: integers have no gradient") {
  sw::launch<mesh<2>>([](auto& rank) {
    sw::eager on(rank);
    const auto x = tensor<2, sw::shape<3, 2>, S<0>>::distribute(on, some(6, 1));
    using indices = sw::dtensor_of<std::int32_t, sw::shape<2>, mesh<2>, R>;
    const auto at = indices::distribute(on, std::vector<std::int32_t>{2, -1});
    const auto [y, dx] = gradients_both_ways<opaque_picked, 0>(rank, x, at);
    const auto in = values_of(x.to_local()), d = values_of(dx.to_local());
    for (std::size_t i = 0; i < in.size(); ++i) CHECK(d[i] == 6 * in[i] * (i % 2 == 0 ? 2 : -1));
    const auto [z, dz] = gradients_both_ways<opaque_truncated, 0>(rank, x);
    const auto e = values_of(dz.to_local());
    for (std::size_t i = 0; i < in.size(); ++i) CHECK(e[i] == 3 * static_cast<int>(in[i]));
  });
}

TEST_CASE("opaque: passes keep the gradients") {
  check_passes<sw::fuse_kernels>();
  check_passes<sw::cancel_redistributions, sw::merge_common, sw::fuse_pointwise>();
  check_passes<sw::optimize_layout<sw::layout_mode::force>, sw::fuse_kernels>();
  check_passes<sw::rematerialise<50>>();
}

TEST_CASE("opaque: a train step through an opaque function learns as one through operations") {
  const auto close = [](const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-12));
  };
  const auto want = results::train<trained<false, 1>::step<>>();
  CHECK(want.front() > want.back());
  close(results::train<trained<true, 1>::step<>>(), want);
  close(results::train<trained<true, 2>::step<sw::fuse_kernels>>(), want);
  close(results::train<trained<true, 3>::step<sw::rematerialise<50>>>(), want);
  close(results::train<trained<true, 2, sw::checkpoint>::step<>>(), want);
  close(results::train<trained<true, 2, sw::accumulate<2>>::step<>>(), want);
}

TEST_CASE("opaque: an adjoint's call that is not placed by its law is found") {
  using X = tensor<3, sw::shape<7, 4>, S<0>>;
  using W = tensor<3, sw::shape<4>, U>;
  auto g = gradient_of<opaque_rows, sw::wrt<0, 1>, X, W>::program;
  CHECK(!sw::verify(g));
  int found = 0;
  for (int i = 0; i < g.node_count; ++i) {
    if (g.nodes[i].op != sw::op_code::opaque) continue;
    const auto k = sw::attributes_of<sw::opaque_attributes>(g.nodes[i].a).cotangent;
    if (k != 2) continue;  // the summand of w's cotangent, said to be whole
    ++found;
    const auto own = g.nodes[i].spec;
    g.nodes[i].spec = g.nodes[g.nodes[i].in[1]].spec;
    CHECK(sw::verify(g).what == sw::problem::graph_unplaced);
    g.nodes[i].spec = own;
  }
  CHECK(found == 1);
}
