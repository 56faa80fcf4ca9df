// SPDX-License-Identifier: Apache-2.0
// Eager operations of every family, gradients and optimizer steps allocate in their first round alone: the counting
// allocator counts.
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <new>
#include <vector>

#include "counter.hpp"

#if defined(__GLIBC__) && !defined(SHARDWISE_TEST_SANITIZED)

namespace {

namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
using R = sw::replicate;
using U = sw::reduced;
template <int D>
using S = sw::shard<D>;
template <class Shape, class PD, class PT, class T = double>
using tensor = sw::dtensor_of<T, Shape, mesh, sw::on<dp, PD>, sw::on<tp, PT>>;

std::vector<double> some(std::size_t n) {
  std::vector<double> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<double>(i * 7 % 13) / 6 - 1;
  return v;
}

struct counts {
  long first = 0, later = 0;
};

// Allocations of this thread in the first round, if asked for, and after the second one: a round may find the blocks it
// needs in use still while the names of the round before go.
template <class F>
counts count_rounds(bool first, F&& round) {
  counts c;
  const auto counted = [&](int times) {
    const long before = counter::allocations.load();
    counter::counting = true;
    for (int i = 0; i < times; ++i) round();
    counter::counting = false;
    return counter::allocations.load() - before;
  };
  if (first) c.first = counted(1);
  else round();
  round();
  c.later = counted(5);
  return c;
}

// On ranks with peers, where the count is that of all of them, and on each alone, where the first round must allocate.
template <class Body>
void check_rounds(Body&& body) {
  const long before = counter::allocations.load();
  sw::launch<mesh>([&](auto& rank) { body(rank, false); });
  CHECK(counter::allocations.load() == before);
  for (int q = 0; q < mesh::size; ++q)
    sw::launch_fake<mesh>(q, [&](auto& rank) {
      const counts c = body(rank, true);
      CHECK(c.first > 20);
      CHECK(c.later == 0);
    });
}

template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<12, 16>, up), (sw::linear<16, 12>, down));
  constexpr auto forward(const auto& x) const { return down(sw::dropout(sw::gelu(up(x)), 0.1)); }
};
template <class B>
using net_model = net<B>;
using plan = sw::plan<sw::data_parallel<dp>, sw::at<"up", sw::colwise<tp>>, sw::at<"down", sw::rowwise<tp>>>;
struct square_loss {
  constexpr auto operator()(const auto& model, const auto& x) const {
    const auto y = model(x);
    return sw::mean(y * y);
  }
};

struct attend {
  constexpr auto operator()(const auto& q, const auto& k, const auto& v) const {
    return sw::scaled_dot_product_attention(q, k, v);
  }
};

}  // namespace

TEST_CASE("eager operations of every family allocate nothing once they have run") {
  check_rounds([](auto& rank, bool first) {
    sw::eager on(rank);
    const auto a = tensor<sw::shape<6, 5, 8>, S<0>, S<1>>::distribute(on, some(240));
    const auto b = tensor<sw::shape<6, 5, 8>, S<0>, S<1>>::distribute(on, some(240));
    const auto x = tensor<sw::shape<12, 8>, S<0>, U>::distribute(on, some(96));
    const auto w = tensor<sw::shape<16, 8>, U, S<0>>::distribute(on, some(128));
    const auto weight = tensor<sw::shape<8>, U, U>::distribute(on, some(8));
    const auto q = tensor<sw::shape<4, 2, 5, 6>, S<0>, S<1>>::distribute(on, some(240));
    const auto table = tensor<sw::shape<10, 6>, U, S<1>>::distribute(on, some(60));
    const std::vector<std::int32_t> numbers{0, 3, 9, 4, 4, 1};
    const auto ids = tensor<sw::shape<6>, S<0>, R, std::int32_t>::distribute(on, numbers);
    const auto targets = tensor<sw::shape<12>, S<0>, U, std::int32_t>::distribute(on, std::vector<std::int32_t>(12, 3));
    const auto partial = tensor<sw::shape<6, 5>, sw::partial<>, S<1>>::distribute(on, some(30));
    double kept = 0;
    return count_rounds(first, [&] {
      // pointwise, with broadcasting and constants
      const auto p = sw::tanh(sw::relu(a * b - a) * 0.5 + 1.0) + sw::gelu(a) + weight;
      const auto d = sw::dropout(p, 0.3);
      // views
      const auto turned = sw::permute<2, 0, 1>(d);
      const auto cut = sw::contiguous(sw::slice<-1, 2, 4>(a));
      const auto cut_in_two = sw::reshape<6, 5, 2, 4>(a);
      // reductions and rows
      const auto s = sw::sum<0>(turned);
      const auto m = sw::mean(a);
      const auto rows = sw::softmax(x);
      const auto normed = sw::layer_norm(x, weight, weight);
      const auto scaled = sw::rms_norm(x, weight);
      // products, attention
      const auto y = sw::linear_product(normed + scaled + rows, w);
      const auto z = sw::matmul(y, w);
      const auto o = sw::scaled_dot_product_attention(q, q, q);
      // indices, losses
      const auto e = sw::embedding(table, ids);
      const auto l = sw::cross_entropy(x, targets);
      // every collective: all-reduce, reduce-scatter, all-gather, all-to-all; and those that need none
      const auto r = sw::redistribute<dp, R>(partial);
      const auto rs = sw::redistribute<dp, S<0>>(partial);
      const auto ag = sw::redistribute<tp, R>(partial);
      const auto aa = sw::redistribute<dp, S<1>>(x);
      const auto chunk = sw::redistribute<dp, S<0>>(r);
      const auto local = sw::to_local(y);
      const auto back = sw::full_tensor(local);
      kept += m.item() + l.item() + cut_in_two.to_local().data[0] + cut.to_local().data[0] + o.to_local().data[0];
      kept +=
          static_cast<double>(s.to_local().layout.numel() + z.to_local().layout.numel() + e.to_local().layout.numel() +
                              rs.to_local().layout.numel() + ag.to_local().layout.numel() + aa.to_local().layout.numel() +
                              chunk.to_local().layout.numel() + back.to_local().layout.numel());
      // made anew
      const auto made = sw::rand<double, sw::shape<6, 5>, sw::on<dp, S<0>>>(on, 3) +
                        sw::ones<double, sw::shape<6, 5>, sw::on<dp, S<0>>>(on);
      kept += made.local_mdspan()[std::array{0, 0}];
    });
  });
}

TEST_CASE("gradients of functions and of models, and optimizer steps, allocate nothing once they have run") {
  check_rounds([](auto& rank, bool first) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::eager on(rank);
    const auto q = tensor<sw::shape<4, 2, 5, 6>, S<0>, S<1>>::distribute(on, some(240));
    const auto x = tensor<sw::shape<8, 12>, S<0>, U>::distribute(on, some(96));
    sw::bind_eager<net_model, plan, mesh, double, rank_type> model{};
    sw::initialise(model, on, 5);
    sw::eager_optimizer<sw::clip_norm<sw::adam<>>, decltype(model)> optimizer;
    sw::step_env env;
    env.lr = 0.01;
    env.max_norm = 1;
    double kept = 0;
    return count_rounds(first, [&] {
      const auto [o, dq, dv] = sw::value_and_grad<attend, 0, 2>(q, q, q);
      kept += o.to_local().data[0] + dq.to_local().data[0] + dv.to_local().data[0];
      ++env.step;
      on.start_step(1, env.step);
      const auto [loss, gradients] = sw::value_and_grad(square_loss{})(model, x);
      optimizer.step(model, gradients, env);
      kept += loss.item();
    });
  });
}

#else

TEST_CASE("eager operations of every family allocate nothing once they have run" * doctest::skip()) {}

#endif
