// SPDX-License-Identifier: Apache-2.0
// Functions of joins, views, indexing and paddings in implicit mode, and their results and gradients under placements.
#pragma once

#include <both_ways.hpp>

namespace test::families {

template <int N>
struct line : sw::axis<N> {};
template <int N>
using mesh = sw::mesh<line<N>>;
using R = sw::replicate;
using U = sw::reduced;
using P = sw::partial<>;
template <int D>
using S = sw::shard<D>;
using numbers = std::vector<double>;
using results = std::vector<numbers>;

inline numbers some(std::int64_t n, int salt) {
  numbers v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<double>((i * 29 + static_cast<std::size_t>(salt) * 17) % 23) / 8 - 1.25;
  return v;
}
inline std::vector<std::int32_t> ids(std::int64_t n, int below) {
  std::vector<std::int32_t> v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<std::int32_t>((i * 7 + 3) % static_cast<std::size_t>(below));
  return v;
}

template <int N, class Placement, class T, std::int64_t... E>
using tensor = sw::dtensor_of<T, sw::shape<E...>, mesh<N>, Placement>;

// x, y (5, 6), index (5, 4) into 6 columns. Nothing here says where anything is.
struct joined {
  constexpr auto operator()(const auto& x, const auto& y, const auto&) const {
    const auto [a, b, c] = sw::split<1, 1, 3, 2>(x * y);
    const auto rows = sw::chunk<0, 2>(sw::cat<1>(c, a, b, y, x, x));
    return std::tuple{sw::stack<1>(x, y), std::get<1>(rows), sw::sum<0>(std::get<0>(rows))};
  }
};
struct viewed {
  constexpr auto operator()(const auto& x, const auto& y, const auto&) const {
    const auto wide = sw::expand<5, 6, 3>(sw::unsqueeze<2>(x)) * sw::unsqueeze<-1>(y);
    return std::tuple{sw::flatten<1>(wide), sw::transpose<0, 2>(wide), sw::select<1, 2>(wide),
                      sw::expand<2, -1, -1>(sw::narrow<0, 1, 3>(x))};
  }
};
struct indexed {
  constexpr auto operator()(const auto& x, const auto& y, const auto& index) const {
    const auto part = sw::gather<1>(x * y, index);
    return std::tuple{part, sw::scatter_add<1>(x, index, part), sw::scatter<1>(y, index, part * sw::narrow<1, 1, 4>(x)),
                      sw::scatter<1>(x, index, 3.0), sw::index_select<0>(x, sw::select<1, 0>(index))};
  }
};
struct framed {
  constexpr auto operator()(const auto& x, const auto& y, const auto&) const {
    return std::tuple{sw::constant_pad<1, 2>(x * y), sw::constant_pad<0, 0, 1, 1>(y, 2.5), sw::tril(x) + sw::triu<2>(y),
                      x + sw::full_like(x, 2), sw::zeros_like(y) + y};
  }
};
template <class F, int N, class PX, class PY, class PI>
results placed() {
  results whole;
  sw::launch<mesh<N>>([&](auto& rank) {
    sw::eager on(rank);
    const auto x = tensor<N, PX, double, 5, 6>::distribute(on, some(30, 1));
    const auto y = tensor<N, PY, double, 5, 6>::distribute(on, some(30, 2));
    const auto index = tensor<N, PI, std::int32_t, 5, 4>::distribute(on, ids(20, 5));
    const auto all = gradients_both_ways<sw::implicitly<F>, 0, 1>(rank, x, y, index);
    std::apply(
        [&](const auto&... r) {
          const results mine{values_of(sw::contiguous(r).full_tensor().to_local())...};
          if (rank.index() == 0) whole = mine;
        },
        all);
  });
  return whole;
}

inline void equal(const results& have, const results& want) {
  REQUIRE(have.size() == want.size());
  for (std::size_t k = 0; k < want.size(); ++k) {
    REQUIRE(have[k].size() == want[k].size());
    for (std::size_t i = 0; i < want[k].size(); ++i) CHECK(have[k][i] == doctest::Approx(want[k][i]).epsilon(1e-12));
  }
}

}  // namespace test::families
