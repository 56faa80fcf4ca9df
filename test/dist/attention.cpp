// SPDX-License-Identifier: Apache-2.0
// scaled_dot_product_attention against plain loops, with every option, across the tiles of the kernel and on meshes; its gradients
// against differences and against a composition.
#include <doctest/doctest.h>

#include <attention_reference.hpp>
#include <cmath>
#include <figures.hpp>
#include <limits>
#include <shardwise/laws/gradcheck.hpp>
#include <shardwise/shardwise.hpp>
#include <vector>

namespace {

namespace sw = shardwise;
namespace ref = attention_reference;
using figures::apart;
using figures::some;
using figures::whole;
using options = sw::attention_options;

struct one : sw::axis<1> {};
using alone = sw::mesh<one>;

constexpr std::size_t count(int a, int b, int c, int d) { return static_cast<std::size_t>(a * b * c * d); }

template <class T, class Shape, class Mesh = alone, class... On>
using tensor_of = sw::dtensor_of<T, Shape, Mesh, On...>;

// O on one rank, in both layouts, with what `further` makes of the eager run.
template <options O, int B, int H, int G, int Tq, int Tk, int D, int Dv, class T = double, class F>
double off(const ref::further& f, F&& further) {
  const auto q = some(count(B, H, Tq, D), 0), k = some(count(B, G, Tk, D), 1), v = some(count(B, G, Tk, Dv), 2);
  const double scale = O.scale.value() == O.scale.value() ? O.scale.value() : 1 / std::sqrt(double(D));
  const auto want = ref::attended({B, H, G, Tq, Tk, D, Dv}, O.causal, O.window, scale, q, k, v, f);
  double worst = 0;
  sw::launch<alone>([&](auto& rank) {
    sw::eager e(rank);
    constexpr auto run = []<options P>(const auto&... x) { return sw::scaled_dot_product_attention<P>(x...); };
    const auto cast = [](const std::vector<double>& x) { return std::vector<T>(x.begin(), x.end()); };
    constexpr options by_time = [] {
      options o = O;
      o.layout = sw::head_layout::bthd;
      return o;
    }();
    std::apply(
        [&](const auto&... more) {
          const auto y = run.template operator()<O>(tensor_of<T, sw::shape<B, H, Tq, D>>::distribute(e, cast(q)),
                                                    tensor_of<T, sw::shape<B, G, Tk, D>>::distribute(e, cast(k)),
                                                    tensor_of<T, sw::shape<B, G, Tk, Dv>>::distribute(e, cast(v)), more...);
          worst = apart(whole(y), want);
          const auto z = run.template operator()<by_time>(
              tensor_of<T, sw::shape<B, Tq, H, D>>::distribute(e, cast(ref::turned(q, B, H, Tq, D))),
              tensor_of<T, sw::shape<B, Tk, G, D>>::distribute(e, cast(ref::turned(k, B, G, Tk, D))),
              tensor_of<T, sw::shape<B, Tk, G, Dv>>::distribute(e, cast(ref::turned(v, B, G, Tk, Dv))), more...);
          worst = std::max(worst, apart(whole(z), ref::turned(want, B, H, Tq, Dv)));
        },
        further(e));
  });
  return worst;
}
constexpr auto nothing = [](auto&) { return std::tuple<>{}; };

TEST_CASE("attention: causal or not, windows, scales, groups of heads and other sizes, over several tiles") {
  CHECK(off<options{}, 2, 3, 3, 5, 5, 4, 4>({}, nothing) < 1e-14);
  CHECK(off<options{.causal = false}, 2, 3, 3, 5, 7, 4, 6>({}, nothing) < 1e-14);
  CHECK(off<options{}, 1, 2, 2, 9, 4, 3, 2>({}, nothing) < 1e-14);  // more queries than keys
  CHECK(off<options{}, 1, 2, 2, 1, 1, 1, 1>({}, nothing) < 1e-14);
  CHECK(off<options{}, 1, 2, 2, 130, 130, 5, 5>({}, nothing) < 1e-13);  // three tiles of queries
  CHECK(off<options{}, 1, 1, 1, 70, 600, 3, 3>({}, nothing) < 1e-13);
  CHECK(off<options{.causal = false}, 1, 1, 1, 70, 600, 3, 3>({}, nothing) < 1e-13);  // three tiles of keys
  CHECK(off<options{}, 1, 1, 1, 600, 600, 3, 2>({}, nothing) < 1e-13);
  CHECK(off<options{.window = 1}, 1, 2, 2, 20, 20, 3, 2>({}, nothing) < 1e-14);
  CHECK(off<options{.window = 7}, 1, 2, 2, 150, 150, 3, 2>({}, nothing) < 1e-13);
  CHECK(off<options{.window = 300}, 1, 1, 1, 700, 700, 3, 2>({}, nothing) < 1e-13);
  CHECK(off<options{.scale = 0.3}, 1, 2, 2, 9, 9, 3, 2>({}, nothing) < 1e-14);
  CHECK(off<options{.scale = -2}, 1, 2, 2, 9, 9, 3, 2>({}, nothing) < 1e-13);
  CHECK(off<options{.enable_gqa = true}, 2, 6, 2, 9, 9, 3, 3>({}, nothing) < 1e-14);
  CHECK(off<options{.causal = false, .enable_gqa = true}, 1, 6, 1, 70, 300, 3, 2>({}, nothing) < 1e-13);
  CHECK(off<options{}, 1, 2, 2, 600, 600, 16, 16, float>({}, nothing) < 1e-5);
}

// A window behind the last key: queries that see none give 0.
TEST_CASE("attention: a query without keys gives zeros, and none of its neighbours notices") {
  CHECK(off<options{.window = 3}, 1, 2, 2, 90, 6, 3, 2>({}, nothing) < 1e-14);
  ref::further f;
  f.seen.assign(count(1, 2, 80, 80), 1);
  std::vector<std::int32_t> mask(f.seen.size(), 1);
  for (std::size_t i = 0; i < f.seen.size(); ++i)
    if (i / 80 % 80 == 7 || i / 80 % 80 == 70) mask[i] = f.seen[i] = 0;
  CHECK(off<options{.causal = false}, 1, 2, 2, 80, 80, 3, 2>(f, [&](auto& e) {
          return std::tuple{tensor_of<std::int32_t, sw::shape<1, 2, 80, 80>>::distribute(e, mask)};
        }) < 1e-14);
}

TEST_CASE("attention: a bias, masks and documents, broadcast along any dim") {
  constexpr int B = 2, H = 3, T = 70;
  const auto broadcast = [](int nb, int nh, int nq, int nk, const auto& given) {
    std::vector<typename std::remove_cvref_t<decltype(given)>::value_type> all;
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int i = 0; i < T; ++i)
          for (int j = 0; j < T; ++j)
            all.push_back(given[static_cast<std::size_t>(((b % nb * nh + h % nh) * nq + i % nq) * nk + j % nk)]);
    return all;
  };
  const auto bias_of = [&]<class Shape>(Shape, int nb, int nh, int nq, int nk) {
    const auto given = some(count(nb, nh, nq, nk), 5);
    ref::further f;
    f.bias = broadcast(nb, nh, nq, nk, given);
    return off<options{}, B, H, H, T, T, 3, 2>(
        f, [&](auto& e) { return std::tuple{tensor_of<double, Shape>::distribute(e, given)}; });
  };
  CHECK(bias_of(sw::shape<B, H, T, T>{}, B, H, T, T) < 1e-13);
  CHECK(bias_of(sw::shape<T, T>{}, 1, 1, T, T) < 1e-13);
  CHECK(bias_of(sw::shape<H, 1, T>{}, 1, H, 1, T) < 1e-13);
  CHECK(bias_of(sw::shape<B, 1, T, 1>{}, B, 1, T, 1) < 1e-13);

  const auto mask_of = [&]<class Shape>(Shape, int nb, int nh, int nq, int nk) {
    std::vector<std::int32_t> given;
    for (const double x : some(count(nb, nh, nq, nk), 6)) given.push_back(x > 0.2 ? 3 : 0);
    ref::further f;
    for (const int x : broadcast(nb, nh, nq, nk, given)) f.seen.push_back(x);
    return off<options{.causal = false}, B, H, H, T, T, 3, 2>(
        f, [&](auto& e) { return std::tuple{tensor_of<std::int32_t, Shape>::distribute(e, given)}; });
  };
  CHECK(mask_of(sw::shape<B, H, T, T>{}, B, H, T, T) < 1e-13);
  CHECK(mask_of(sw::shape<B, 1, 1, T>{}, B, 1, 1, T) < 1e-13);

  std::vector<std::int32_t> ids;
  for (int b = 0; b < B; ++b)
    for (int t = 0; t < T; ++t) ids.push_back(b == 0 ? t / 20 : t % 3);
  ref::further f;
  for (int b = 0; b < B; ++b)
    for (int h = 0; h < H; ++h)
      for (int i = 0; i < T; ++i)
        for (int j = 0; j < T; ++j)
          f.seen.push_back(ids[static_cast<std::size_t>(b * T + i)] == ids[static_cast<std::size_t>(b * T + j)] ? 1 : 0);
  const auto given = [&](auto& e) { return sw::documents(tensor_of<std::int32_t, sw::shape<B, T>>::distribute(e, ids)); };
  CHECK(off<options{}, B, H, H, T, T, 3, 2>(f, [&](auto& e) { return std::tuple{given(e)}; }) < 1e-13);
  const auto bias = some(count(1, 1, T, T), 7);
  f.bias = broadcast(1, 1, T, T, bias);
  CHECK(off<options{.window = 30}, B, H, H, T, T, 3, 2>(f, [&](auto& e) {
          return std::tuple{tensor_of<double, sw::shape<T, T>>::distribute(e, bias), given(e)};
        }) < 1e-13);
}

// --- gradients --------------------------------------------------------------------------------------------------------------

template <options O>
struct plain {
  constexpr auto operator()(const auto& q, const auto& k, const auto& v) const {
    return sw::scaled_dot_product_attention<O>(q, k, v);
  }
};
// The operands' own numbers make a bias, which is detached, a mask, and documents.
template <options O>
struct biased {
  constexpr auto operator()(const auto& q, const auto& k, const auto& v) const {
    const auto bias = sw::detach(sw::matmul(k, sw::transpose<2, 3>(v)));
    return sw::scaled_dot_product_attention<O>(q, k, v, sw::contiguous(bias) * 0.0);
  }
};
template <options O, int Diagonal>
struct masked {
  constexpr auto operator()(const auto& q, const auto& k, const auto& v) const {
    const auto order = sw::tril<Diagonal>(sw::full_like(sw::matmul(q, sw::transpose<2, 3>(k)), 1.0));
    return sw::scaled_dot_product_attention<O>(q, k, v, sw::gt(sw::contiguous(order), 0.5));
  }
};
// Of a view, which is made dense, in one operand; and of one tensor in all three places.
struct of_a_view {
  constexpr auto operator()(const auto& q, const auto& k, const auto& v) const {
    return sw::scaled_dot_product_attention(sw::transpose<1, 2>(q), k, v);
  }
};
struct of_itself {
  constexpr auto operator()(const auto& x) const { return sw::scaled_dot_product_attention(x, x, x); }
};

TEST_CASE("attention: gradients against differences, with every option") {
  using q = sw::shape<2, 2, 3, 2>;
  CHECK(sw::gradcheck<plain<options{}>, q, q, q>() == 72);
  CHECK(sw::gradcheck<plain<options{.causal = false}>, q, sw::shape<2, 2, 4, 2>, sw::shape<2, 2, 4, 3>>() == 24 + 32 + 48);
  CHECK(sw::gradcheck<plain<options{.layout = sw::head_layout::bthd, .window = 2, .scale = 0.7}>, sw::shape<1, 4, 2, 2>,
                      sw::shape<1, 4, 2, 2>, sw::shape<1, 4, 2, 3>>() == 16 + 16 + 24);
  CHECK(sw::gradcheck<plain<options{.enable_gqa = true}>, sw::shape<1, 4, 3, 2>, sw::shape<1, 2, 3, 2>,
                      sw::shape<1, 2, 3, 2>>() == 24 + 12 + 12);
  CHECK(sw::gradcheck<biased<options{}>, q, q, q>() == 72);
  CHECK(sw::gradcheck<masked<options{.causal = false}, 1>, q, q, q>() == 72);
  CHECK(sw::gradcheck<masked<options{.causal = false}, -1>, q, q, q>() == 72);  // the first query sees no key
  CHECK(sw::gradcheck<of_a_view, sw::shape<2, 3, 2, 2>, q, q>() == 72);
  CHECK(sw::gradcheck<of_itself, q>() == 24);
}

// Result and gradients in one list.
template <class F, int B, int H, int Tq, int Tk, int D, int Dv, class T>
std::vector<double> with_gradients() {
  std::vector<double> all;
  sw::launch<alone>([&](auto& rank) {
    sw::eager e(rank);
    const auto cast = [](const std::vector<double>& x) { return std::vector<T>(x.begin(), x.end()); };
    const auto r = sw::value_and_grad<sw::detail::weighted_result<F>, 1, 2, 3>(
        tensor_of<T, sw::shape<B, H, Tq, Dv>>::distribute(e, cast(some(count(B, H, Tq, Dv), 3))),
        tensor_of<T, sw::shape<B, H, Tq, D>>::distribute(e, cast(some(count(B, H, Tq, D), 0))),
        tensor_of<T, sw::shape<B, H, Tk, D>>::distribute(e, cast(some(count(B, H, Tk, D), 1))),
        tensor_of<T, sw::shape<B, H, Tk, Dv>>::distribute(e, cast(some(count(B, H, Tk, Dv), 2))));
    std::apply(
        [&](const auto&... t) {
          (([&] {
             for (const double v : whole(t)) all.push_back(v);
           }()),
           ...);
        },
        r);
  });
  return all;
}

TEST_CASE("attention: over several tiles, result and gradients are those of products and a softmax") {
  CHECK(apart(with_gradients<plain<options{}>, 1, 2, 330, 330, 5, 4, double>(),
              with_gradients<ref::composed<true>, 1, 2, 330, 330, 5, 4, double>()) < 1e-12);
  CHECK(apart(with_gradients<plain<options{.causal = false}>, 2, 1, 70, 530, 4, 6, double>(),
              with_gradients<ref::composed<false>, 2, 1, 70, 530, 4, 6, double>()) < 1e-12);
  CHECK(apart(with_gradients<plain<options{}>, 1, 2, 330, 330, 16, 16, float>(),
              with_gradients<ref::composed<true>, 1, 2, 330, 330, 16, 16, float>()) < 2e-5);
}

// --- what is not finite -----------------------------------------------------------------------------------------------------

TEST_CASE("attention: a NaN reaches the queries that see it and no other, wherever tiles end") {
  constexpr int T = 140, D = 4;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const int operand : {0, 1, 2})
    sw::launch<alone>([&](auto& rank) {
      sw::eager e(rank);
      std::vector<double> x[3] = {some(T * D, 0), some(T * D, 1), some(T * D, 2)};
      x[operand][100 * D + 1] = nan;
      using tensor = tensor_of<double, sw::shape<1, 1, T, D>>;
      const auto y = whole(sw::scaled_dot_product_attention<options{.window = 9}>(
          tensor::distribute(e, x[0]), tensor::distribute(e, x[1]), tensor::distribute(e, x[2])));
      for (int i = 0; i < T; ++i) {
        const bool sees = operand == 0 ? i == 100 : i >= 100 && i < 109;
        for (int c = 0; c < D; ++c) {
          const double v = y[static_cast<std::size_t>(i * D + c)];
          CHECK((v != v) == (sees && (operand != 2 || c == 1)));
        }
      }
    });
}

// --- on meshes --------------------------------------------------------------------------------------------------------------

template <options O, bool Documents>
struct marked {
  constexpr auto operator()(const auto& w, const auto& q, const auto& k, const auto& v, const auto& ids) const {
    if constexpr (Documents) return sw::scaled_dot_product_attention<O>(q, k, v, sw::documents(ids)) * w;
    else return sw::scaled_dot_product_attention<O>(q, k, v) * w;
  }
};
template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};
template <class Q, class K = Q, class V = K, class Ids = sw::replicate>
struct placed {
  using q = Q;
  using k = K;
  using v = V;
  using ids = Ids;
};
using whole_here = placed<sw::replicate>;
using reduced_here = placed<sw::reduced>;
using by_batch = placed<sw::shard<0>, sw::shard<0>, sw::shard<0>, sw::shard<0>>;
using by_heads = placed<sw::shard<1>>;
using by_queries = placed<sw::shard<2>, sw::reduced, sw::reduced>;
using by_size = placed<sw::reduced, sw::reduced, sw::shard<3>>;

// Result and gradients of q, k, v (batch, heads, time, size), placed so on a mesh of two axes.
template <class F, int G, int N, int M, class A, class B>
std::vector<double> on_mesh() {
  constexpr int batch = 3, H = 6, T = 7, D = 4, Dv = 5;
  using mesh = sw::mesh<dp<N>, tp<M>>;
  std::vector<double> all;
  sw::launch<mesh>([&](auto& rank) {
    sw::eager e(rank);
    e.start_step(17, 3);
    const auto put = [&]<class Shape, class P, class Q>(Shape, P, Q, std::size_t n, double salt) {
      return tensor_of<double, Shape, mesh, sw::on<dp<N>, P>, sw::on<tp<M>, Q>>::distribute(e, some(n, salt));
    };
    const auto q = put(sw::shape<batch, H, T, D>{}, typename A::q{}, typename B::q{}, count(batch, H, T, D), 0);
    const auto k = put(sw::shape<batch, G, T, D>{}, typename A::k{}, typename B::k{}, count(batch, G, T, D), 1);
    const auto v = put(sw::shape<batch, G, T, Dv>{}, typename A::v{}, typename B::v{}, count(batch, G, T, Dv), 2);
    std::vector<std::int32_t> number;
    for (int i = 0; i < batch * T; ++i) number.push_back(i % T / 3);
    const auto ids = tensor_of<std::int32_t, sw::shape<batch, T>, mesh, sw::on<dp<N>, typename A::ids>,
                               sw::on<tp<M>, typename B::ids>>::distribute(e, number);
    using result = std::remove_cvref_t<decltype(sw::scaled_dot_product_attention<options{.enable_gqa = true}>(q, k, v))>;
    const auto w = result::distribute(e, some(count(batch, H, T, Dv), 3));
    const auto r = sw::value_and_grad<F, 1, 2, 3>(w, q, k, v, ids);
    std::vector<double> here;
    std::apply(
        [&](const auto&... t) {
          (([&] {
             for (const double x : whole(t)) here.push_back(x);
           }()),
           ...);
        },
        r);
    if (rank.index() == 0) all = here;
  });
  return all;
}

// Law: result and gradients are one device's under every placement that is admitted, windows, documents and drops included.
template <class F, int G>
void same_everywhere() {
  const auto want = on_mesh<F, G, 1, 1, whole_here, whole_here>();
  CHECK(want.size() > 1000);
  CHECK(apart(want, on_mesh<F, G, 2, 1, by_batch, whole_here>()) < 1e-13);
  CHECK(apart(want, on_mesh<F, G, 4, 1, by_batch, reduced_here>()) < 1e-13);  // 1, 1, 1 and 0
  CHECK(apart(want, on_mesh<F, G, 3, 1, by_heads, whole_here>()) < 1e-13);
  CHECK(apart(want, on_mesh<F, G, 2, 1, by_queries, whole_here>()) < 1e-13);
  CHECK(apart(want, on_mesh<F, G, 4, 1, by_queries, whole_here>()) < 1e-13);  // 2, 2, 2 and 1
  CHECK(apart(want, on_mesh<F, G, 2, 3, by_batch, by_heads>()) < 1e-13);
  CHECK(apart(want, on_mesh<F, G, 3, 2, by_heads, by_queries>()) < 1e-13);
  CHECK(apart(want, on_mesh<F, G, 2, 2, by_queries, by_size>()) < 1e-13);
}

TEST_CASE("attention: cut along batch, heads, queries and the size of values, with gradients") {
  same_everywhere<marked<options{}, false>, 6>();
  same_everywhere<marked<options{.enable_gqa = true, .window = 3}, true>, 3>();
}

TEST_CASE("attention: weights are dropped by their place in the whole alone, and again in the adjoint") {
  same_everywhere<marked<options{.dropout = 0.4}, false>, 6>();
  same_everywhere<marked<options{.enable_gqa = true, .dropout = 0.4}, true>, 3>();
}

// With values of ones a query's result is the sum of its weights: the kept ones' share, over 1 - p.
TEST_CASE("attention: as many weights are dropped as asked for, others at another site and another step") {
  constexpr int T = 64;
  using tensor = tensor_of<double, sw::shape<2, 4, T, 3>>;
  sw::launch<alone>([&](auto& rank) {
    sw::eager e(rank);
    const auto q = tensor::distribute(e, std::vector<double>(2 * 4 * T * 3, 0.0));
    const auto v = tensor::distribute(e, std::vector<double>(2 * 4 * T * 3, 1.0));
    const auto dropped = [&]<options O>() { return whole(sw::scaled_dot_product_attention<O>(q, q, v)); };
    const auto draw = [&] { return dropped.template operator()<options{.causal = false, .dropout = 0.25}>(); };
    e.start_step(5, 1);
    const auto first = draw(), second = draw();
    e.start_step(5, 2);
    const auto other = draw();
    e.start_step(5, 1);
    CHECK(draw() == first);
    CHECK(apart(first, second) > 0.01);
    CHECK(apart(first, other) > 0.01);
    double mean = 0;
    for (const double x : first) mean += x / static_cast<double>(first.size());
    CHECK(std::abs(mean - 1) < 0.02);  // of 32768 weights, each once or not at all: a deviation of 0.0032
    for (const double x : dropped.template operator()<options{.dropout = 1.0}>()) CHECK(x == 0);
    for (const double x : dropped.template operator()<options{.dropout = 0.0}>()) CHECK(std::abs(x - 1) < 1e-14);
  });
}

// Which weights are dropped, and by how much the others grow, is what queries and keys of zeros say of values that are a unit matrix.
struct dropped_of {
  constexpr auto operator()(const auto& w, const auto& q, const auto& k, const auto& v, const auto&) const {
    return sw::scaled_dot_product_attention<options{.causal = false, .dropout = 0.5}>(q, k, v) * w;
  }
};
struct multiplied {
  constexpr auto operator()(const auto& w, const auto& q, const auto& k, const auto& v, const auto& kept) const {
    const auto scores = sw::matmul(q, sw::transpose<2, 3>(k)) * ref::inverse_root(3);
    return sw::matmul(sw::softmax(scores) * kept, v) * w;
  }
};
TEST_CASE("attention: result and gradients with dropped weights are those of a softmax times what is kept") {
  constexpr int T = 70;
  using tensor = tensor_of<double, sw::shape<1, 2, T, 3>>;
  using square = tensor_of<double, sw::shape<1, 2, T, T>>;
  sw::launch<alone>([&](auto& rank) {
    sw::eager e(rank);
    const auto zeros = tensor::distribute(e, std::vector<double>(2 * T * 3, 0.0));
    std::vector<double> unit(2 * T * T, 0.0);
    for (int i = 0; i < 2 * T; ++i) unit[static_cast<std::size_t>(i * T + i % T)] = 1;
    e.start_step(9, 1);
    const auto kept = sw::scaled_dot_product_attention<options{.causal = false, .dropout = 0.5}>(
                          zeros, zeros, square::distribute(e, unit)) *
                      static_cast<double>(T);
    const auto w = tensor::distribute(e, some(2 * T * 3, 3)), q = tensor::distribute(e, some(2 * T * 3, 0)),
               k = tensor::distribute(e, some(2 * T * 3, 1)), v = tensor::distribute(e, some(2 * T * 3, 2));
    e.start_step(9, 1);
    const auto one_operation = sw::value_and_grad<dropped_of, 1, 2, 3>(w, q, k, v, kept);
    const auto several = sw::value_and_grad<multiplied, 1, 2, 3>(w, q, k, v, kept);
    CHECK(apart(whole(std::get<0>(one_operation)), whole(std::get<0>(several))) < 1e-12);
    CHECK(apart(whole(std::get<1>(one_operation)), whole(std::get<1>(several))) < 1e-12);
    CHECK(apart(whole(std::get<2>(one_operation)), whole(std::get<2>(several))) < 1e-12);
    CHECK(apart(whole(std::get<3>(one_operation)), whole(std::get<3>(several))) < 1e-12);
  });
}

// --- memory -----------------------------------------------------------------------------------------------------------------

template <int T>
using step_of = sw::gradient_step<
    plain<options{}>, alone,
    sw::inputs<sw::input_tensor<double, sw::shape<1, 2, T, 4>>, sw::input_tensor<double, sw::shape<1, 2, T, 4>>,
               sw::input_tensor<double, sw::shape<1, 2, T, 4>>>,
    sw::wrt<0, 1, 2>>;
// Law: from T to 2T as many bytes come as from 2T to 3T, and the second time twice T.
TEST_CASE("attention: a step's memory grows with the time, not with its square") {
  constexpr std::int64_t a = step_of<1024>::peak_bytes, b = step_of<2048>::peak_bytes, c = step_of<4096>::peak_bytes;
  CHECK(c - b == 2 * (b - a));
  CHECK(a < 1024 * 1024);  // the scores of one head would be 8 times that
}

}  // namespace
