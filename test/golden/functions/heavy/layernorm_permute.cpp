// SPDX-License-Identifier: Apache-2.0
// A norm of turned rows, multiplied with the tensor itself: the reference's result and gradients, however placed.
#include <doctest/doctest.h>

#include <golden_function.hpp>

namespace {

using namespace test;
using namespace test::golden_names;

struct reference {
  static constexpr const char* file = "layernorm_permute";
  using shapes = std::tuple<sw::shape<4, 4, 4>, sw::shape<4>, sw::shape<4>, sw::shape<4, 4, 4>>;
  static std::vector<std::string> names() { return {"in.0", "in.1", "in.2", "in.grad_out"}; }
  static std::vector<std::string> wanted(std::initializer_list<int> operands) {
    std::vector<std::string> r{"", "ref.out"};
    for (const int k : operands) r.push_back("ref.grad." + std::to_string(k));
    return r;
  }
  static std::vector<double> value(const safetensors& file, const std::string& name) { return file.values(name); }
};

// `In` places the norm's operand, `Left` and `Right` the product's, `Out` its result.
template <class In, class Left = stay, class Right = stay, class Out = stay>
struct norm_times_self {
  constexpr auto operator()(const auto& x, const auto& w, const auto& b, const auto& cotangent) const {
    const auto rows = sw::contiguous(sw::permute<0, 2, 1>(In{}(x)));
    const auto normed = sw::permute<0, 2, 1>(sw::layer_norm(rows, w, b));
    const auto y = sw::permute<0, 2, 1>(Out{}(sw::matmul(Left{}(normed), Right{}(x))));
    return std::tuple{sw::sum(y * cotangent), y};
  }
};

template <class F, class Mesh, class... Placed>
void check() {
  golden_function<reference, F, Mesh, sw::wrt<0, 1, 2>, Placed...>::check();
}
using as_placed = norm_times_self<stay>;
using anyhow = sw::implicitly<as_placed>;

template <int N>
void check_written() {
  using mesh = sw::mesh<tp<N>>;
  using to_r = move<tp<N>, R>;
  using to_u = move<tp<N>, U>;
  check<as_placed, mesh, placed<R>, placed<R>, placed<R>, placed<R>>();
  check<as_placed, mesh, placed<S<0>>, placed<U>, placed<U>, placed<S<0>>>();
  // rows of the sequence: x's last dim. The norm's columns meet rows of x that are exchanged, and sums are scattered;
  // or the norm is gathered, and x's columns stay
  check<norm_times_self<stay, stay, move<tp<N>, S<1>>, move<tp<N>, S<1>>>, mesh, placed<S<2>>, placed<U>, placed<U>,
        placed<S<2>>>();
  check<norm_times_self<stay, to_u>, mesh, placed<S<2>>, placed<U>, placed<U>, placed<S<1>>>();
  // the normalised dim is sharded: gathered for the norm, whose result is cut again for the product
  check<norm_times_self<to_r, move<tp<N>, S<2>>, stay, to_r>, mesh, placed<S<1>>, placed<R>, placed<R>, placed<R>>();
  check<norm_times_self<to_r, move<tp<N>, S<2>>, stay, move<tp<N>, S<0>>>, mesh, placed<S<1>>, placed<R>, placed<R>,
        placed<S<0>>>();
}

template <int N>
void check_implicit() {
  using mesh = sw::mesh<tp<N>>;
  check<anyhow, mesh, placed<S<0>>, placed<R>, placed<R>, placed<R>>();
  check<anyhow, mesh, placed<S<1>>, placed<R>, placed<R>, placed<S<2>>>();
  check<anyhow, mesh, placed<S<2>>, placed<S<0>>, placed<P>, placed<R>>();
  check<anyhow, mesh, placed<P>, placed<R>, placed<S<0>>, placed<P>>();
}

}  // namespace

TEST_CASE("norm of a turned tensor: one rank gives the reference") {
  check<as_placed, sw::mesh<tp<1>>, placed<R>, placed<R>, placed<R>, placed<R>>();
  check<anyhow, sw::mesh<tp<1>>, placed<S<1>>, placed<S<0>>, placed<R>, placed<P>>();
}
TEST_CASE("norm of a turned tensor: two ranks, written communication") { check_written<2>(); }
TEST_CASE("norm of a turned tensor: three ranks, which do not divide 4, written communication") { check_written<3>(); }
TEST_CASE("norm of a turned tensor: four ranks, written communication") { check_written<4>(); }
TEST_CASE("norm of a turned tensor: two, three and four ranks, implicit communication") {
  check_implicit<2>();
  check_implicit<3>();
  check_implicit<4>();
}
TEST_CASE("norm of a turned tensor: data parallel times tensor parallel") {
  using mesh = sw::mesh<dp<2>, tp<2>>;
  check<norm_times_self<stay, stay, move<tp<2>, S<1>>, move<tp<2>, S<1>>>, mesh, placed<S<0>, S<2>>, placed<U, U>,
        placed<U, U>, placed<S<0>, S<2>>>();
  check<norm_times_self<move<tp<2>, R>, move<tp<2>, S<2>>, stay, move<tp<2>, R>>, mesh, placed<S<0>, S<1>>, placed<U, R>,
        placed<U, R>, placed<S<0>, R>>();
  check<anyhow, mesh, placed<S<0>, S<1>>, placed<R, R>, placed<R, S<0>>, placed<S<0>, R>>();
  using uneven = sw::mesh<dp<2>, tp<3>>;
  check<norm_times_self<stay, move<tp<3>, U>>, uneven, placed<S<0>, S<2>>, placed<U, U>, placed<U, U>, placed<S<0>, S<1>>>();
  check<anyhow, uneven, placed<S<1>, S<1>>, placed<P, R>, placed<R, S<0>>, placed<R, P>>();
}
