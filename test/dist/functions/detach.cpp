// SPDX-License-Identifier: Apache-2.0
// detach: the value of its operand under its operand's placements, without a copy; no gradient flows through it and none is
// reduced for it, at once and as a program, on 1 to 4 ranks; a loss may read a buffer behind its write through it.
#include <doctest/doctest.h>

#include <both_ways.hpp>

namespace {

using namespace test;
using numbers = std::vector<double>;

template <int N>
struct ax : sw::axis<N> {};
template <int N>
using mesh = sw::mesh<ax<N>>;
template <int N, class Place, class Shape = sw::shape<5, 3>>
using tensor = sw::dtensor_of<double, Shape, mesh<N>, sw::on<ax<N>, Place>>;

numbers some(std::int64_t n, int salt) {
  numbers v;
  for (std::int64_t i = 0; i < n; ++i) v.push_back(0.25 * static_cast<double>((i * 7 + salt * 5) % 23) - 1.5);
  return v;
}

// d/dx sum(x d(x y) + y y + d(y)) = x y, d/dy = 2 y.
struct products {
  constexpr auto operator()(const auto& x, const auto& y) const {
    return sw::sum(x * sw::detach(x * y) + y * y + sw::detach(y));
  }
};
// Through views of a detached value and detached views: d/dx = 3, whatever is partial.
struct sums {
  constexpr auto operator()(const auto& x) const {
    return sw::sum(3 * x + sw::transpose<0, 1>(sw::detach(sw::transpose<0, 1>(x))) + sw::detach(x));
  }
};
struct value_alone {
  constexpr auto operator()(const auto& x) const { return sw::detach(x); }
};

template <class T>
numbers whole(const T& x) {
  return values_of(sw::full_tensor(x).to_local());
}

template <int N, class Place>
void check_value() {
  sw::launch<mesh<N>>([](auto& rank) {
    sw::eager on(rank);
    using type = tensor<N, Place>;
    const numbers a = some(15, 1);
    const auto x = type::distribute(on, a);
    const auto y = std::get<0>(both_ways<value_alone>(rank, x));
    static_assert(std::is_same_v<std::remove_const_t<decltype(y)>, type>, "placed as its operand is");
    CHECK(y.to_local().data.data() == x.to_local().data.data());  // a view
    CHECK(whole(y) == a);
    const auto all = gradients_both_ways<sums, 0>(rank, x);
    CHECK(whole(std::get<1>(all)) == numbers(15, 3.0));
    using program = gradient_of<sums, sw::wrt<0>, type>;
    static_assert(sw::dual(type::sp).place[0] == program::program.spec_of(program::program.outputs[1]).place[0]);
  });
}
template <int N, class Place>
void check_products() {
  sw::launch<mesh<N>>([](auto& rank) {
    sw::eager on(rank);
    const numbers a = some(15, 1), b = some(15, 4);
    const auto all =
        gradients_both_ways<products, 0, 1>(rank, tensor<N, Place>::distribute(on, a), tensor<N, Place>::distribute(on, b));
    numbers da, db;
    for (std::size_t i = 0; i < 15; ++i) {
      da.push_back(a[i] * b[i]);
      db.push_back(2 * b[i]);
    }
    CHECK(whole(std::get<1>(all)) == da);
    CHECK(whole(std::get<2>(all)) == db);
  });
}

template <int N>
void check_all() {
  check_value<N, sw::replicate>();
  check_value<N, sw::reduced>();
  check_value<N, sw::shard<0>>();
  check_value<N, sw::shard<1>>();
  check_value<N, sw::partial<>>();
  check_products<N, sw::replicate>();
  check_products<N, sw::shard<0>>();
  check_products<N, sw::shard<1>>();
}

// A reduced tensor beside a split one: no sum over the axis is owed for what is detached, one is for what is not.
template <bool Detached>
struct scaled {
  constexpr auto operator()(const auto& x, const auto& w) const {
    if constexpr (Detached) return sw::sum(x * sw::detach(w) + w * w);
    else return sw::sum(x * w + w * w);
  }
};
template <bool Detached>
constexpr int sums_of_products = [] {  // cotangents of w that are partial: summed over rows that the axis splits
  using program = gradient_of<scaled<Detached>, sw::wrt<1>, tensor<2, sw::shard<0>>, tensor<2, sw::reduced, sw::shape<3>>>;
  return count_of<program>(sw::op_code::sum);
}();
static_assert(sums_of_products<true> + 1 == sums_of_products<false>);

// A buffer that the loss reads behind its write.
struct dp : sw::axis<2> {};
template <bool Detached>
struct models {
  template <class Bound = sw::unbound>
  struct model : sw::module<model<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::linear<8, 6>, net), (sw::buffer<sw::shape<6>, sw::init::zeros>, running_mean));
    constexpr auto forward(const auto& x) const {
      const auto h = net(x);
      const auto mean = sw::redistribute<dp, sw::reduced>(sw::mean<0>(h));
      if constexpr (Detached) {
        sw::lerp_(running_mean, mean, 0.25);
        return h * sw::detach(running_mean);
      } else {  // by hand: the value of the mean, by way of a number that is no function of h
        const auto now = sw::lerp(running_mean, sw::detach(mean), 0.25);
        sw::copy_(running_mean, now);
        return h * now;
      }
    }
  };
  template <class B>
  using of = model<B>;
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<4, 8>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(m(x)); }
};
template <bool Detached>
using step = sw::train_step<models<Detached>::template of, task, sw::plan<sw::data_parallel<dp>>, sw::mesh<dp>, sw::sgd<>,
                            sw::pipeline<>, double>;

template <bool Detached>
std::vector<double> trained() {
  std::vector<double> seen;
  sw::launch<sw::mesh<dp>>([&](auto& rank) {
    sw::executor<step<Detached>> ex(rank, sw::executor_checks::poison);
    ex.initialise(7);
    ex.set_input(0, some(32, 2));
    std::vector<double> w(48), mean(6);
    sw::step_env env;
    env.lr = 0.1;
    for (env.step = 1; env.step <= 3; ++env.step) {
      ex.run(env);
      ex.gather_parameter(0, w);
      ex.gather_buffer(0, mean);
      if (rank.index() != 0) continue;
      seen.push_back(ex.loss());
      seen.insert(seen.end(), w.begin(), w.end());
      seen.insert(seen.end(), mean.begin(), mean.end());
    }
  });
  return seen;
}

}  // namespace

TEST_CASE("detach: the value under all placements, and no gradient, on 1, 2, 3 and 4 ranks") {
  check_all<1>();
  check_all<2>();
  check_all<3>();
  check_all<4>();
}
TEST_CASE("detach: a loss reads a buffer behind its write, and takes no gradient through it") {
  const auto by_detach = trained<true>(), by_hand = trained<false>();
  CHECK(by_detach.size() == 3 * 55);
  CHECK(by_detach == by_hand);
}
