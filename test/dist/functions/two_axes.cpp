// SPDX-License-Identifier: Apache-2.0
// Functions without a model on meshes of two axes: implicit mode, blocks as tensors, dropout and opaque calls,
// gradients.
#include <doctest/doctest.h>

#include <both_ways.hpp>

namespace {

using namespace test;

template <int N>
struct rows : sw::axis<N> {};
template <int N>
struct cols : sw::axis<N> {};
template <int M, int N>
using grid = sw::mesh<rows<M>, cols<N>>;
using R = sw::replicate;
using P = sw::partial<>;
template <int D>
using S = sw::shard<D>;
using numbers = std::vector<double>;

numbers some(std::int64_t n, int salt) {
  numbers v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<double>((i * 29 + static_cast<std::size_t>(salt) * 17) % 23) / 8 - 1.25;
  return v;
}

// Nothing here says where anything is.
struct block {
  constexpr auto operator()(const auto& x, const auto& w, const auto& b) const {
    const auto h = sw::layer_norm(x, b, b) + x;
    return sw::tanh(sw::matmul(h, w) + b) * x;
  }
};

using results = std::vector<numbers>;

// The whole result and gradients, of every placement given, on M x N ranks.
template <int M, int N, class X0, class X1, class W0, class W1, class B0, class B1>
results placed() {
  results whole;
  sw::launch<grid<M, N>>([&](auto& rank) {
    sw::eager on(rank);
    const auto x = sw::dtensor_of<double, sw::shape<4, 5, 6>, grid<M, N>, X0, X1>::distribute(on, some(120, 1));
    const auto w = sw::dtensor_of<double, sw::shape<6, 6>, grid<M, N>, W0, W1>::distribute(on, some(36, 2));
    const auto b = sw::dtensor_of<double, sw::shape<6>, grid<M, N>, B0, B1>::distribute(on, some(6, 3));
    const auto all = gradients_both_ways<sw::implicitly<block>, 0, 1, 2>(rank, x, w, b);
    std::apply(
        [&](const auto&... r) {
          const results mine{values_of(sw::contiguous(r).full_tensor().to_local())...};
          if (rank.index() == 0) whole = mine;
        },
        all);
    static_assert(std::tuple_element_t<1, std::remove_const_t<decltype(all)>>::sp == sw::dual(decltype(x)::sp));
    static_assert(std::tuple_element_t<2, std::remove_const_t<decltype(all)>>::sp == sw::dual(decltype(w)::sp));
    static_assert(std::tuple_element_t<3, std::remove_const_t<decltype(all)>>::sp == sw::dual(decltype(b)::sp));
  });
  return whole;
}

void compare(const results& single, const results& many) {
  REQUIRE(single.size() == 4);
  REQUIRE(many.size() == 4);
  for (std::size_t k = 0; k < 4; ++k) {
    REQUIRE(single[k].size() == many[k].size());
    for (std::size_t i = 0; i < single[k].size(); ++i) CHECK(many[k][i] == doctest::Approx(single[k][i]).epsilon(1e-11));
  }
}

struct masked {
  constexpr auto operator()(const auto& x) const { return sw::dropout(x * 2, 0.25); }
};

struct halves {
  template <class T>
  void operator()(std::span<T> out, std::span<const T> a, std::span<const T> b) const {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = (a[i] + b[i]) / 2;
  }
};
struct mean_of_two {
  constexpr auto operator()(const auto& x, const auto& y) const {
    return 0.25 + sw::opaque<halves>(sw::permute<1, 0>(x), y) - 1.5;
  }
};

}  // namespace

TEST_CASE("function: in implicit mode values and gradients do not depend on mesh and placement") {
  const results single = placed<1, 1, R, R, R, R, R, R>();
  compare(single, placed<2, 2, R, R, R, R, R, R>());
  compare(single, placed<2, 2, S<0>, S<2>, S<0>, S<1>, R, S<0>>());
  compare(single, placed<2, 3, S<1>, S<1>, R, S<0>, S<0>, P>());
  compare(single, placed<3, 2, P, S<0>, S<1>, P, R, R>());
}

TEST_CASE("function: a tensor's blocks stand side by side, whatever its placements, and become the tensor again") {
  sw::launch<grid<2, 2>>([](auto& rank) {
    sw::eager on(rank);
    using whole = sw::dtensor_of<double, sw::shape<5, 6>, grid<2, 2>, R, S<0>>;  // blocks of 3 and 2 rows
    const auto x = whole::distribute(on, some(30, 1));
    const auto local = sw::to_local(x);
    static_assert(sw::same_blocks(decltype(local)::sp, whole::sp) && decltype(local)::sp.extent[1] == 12);
    CHECK(!local.shares_storage_with(x));  // two ranks have each block: a write to one would not be seen in the other
    CHECK(values_of(local.to_local()) == values_of(x.to_local()));
    const auto back = sw::from_local<sw::shape<5, 6>, R, S<0>>(local);
    static_assert(decltype(back)::sp == whole::sp);
    CHECK(same_bits(back.to_local(), x.to_local()));
    // even blocks need no shape; the axes by name, the dim from the end
    using even = sw::dtensor_of<double, sw::shape<4, 6>, grid<2, 2>, S<1>, P>;
    const auto y = even::distribute(on, some(24, 2));
    const auto again = sw::from_local<sw::on<cols<2>, P>, sw::on<rows<2>, S<-1>>>(sw::to_local(y));
    static_assert(decltype(again)::sp == even::sp);
    CHECK(same_bits(again.to_local(), y.to_local()));
  });
}

TEST_CASE("function: the gradient of a dropout draws the mask of its forward, at once and as a program") {
  sw::launch<grid<2, 2>>([](auto& rank) {
    sw::eager on(rank);
    using type = sw::dtensor_of<double, sw::shape<8, 6>, grid<2, 2>, S<0>, S<1>>;
    const auto x = type::ones(on);
    const auto plain = masked{}(x);
    on.rewind(0);
    const auto all = sw::value_and_grad<masked, 0>(x);
    CHECK(on.site() == 1);
    check_program<gradient_of<masked, sw::wrt<0>, type>>(rank, all, x);
    const auto& [y, dx] = all;
    CHECK(same_bits(y.to_local(), plain.to_local()));
    CHECK(same_bits(y.to_local(), dx.to_local()));  // at ones they are one: 2 / 0.75, or 0
    int zeros = 0;
    const auto global = values_of(y.full_tensor().to_local());
    for (const double v : global) {
      CHECK((v == 0 || v == doctest::Approx(2 / 0.75)));
      zeros += v == 0 ? 1 : 0;
    }
    CHECK(zeros > 3);
    CHECK(zeros < 24);
  });
}

TEST_CASE("function: an opaque call sees dense blocks of all its operands") {
  sw::launch<grid<2, 2>>([](auto& rank) {
    sw::eager on(rank);
    using X = sw::dtensor_of<double, sw::shape<6, 4>, grid<2, 2>, S<1>, S<0>>;
    using Y = sw::dtensor_of<double, sw::shape<4, 6>, grid<2, 2>, S<0>, S<1>>;
    const numbers vx = some(24, 1), vy = some(24, 2);
    const auto [z] = both_ways<mean_of_two>(rank, X::distribute(on, vx), Y::distribute(on, vy));
    const auto whole = z.full_tensor();
    for (std::int64_t i = 0; i < 4; ++i)
      for (std::int64_t j = 0; j < 6; ++j)
        CHECK(whole.to_local()(i, j) ==
              (vx[static_cast<std::size_t>(j * 4 + i)] + vy[static_cast<std::size_t>(i * 6 + j)]) / 2 - 1.25);
  });
}
