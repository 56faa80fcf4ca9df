// SPDX-License-Identifier: Apache-2.0
// linear(x turned, w, b), turned back: the reference's result and gradients under every way of splitting it.
#include <doctest/doctest.h>

#include <golden_function.hpp>

namespace {

using namespace test;
using namespace test::golden_names;

struct reference {
  static constexpr const char* file = "linear_permute";
  using shapes = std::tuple<sw::shape<4, 16, 4>, sw::shape<4, 16>, sw::shape<4>, sw::shape<4, 4, 4>>;
  static std::vector<std::string> names() { return {"in.0", "in.1", "in.2", "in.grad_out"}; }
  static std::vector<std::string> wanted(std::initializer_list<int> operands) {
    std::vector<std::string> r{"", "ref.out"};
    for (const int k : operands) r.push_back("ref.grad." + std::to_string(k));
    return r;
  }
  static std::vector<double> value(const safetensors& file, const std::string& name) { return file.values(name); }
};

// `In` places x, `Product` the product before the bias is added. The loss has the reference's cotangent as its gradient.
template <class In, class Product>
struct turned_linear {
  constexpr auto operator()(const auto& x, const auto& w, const auto& b, const auto& cotangent) const {
    const auto turned = sw::contiguous(sw::permute<0, 2, 1>(In{}(x)));
    const auto y = sw::permute<0, 2, 1>(Product{}(sw::linear_product(turned, w)) + b);
    return std::tuple{sw::sum(y * cotangent), y};
  }
};

template <class F, class Mesh, class... Placed>
void check() {
  golden_function<reference, F, Mesh, sw::wrt<0, 1, 2>, Placed...>::check();
}
using as_placed = turned_linear<stay, stay>;
using anyhow = sw::implicitly<as_placed>;

// On one axis of N ranks, everything about communication written.
template <int N>
void check_written() {
  using mesh = sw::mesh<tp<N>>;
  // whole; rows of the batch; rows of the sequence, which is x's last dim
  check<as_placed, mesh, placed<R>, placed<R>, placed<R>, placed<R>>();
  check<as_placed, mesh, placed<S<0>>, placed<U>, placed<U>, placed<S<0>>>();
  check<as_placed, mesh, placed<S<2>>, placed<U>, placed<U>, placed<S<2>>>();
  // column-wise: output features; row-wise: input features, summed to whole or to rows of the batch
  check<as_placed, mesh, placed<U>, placed<S<0>>, placed<S<0>>, placed<S<1>>>();
  check<turned_linear<stay, move<tp<N>, R>>, mesh, placed<S<1>>, placed<S<1>>, placed<R>, placed<R>>();
  check<turned_linear<stay, move<tp<N>, S<0>>>, mesh, placed<S<1>>, placed<S<1>>, placed<U>, placed<S<0>>>();
  // column-wise of a sequence that is gathered first
  check<turned_linear<move<tp<N>, U>, stay>, mesh, placed<S<2>>, placed<S<0>>, placed<S<0>>, placed<S<1>>>();
}

template <int N>
void check_implicit() {
  using mesh = sw::mesh<tp<N>>;
  check<anyhow, mesh, placed<S<0>>, placed<R>, placed<R>, placed<R>>();
  check<anyhow, mesh, placed<S<2>>, placed<R>, placed<R>, placed<S<1>>>();
  check<anyhow, mesh, placed<R>, placed<S<0>>, placed<S<0>>, placed<R>>();
  check<anyhow, mesh, placed<S<1>>, placed<S<1>>, placed<R>, placed<R>>();
  check<anyhow, mesh, placed<P>, placed<P>, placed<S<0>>, placed<S<0>>>();
}

}  // namespace

TEST_CASE("linear of a turned tensor: one rank gives the reference") {
  check<as_placed, sw::mesh<tp<1>>, placed<R>, placed<R>, placed<R>, placed<R>>();
  check<anyhow, sw::mesh<tp<1>>, placed<S<1>>, placed<S<0>>, placed<R>, placed<P>>();
}
TEST_CASE("linear of a turned tensor: two ranks, written communication") { check_written<2>(); }
TEST_CASE("linear of a turned tensor: three ranks, which divide nothing, written communication") { check_written<3>(); }
TEST_CASE("linear of a turned tensor: four ranks, written communication") { check_written<4>(); }
TEST_CASE("linear of a turned tensor: two, three and four ranks, implicit communication") {
  check_implicit<2>();
  check_implicit<3>();
  check_implicit<4>();
}
TEST_CASE("linear of a turned tensor: data parallel times tensor parallel") {
  using mesh = sw::mesh<dp<2>, tp<2>>;
  check<as_placed, mesh, placed<S<0>, U>, placed<U, S<0>>, placed<U, S<0>>, placed<S<0>, S<1>>>();
  check<turned_linear<stay, move<tp<2>, R>>, mesh, placed<S<0>, S<1>>, placed<U, S<1>>, placed<U, R>, placed<S<0>, R>>();
  check<turned_linear<stay, move<tp<2>, S<1>>>, mesh, placed<S<0>, S<1>>, placed<U, S<1>>, placed<U, U>,
        placed<S<0>, S<2>>>();
  check<anyhow, mesh, placed<S<0>, S<2>>, placed<R, S<1>>, placed<R, R>, placed<R, R>>();
  using uneven = sw::mesh<dp<2>, tp<3>>;
  check<as_placed, uneven, placed<S<0>, U>, placed<U, S<0>>, placed<U, S<0>>, placed<S<0>, S<1>>>();
  check<anyhow, uneven, placed<S<0>, S<0>>, placed<S<1>, P>, placed<R, S<0>>, placed<P, S<2>>>();
}
