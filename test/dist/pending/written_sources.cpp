// SPDX-License-Identifier: Apache-2.0
// A pending tensor is what its source was when it was issued, whoever writes the source while ranks still read it: through
// views, in place, by an optimizer, through a pointer, by giving its memory to another tensor; at once and on its way into
// a program.
#include <shardwise/module/hana.hpp>

#include <doctest/doctest.h>

#include <both_ways.hpp>

namespace {

using namespace test;

template <int N>
struct line : sw::axis<N> {};
template <int N>
using mesh = sw::mesh<line<N>>;
using R = sw::replicate;
template <int D>
using S = sw::shard<D>;
using numbers = std::vector<double>;
template <int N, class Placement>
using tensor = sw::dtensor_of<double, sw::shape<7, 5>, mesh<N>, sw::on<line<N>, Placement>>;

numbers counted() {
  numbers v(35);
  for (std::size_t i = 0; i < 35; ++i) v[i] = static_cast<double>(i) + 1;
  return v;
}

template <class Bound = sw::unbound>
struct weights : sw::module<weights<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(weights, (sw::linear<5, 7, sw::child<Bound, 0>>, inner));
  constexpr auto forward(const auto& x) const { return inner(x); }
};
struct task {
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(m(x)); }
};
struct doubled {
  constexpr auto operator()(const auto& x) const { return sw::scale(x, 2); }
};

template <int N, class From, class To>
void check() {
  using axis = line<N>;
  sw::launch<mesh<N>>([](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::eager on(rank);
    rank.slow_down({0.003, 0});  // a collective reads its source long after it was issued
    using type = tensor<N, From>;
    using arrived_type = tensor<N, To>;
    const auto want = values_of(sw::redistribute<axis, To>(type::distribute(on, counted())).to_local());
    const auto check_written = [&](auto&& write) {
      auto x = type::distribute(on, counted());
      const auto before = values_of(x.to_local());
      auto p = sw::redistribute_async<axis, To>(x);
      auto q = sw::redistribute_async<axis, To>(x);
      write(x);
      CHECK(values_of(x.to_local()) != before);
      auto r = sw::redistribute_async<axis, To>(x);
      CHECK(values_of(std::move(p).wait().to_local()) == want);
      sw::mul_(x, -1);
      CHECK(values_of(std::move(q).wait().to_local()) == want);
      CHECK(values_of(std::move(r).wait().to_local()) != want);
    };
    const auto zero = type::zeros(on);
    check_written([](auto& x) { sw::mul_(x, 100); });
    check_written([](auto& x) { sw::add_(sw::transpose<0, 1>(x), 100); });
    check_written([](auto& x) { sw::fill_(sw::unsqueeze<1>(x), 3); });
    check_written([&](auto& x) { sw::copy_(x, zero); });
    check_written([](auto& x) {
      const auto v = x.local_mdspan();
      for (int i = 0; i < v.extent(0); ++i)
        for (int k = 0; k < v.extent(1); ++k) v[std::array{i, k}] = -7;
    });
    {  // the source's memory is another tensor's
      auto x = type::distribute(on, counted());
      auto p = sw::redistribute_async<axis, To>(x);
      x = type{};
      const auto y = type::full(on, -1), z = type::full(on, -2);
      CHECK(values_of(std::move(p).wait().to_local()) == want);
      for (const double v : y.to_local().data) CHECK(v == -1);
    }
    {  // a pointer that was taken before can be written through at any time
      auto x = type::distribute(on, counted());
      const auto v = x.local_mdspan();
      auto p = sw::redistribute_async<axis, To>(x);
      for (int i = 0; i < v.extent(0); ++i)
        for (int k = 0; k < v.extent(1); ++k) v[std::array{i, k}] = -7;
      CHECK(values_of(std::move(p).wait().to_local()) == want);
      for (const double e : x.to_local().data) CHECK(e == -7);
    }
    {  // on its way into a program
      using program = sw::function_step<doubled, mesh<N>, sw::inputs<sw::arriving<sw::input_like<arrived_type>>>>;
      sw::executor<program, rank_type> e(rank, sw::executor_checks::poison);
      auto x = type::distribute(on, counted());
      e.set_input(0, sw::redistribute_async<axis, To>(x));
      sw::mul_(x, 100);
      e.run({});
      numbers twice = want;
      for (double& v : twice) v *= 2;
      CHECK(values_of(e.template output<double>(0)) == twice);
    }
    {  // an eager optimizer writes parameters
      sw::bind_eager<weights, sw::plan<>, mesh<N>, double> model{};
      sw::initialise(model, on, 5);
      const auto before = values_of(model.inner.weight.to_local());
      const auto x = sw::dtensor_of<double, sw::shape<3, 5>, mesh<N>, R>::ones(on);
      const auto [loss, gradients] = sw::value_and_grad(task{})(model, x);
      auto p = sw::redistribute_async<axis, S<0>>(model.inner.weight);
      auto q = sw::redistribute_async<axis, R>(model.inner.weight);
      sw::eager_optimizer<sw::sgd<>, decltype(model)> optimizer;
      sw::step_env env;
      env.lr = 0.5;
      env.step = 1;
      optimizer.step(model, gradients, env);
      CHECK(values_of(model.inner.weight.to_local()) != before);
      CHECK(values_of(std::move(p).wait().full_tensor().to_local()) == before);
      CHECK(values_of(std::move(q).wait().to_local()) == before);
    }
  });
}

TEST_CASE("pending: a source that is written is read as it was") {
  check<1, S<0>, R>();
  check<2, S<0>, R>();
  check<3, S<1>, S<0>>();
  check<4, S<0>, R>();
  check<2, R, R>();
}

// The write waits, the rank does not: what is issued and computed until then runs beside the collective.
TEST_CASE("pending: a write waits until its source has been read") {
  sw::launch<mesh<2>>([](auto& rank) {
    sw::eager on(rank);
    rank.slow_down({0.05, 0});
    const auto x = tensor<2, S<0>>::distribute(on, counted());
    const std::int64_t begin = sw::runtime::now();
    auto p = sw::redistribute_async<line<2>, R>(x);
    sw::mul_(x, 2);
    CHECK(sw::runtime::now() - begin >= 50'000'000);  // ns
    CHECK(values_of(std::move(p).wait().to_local()) == counted());
  });
}

}  // namespace
