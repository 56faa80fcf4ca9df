// SPDX-License-Identifier: Apache-2.0
// Eager tensors: every function under several placements on 1 to 8 ranks equals its single-rank result; models too.
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;

template <int N>
struct rows : sw::axis<N> {};
template <int N>
struct cols : sw::axis<N> {};
template <int R, int C>
using grid = sw::mesh<rows<R>, cols<C>>;

using R = sw::replicate;
using U = sw::reduced;
using P = sw::partial<>;
template <int D>
using S = sw::shard<D>;

// Single-rank results by name; a later result of the same name must agree.
class book {
 public:
  void compare(const std::string& name, std::span<const double> values, bool record) {
    const auto it = known_.find(name);
    if (it == known_.end()) {
      CHECK_MESSAGE(record, "no single-rank result: ", name);
      if (record) known_[name].assign(values.begin(), values.end());
      return;
    }
    double apart = it->second.size() == values.size() ? 0 : 1;
    for (std::size_t i = 0; i < values.size() && i < it->second.size(); ++i) {
      const double d = std::abs(values[i] - it->second[i]);
      apart = d <= apart ? apart : d;  // a NaN sticks
    }
    CHECK_MESSAGE(apart <= 1e-13, name, " differs by ", apart);
    ++compared_;
  }
  int compared() const { return compared_; }
  std::size_t names() const { return known_.size(); }

 private:
  std::map<std::string, std::vector<double>> known_;
  std::atomic<int> compared_{0};
};

// Some values, the same on every rank.
template <class T>
std::vector<T> some(std::int64_t n, int salt, int below = 0) {
  std::vector<T> v(static_cast<std::size_t>(n));
  std::uint32_t x = 12345U + 77U * static_cast<std::uint32_t>(salt);
  for (auto& e : v) {
    x = x * 1664525U + 1013904223U;
    if (below > 0) e = static_cast<T>((x >> 8) % static_cast<std::uint32_t>(below));
    else e = static_cast<T>((x >> 8) / 8388608.0 - 1);
  }
  return v;
}

template <int M, int N, class Rank>
struct bench {
  using mesh = grid<M, N>;
  using r = rows<M>;
  using c = cols<N>;
  static constexpr bool single = M * N == 1;

  sw::eager<Rank>& on;
  book& results;

  template <class Shape, class PR, class PC, class T = double>
  auto make(int salt, int below = 0) {
    using type = sw::dtensor_of<T, Shape, mesh, sw::on<r, PR>, sw::on<c, PC>>;
    return type::distribute(on, some<T>(sw::numel(type::sp), salt, below));
  }
  template <class X>
  void operator()(const char* name, const X& x) {
    const auto whole = x.full_tensor();
    results.compare(name, whole.to_local().data, single);
  }

  template <class PR, class PC>
  void pointwise() {
    using shape = sw::shape<6, 5, 8>;
    const auto a = make<shape, PR, PC>(1), b = make<shape, PR, PC>(2);
    (*this)("distribute", a);
    (*this)("add", sw::add(a, b));
    (*this)("add", a + b);
    (*this)("sub", a - b);
    (*this)("mul", a * b);
    (*this)("scale", a * 0.75);
    (*this)("relu", sw::relu(a));
    (*this)("tanh", sw::tanh(a));
    (*this)("gelu erf", sw::gelu(a));
    (*this)("gelu tanh", sw::gelu<sw::gelu_form::tanh>(a));
    on.rewind(0);
    (*this)("dropout 0", sw::dropout(a, 0.4));
    (*this)("dropout 1", sw::dropout(a, 0.4));
    (*this)("sum", sw::sum(a));
    (*this)("sum 0", sw::sum<0>(a));
    (*this)("sum 0 -1", sw::sum<0, -1>(a));
    (*this)("mean", sw::mean(a));
    (*this)("mean 1", sw::mean<1>(a));
    (*this)("permute", sw::permute<2, 0, 1>(a));
    (*this)("permute, relu", sw::relu(sw::permute<2, 0, 1>(a)));
    (*this)("permute, sum", sw::sum<1>(sw::permute<2, 0, 1>(a)));
    (*this)("contiguous", sw::contiguous(sw::permute<1, 0, 2>(a)));
  }

  // dim 2 is not sharded
  template <class PR, class PC, class W>
  void by_row(const W& weight, const W& bias) {
    using shape = sw::shape<6, 5, 8>;
    const auto a = make<shape, PR, PC>(1);
    (*this)("softmax", sw::softmax(a));
    (*this)("causal softmax", sw::causal_softmax(a));
    (*this)("layer norm", sw::layer_norm(a, weight, bias));
    (*this)("rms norm", sw::rms_norm(a, weight));
    (*this)("add last", a + bias);
    (*this)("slice", sw::slice<2, 3, 4>(a));
    (*this)("slice, tanh", sw::tanh(sw::slice<-1, 3, 4>(a)));
    (*this)("slice, permute", sw::permute<2, 1, 0>(sw::slice<-1, 3, 4>(a)));
    (*this)("reshape", sw::reshape<6, 5, 2, 4>(a));
    (*this)("reshape, permute, reshape", sw::reshape<6, 2, 20>(sw::permute<0, 2, 1, 3>(sw::reshape<6, 5, 2, 4>(make<shape, PR, R>(1)))));
    const auto target = make<sw::shape<6, 5>, PR, PC, std::int32_t>(3, 8);
    (*this)("cross entropy rows", sw::cross_entropy_rows(a, target));
    (*this)("cross entropy", sw::cross_entropy(a, target));
  }

  void contractions() {
    using a = sw::shape<7, 9>;
    using b = sw::shape<9, 5>;
    (*this)("matmul", sw::matmul(make<a, R, R>(1), make<b, R, R>(2)));
    (*this)("matmul", sw::matmul(make<a, S<0>, U>(1), make<b, U, S<1>>(2)));
    (*this)("matmul", sw::matmul(make<a, S<0>, S<1>>(1), make<b, U, S<0>>(2)));
    (*this)("matmul", sw::matmul(make<a, S<1>, S<1>>(1), make<b, S<0>, S<0>>(2)));
    (*this)("matmul", sw::matmul(make<a, P, S<0>>(1), make<b, U, U>(2)));
    (*this)("matmul", sw::matmul(make<a, U, U>(1), make<b, P, S<1>>(2)));
    (*this)("matmul", sw::matmul(sw::permute<1, 0>(sw::contiguous(sw::permute<1, 0>(make<a, S<0>, U>(1)))), make<b, U, U>(2)));
    using ba = sw::shape<4, 3, 9>;
    using bb = sw::shape<4, 9, 5>;
    (*this)("batched matmul", sw::matmul(make<ba, R, R>(1), make<bb, R, R>(2)));
    (*this)("batched matmul", sw::matmul(make<ba, S<0>, S<0>>(1), make<bb, S<0>, S<0>>(2)));
    (*this)("batched matmul", sw::matmul(make<ba, S<0>, S<2>>(1), make<bb, S<0>, S<1>>(2)));
    (*this)("broadcast matmul", sw::matmul(make<ba, R, R>(1), make<b, R, R>(2)));
    (*this)("broadcast matmul", sw::matmul(make<ba, S<1>, S<0>>(1), make<b, U, U>(2)));
    using w = sw::shape<11, 9>;
    (*this)("linear product", sw::linear_product(make<ba, R, R>(1), make<w, R, R>(2)));
    (*this)("linear product", sw::linear_product(make<ba, S<0>, U>(1), make<w, U, S<0>>(2)));
    (*this)("linear product", sw::linear_product(make<ba, S<1>, S<2>>(1), make<w, U, S<1>>(2)));
  }

  template <class PB, class PH>
  void attention() {
    using bhtd = sw::shape<3, 4, 5, 6>;
    const auto q = make<bhtd, PB, PH>(1), k = make<bhtd, PB, PH>(2), v = make<bhtd, PB, PH>(3);
    (*this)("attention", sw::scaled_dot_product_attention(q, k, v));
    (*this)("full attention", sw::scaled_dot_product_attention<false>(q, k, v));
    const auto turn = [](const auto& x) { return sw::permute<0, 2, 1, 3>(x); };
    (*this)("attention",
            turn(sw::scaled_dot_product_attention<true, sw::head_layout::bthd>(turn(q), turn(k), turn(v))));
  }

  void indices() {
    using table = sw::shape<10, 6>;
    using ids = sw::shape<7, 3>;
    using I = std::int32_t;
    (*this)("embedding", sw::embedding(make<table, R, R>(1), make<ids, R, R, I>(2, 10)));
    (*this)("embedding", sw::embedding(make<table, U, U>(1), make<ids, S<0>, S<1>, I>(2, 10)));
    (*this)("embedding", sw::embedding(make<table, U, S<1>>(1), make<ids, S<0>, R, I>(2, 10)));
    (*this)("embedding", sw::embedding(make<table, U, U>(1), sw::redistribute<c, S<0>>(make<ids, S<0>, R, I>(2, 10))));
  }

  void partial_values() {
    using shape = sw::shape<6, 5, 8>;
    const auto a = make<shape, P, S<1>>(1), b = make<shape, P, S<1>>(2);
    (*this)("add", a + b);
    (*this)("sub", a - b);
    (*this)("scale", sw::scale(a, 0.75));
    (*this)("mul", a * make<shape, U, S<1>>(2));
    (*this)("sum 0", sw::sum<0>(a));
    (*this)("distribute", make<shape, sw::partial<sw::reduction::max>, R>(1));
    (*this)("distribute", make<shape, S<2>, sw::partial<sw::reduction::avg>>(1));
    (*this)("distribute", make<shape, sw::partial<sw::reduction::product>, sw::partial<sw::reduction::min>>(1));
    (*this)("distribute", sw::reduce_gradient<r>(a));
  }

  // From every placement to every other: the whole tensor stays what it is.
  template <class Axis, class From, class To, class Other>
  void move_on_axis() {
    if constexpr (std::is_same_v<Axis, c>) {
      const auto x = make<sw::shape<6, 5>, Other, From>(4);
      (*this)("redistribute", sw::redistribute<Axis, To>(x));
      (*this)("redistribute turned", sw::redistribute<Axis, To>(sw::permute<1, 0>(x)));
    } else {
      (*this)("redistribute", sw::redistribute<Axis, To>(make<sw::shape<6, 5>, From, Other>(4)));
    }
  }
  template <class Axis, class Other, class From, class... To>
  void moves_from() {
    (this->template move_on_axis<Axis, From, To, Other>(), ...);
  }

  void run() {
    pointwise<R, R>();
    pointwise<U, U>();
    pointwise<S<0>, S<1>>();
    pointwise<S<2>, S<0>>();
    pointwise<S<1>, S<1>>();
    by_row<R, R>(make<sw::shape<8>, R, R>(5), make<sw::shape<8>, R, R>(6));
    by_row<S<0>, S<1>>(make<sw::shape<8>, U, U>(5), make<sw::shape<8>, U, U>(6));
    by_row<S<0>, S<0>>(make<sw::shape<8>, U, U>(5), make<sw::shape<8>, U, U>(6));
    contractions();
    attention<R, R>();
    attention<S<0>, S<1>>();
    attention<S<1>, S<0>>();
    indices();
    partial_values();
    moves_from<c, R, R, R, U, S<0>, S<1>, P>();
    moves_from<c, R, U, R, U, S<0>, S<1>, P>();
    moves_from<c, R, S<0>, R, U, S<0>, S<1>, P>();
    moves_from<c, R, S<1>, R, U, S<0>, S<1>, P>();
    moves_from<c, R, P, R, U, S<0>, S<1>, P>();
    moves_from<r, S<1>, R, R, U, S<0>, P>();
    moves_from<r, S<1>, U, R, U, S<0>, P>();
    moves_from<r, S<1>, S<0>, R, U, S<0>, P>();
    moves_from<r, S<1>, P, R, U, S<0>, P>();
  }
};

template <int M, int N>
void run_all(book& results) {
  sw::launch<grid<M, N>>([&](auto& rank) {
    sw::eager on(rank);
    on.start_step(11, 1);
    bench<M, N, std::remove_reference_t<decltype(rank)>>{on, results}.run();
  });
}

}  // namespace

TEST_CASE("eager: every function equals its single-rank result on 1, 2, 3, 4 and 8 ranks") {
  book results;
  run_all<1, 1>(results);
  const int single = results.compared();
  CHECK(results.names() == 41);
  run_all<2, 1>(results);
  run_all<1, 3>(results);
  run_all<2, 2>(results);
  run_all<2, 4>(results);
  // each rank of each run compared everything
  CHECK(results.compared() - single == (2 + 3 + 4 + 8) * (single + static_cast<int>(results.names())));
}
