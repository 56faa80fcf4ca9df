// SPDX-License-Identifier: Apache-2.0
// Tensors of rank 6, 7 and 8: each family of functions gives what the same functions give of the same elements in five dims, on
// 1, 2 and 3 ranks, at once and as a program, with gradients.
#include <families.hpp>

namespace {

namespace sw = shardwise;
using namespace test::families;
using test::gradients_both_ways;
using test::values_of;

// The elements of (4, 3, 4, 2, 4), whose dims 0, 2 and 3 are two each for higher ranks.
template <int Rank>
struct dims;
template <>
struct dims<5> {
  using shape = sw::shape<4, 3, 4, 2, 4>;
  static constexpr auto rotated(const auto& x) { return sw::permute<4, 2, 0, 1, 3>(x); }
  static constexpr auto sums(const auto& x) { return sw::sum<0, 2>(x); }
  static constexpr auto means(const auto& x) { return sw::mean<1, 3>(x); }
  static constexpr auto sides(const auto& x) { return sw::amax<0, 1>(x); }
  static constexpr auto framed(const auto& x) { return sw::constant_pad<1, 2, 0, 0, 0, 0, 2, 1>(x, 0.5); }
  static constexpr auto longer(const auto& x) { return sw::expand<4, 3, 4, 2, 4>(x); }
};
template <>
struct dims<6> {
  using shape = sw::shape<2, 2, 3, 4, 2, 4>;
  static constexpr auto rotated(const auto& x) { return sw::permute<5, 3, 0, 1, 2, 4>(x); }
  static constexpr auto sums(const auto& x) { return sw::sum<0, 1, 3>(x); }
  static constexpr auto means(const auto& x) { return sw::mean<2, 4>(x); }
  static constexpr auto sides(const auto& x) { return sw::amax<0, 1, 2>(x); }
  static constexpr auto framed(const auto& x) { return sw::constant_pad<1, 2, 0, 0, 0, 0, 2, 1>(x, 0.5); }
  static constexpr auto longer(const auto& x) { return sw::expand<2, 2, 3, 4, 2, 4>(x); }
};
template <>
struct dims<7> {
  using shape = sw::shape<2, 2, 3, 2, 2, 2, 4>;
  static constexpr auto rotated(const auto& x) { return sw::permute<6, 3, 4, 0, 1, 2, 5>(x); }
  static constexpr auto sums(const auto& x) { return sw::sum<0, 1, 3, 4>(x); }
  static constexpr auto means(const auto& x) { return sw::mean<2, 5>(x); }
  static constexpr auto sides(const auto& x) { return sw::amax<0, 1, 2>(x); }
  static constexpr auto framed(const auto& x) { return sw::constant_pad<1, 2, 0, 0, 0, 0, 0, 0, 2, 1>(x, 0.5); }
  static constexpr auto longer(const auto& x) { return sw::expand<2, 2, 3, 2, 2, 2, 4>(x); }
};
template <>
struct dims<8> {
  using shape = sw::shape<2, 2, 3, 2, 2, 1, 2, 4>;
  static constexpr auto rotated(const auto& x) { return sw::permute<7, 3, 4, 0, 1, 2, 5, 6>(x); }
  static constexpr auto sums(const auto& x) { return sw::sum<0, 1, 3, 4>(x); }
  static constexpr auto means(const auto& x) { return sw::mean<2, 5, 6>(x); }
  static constexpr auto sides(const auto& x) { return sw::amax<0, 1, 2>(x); }
  static constexpr auto framed(const auto& x) { return sw::constant_pad<1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1>(x, 0.5); }
  static constexpr auto longer(const auto& x) { return sw::expand<2, 2, 3, 2, 2, 1, 2, 4>(x); }
};

// Of x and y of one shape, an index like them but for two elements of the last dim, and a weight (4, 4).
template <int Rank>
struct views {
  constexpr auto operator()(const auto& x, const auto& y, const auto&, const auto&) const {
    using on = dims<Rank>;
    const auto turned = on::rotated(x * y);
    const auto whole = sw::contiguous(turned);
    return std::tuple{turned,
                      sw::flatten<0, -3>(whole),
                      sw::transpose<-1, -2>(x),
                      sw::select<-1, 1>(turned),
                      on::longer(sw::narrow<-1, 1, 1>(x)),
                      sw::unflatten<-1, 2, -1>(sw::flatten<-2>(sw::contiguous(x))),
                      sw::squeeze<-1>(sw::slice<-1, 0, 1>(x)),
                      sw::unsqueeze<0>(sw::select<-1, 1>(x))};
  }
};
template <int Rank>
struct pointwise {
  constexpr auto operator()(const auto& x, const auto& y, const auto&, const auto& w) const {
    const auto row = sw::select<0, 1>(w), one = sw::narrow<-1, 2, 1>(y);
    return std::tuple{sw::tanh(x) * row + one, sw::where(sw::gt(x, y), x, y * row), sw::exp(x - y),
                      sw::relu(dims<Rank>::rotated(x)) + dims<Rank>::rotated(y)};
  }
};
template <int Rank>
struct reductions {
  constexpr auto operator()(const auto& x, const auto& y, const auto&, const auto&) const {
    using on = dims<Rank>;
    return std::tuple{on::sums(x * y), on::means(sw::exp(x)),      on::sides(x),     sw::vector_norm<2, -1>(x),
                      sw::sum(x),      sw::sum<0>(on::rotated(y)), sw::argmax<-1>(y)};
  }
};
template <int Rank>
struct products {
  constexpr auto operator()(const auto& x, const auto& y, const auto&, const auto& w) const {
    const auto square = sw::matmul(sw::transpose<-1, -2>(x), y);
    return std::tuple{square, sw::linear_product(x, w), sw::matmul(y, square)};
  }
};
template <int Rank>
struct row_wise {
  constexpr auto operator()(const auto& x, const auto& y, const auto&, const auto&) const {
    return std::tuple{sw::softmax<-1>(x) * y, sw::log_softmax<-1>(x), sw::logsumexp<-1>(y), sw::tril(x) + sw::triu<1>(y)};
  }
};
template <int Rank>
struct by_index {
  constexpr auto operator()(const auto& x, const auto& y, const auto& index, const auto& w) const {
    const auto part = sw::gather<-1>(x * y, index);
    return std::tuple{part, sw::scatter_add<-1>(x, index, part), sw::scatter<-1>(y, index, 3.0),
                      sw::index_select<2>(sw::flatten<0, -3>(sw::contiguous(x)), sw::slice<0, 0, 4>(sw::flatten(index))),
                      sw::embedding(w, sw::select<-1, 0>(index))};
  }
};
template <int Rank>
struct joins {
  constexpr auto operator()(const auto& x, const auto& y, const auto&, const auto&) const {
    const auto a = sw::select<-2, 0>(x), b = sw::select<-2, 1>(y);
    const auto [front, back] = sw::split<-1, 1, 3>(x * y);
    return std::tuple{sw::stack<-2>(a, b), sw::cat<-1>(back, x, front), sw::cat<0>(x, y), dims<Rank>::framed(x),
                      sw::full_like(x, 2) + y};
  }
};

template <template <int> class F, int Rank, int N, class Placement>
results of() {
  results whole;
  using shape = typename dims<Rank>::shape;
  sw::launch<mesh<N>>([&](auto& rank) {
    sw::eager on(rank);
    using full = sw::dtensor_of<double, shape, mesh<N>, Placement>;
    const auto x = full::distribute(on, some(384, 1));
    const auto y = full::distribute(on, some(384, 2));
    const auto w = sw::dtensor_of<double, sw::shape<4, 4>, mesh<N>, U>::distribute(on, some(16, 3));
    const auto all = sw::dtensor_of<std::int32_t, shape, mesh<N>, R>::distribute(on, ids(384, 4));
    const auto index = sw::contiguous(sw::narrow<-1, 1, 2>(all));
    const auto r = gradients_both_ways<sw::implicitly<F<Rank>>, 0, 1>(rank, x, y, index, w);
    std::apply(
        [&](const auto&... one) {
          const results mine{[](const auto& v) {
            const auto n = values_of(sw::contiguous(v).full_tensor().to_local());
            return numbers(n.begin(), n.end());
          }(one)...};
          if (rank.index() == 0) whole = mine;
        },
        r);
  });
  return whole;
}

template <template <int> class F>
void check() {
  const results low = of<F, 5, 1, R>();
  const auto like_low = [&](const results& r) { equal(r, low); };
  like_low(of<F, 6, 3, S<2>>());
  like_low(of<F, 7, 2, S<3>>());
  like_low(of<F, 8, 1, S<0>>());
  like_low(of<F, 8, 3, S<7>>());
}

}  // namespace

TEST_CASE("rank 6 to 8: views") { check<views>(); }
TEST_CASE("rank 6 to 8: pointwise functions and broadcast") { check<pointwise>(); }
TEST_CASE("rank 6 to 8: reductions") { check<reductions>(); }
TEST_CASE("rank 6 to 8: products") { check<products>(); }
TEST_CASE("rank 6 to 8: rows") { check<row_wise>(); }
TEST_CASE("rank 6 to 8: indexing") { check<by_index>(); }
TEST_CASE("rank 6 to 8: joins, paddings, fills") { check<joins>(); }
