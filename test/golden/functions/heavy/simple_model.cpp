// SPDX-License-Identifier: Apache-2.0
// Two perceptrons as a function of their parameters: the reference's loss and gradients, however placed.
#include <doctest/doctest.h>

#include <golden_function.hpp>

namespace {

using namespace test;
using namespace test::golden_names;

// The first of three iterations; parameters as (mlp_0, mlp_1) x (net1, net2) x (weight, bias).
struct reference {
  static constexpr const char* file = "tp_simple_model";
  using w1 = sw::shape<16, 10>;
  using b1 = sw::shape<16>;
  using w2 = sw::shape<10, 16>;
  using b2 = sw::shape<10>;
  using shapes = std::tuple<sw::shape<20, 10>, w1, b1, w2, b2, w1, b1, w2, b2>;
  static std::vector<std::string> each(const std::string& prefix) {
    std::vector<std::string> r;
    for (const char* mlp : {"mlp_0.", "mlp_1."})
      for (const char* net : {"net1.", "net2."})
        for (const char* part : {"weight", "bias"}) r.push_back(prefix + mlp + net + part);
    return r;
  }
  static std::vector<std::string> names() {
    auto r = each("init.");
    r.insert(r.begin(), "in.rank0.0");
    return r;
  }
  static std::vector<std::string> wanted(std::initializer_list<int> operands) {
    std::vector<std::string> r{"ref.losses"};
    for (const int k : operands) r.push_back(each("ref.grad0.")[static_cast<std::size_t>(k) - 1]);
    return r;
  }
  static std::vector<double> value(const safetensors& file, const std::string& name) {
    auto all = file.values(name);
    if (name == "in.rank0.0" || name == "ref.losses") all.resize(all.size() / 3);
    return all;
  }
};

// `In` places an input of a perceptron, `Product` its second product before the bias is added.
template <class In, class Product>
struct perceptrons {
  static constexpr auto one(const auto& x, const auto& w1, const auto& b1, const auto& w2, const auto& b2) {
    const auto h = sw::relu(sw::linear_product(In{}(x), w1) + b1);
    return Product{}(sw::linear_product(h, w2)) + b2;
  }
  constexpr auto operator()(const auto& x, const auto& a1, const auto& c1, const auto& a2, const auto& c2, const auto& w1,
                            const auto& b1, const auto& w2, const auto& b2) const {
    return sw::sum(one(one(x, a1, c1, a2, c2), w1, b1, w2, b2));
  }
};

// In two programs, as one has at most eight outputs.
template <class F, class Mesh, class X, class W1, class B1, class W2, class B2>
void check() {
  golden_function<reference, F, Mesh, sw::wrt<1, 2, 3, 4, 5, 6, 7>, X, W1, B1, W2, B2, W1, B1, W2, B2>::check();
  golden_function<reference, F, Mesh, sw::wrt<8>, X, W1, B1, W2, B2, W1, B1, W2, B2>::check();
}
using as_placed = perceptrons<stay, stay>;
using anyhow = sw::implicitly<as_placed>;

template <int N>
void check_written() {
  using mesh = sw::mesh<tp<N>>;
  check<as_placed, mesh, placed<R>, placed<R>, placed<R>, placed<R>, placed<R>>();
  check<as_placed, mesh, placed<S<0>>, placed<U>, placed<U>, placed<U>, placed<U>>();
  // column-wise, row-wise: each pair's sum is whole, or scattered along the sequence and gathered before the next
  check<perceptrons<stay, move<tp<N>, U>>, mesh, placed<U>, placed<S<0>>, placed<S<0>>, placed<S<1>>, placed<U>>();
  check<perceptrons<move<tp<N>, U>, move<tp<N>, S<0>>>, mesh, placed<S<0>>, placed<S<0>>, placed<S<0>>, placed<S<1>>,
        placed<U>>();
}

}  // namespace

TEST_CASE("two perceptrons as a function: one rank gives the reference") {
  check<as_placed, sw::mesh<tp<1>>, placed<R>, placed<R>, placed<R>, placed<R>, placed<R>>();
}
TEST_CASE("two perceptrons as a function: two ranks, written communication") { check_written<2>(); }
TEST_CASE("two perceptrons as a function: three ranks, which divide nothing, written communication") { check_written<3>(); }
TEST_CASE("two perceptrons as a function: four ranks, written communication") { check_written<4>(); }
TEST_CASE("two perceptrons as a function: implicit communication") {
  check<anyhow, sw::mesh<tp<2>>, placed<S<0>>, placed<S<0>>, placed<R>, placed<R>, placed<R>>();
  check<anyhow, sw::mesh<tp<3>>, placed<R>, placed<S<0>>, placed<S<0>>, placed<S<1>>, placed<R>>();
  check<anyhow, sw::mesh<tp<4>>, placed<S<1>>, placed<P>, placed<S<0>>, placed<S<0>>, placed<P>>();
}
TEST_CASE("two perceptrons as a function: data parallel times tensor parallel") {
  using mesh = sw::mesh<dp<2>, tp<2>>;
  check<perceptrons<stay, move<tp<2>, U>>, mesh, placed<S<0>, U>, placed<U, S<0>>, placed<U, S<0>>, placed<U, S<1>>,
        placed<U, U>>();
  check<anyhow, mesh, placed<S<0>, R>, placed<R, S<0>>, placed<R, S<0>>, placed<R, S<1>>, placed<R, R>>();
  using uneven = sw::mesh<dp<2>, tp<3>>;
  check<perceptrons<stay, move<tp<3>, U>>, uneven, placed<S<0>, U>, placed<U, S<0>>, placed<U, S<0>>, placed<U, S<1>>,
        placed<U, U>>();
}
