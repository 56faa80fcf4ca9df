// SPDX-License-Identifier: Apache-2.0
// Writes in place on 1 to 4 ranks: eager tensors and programs as the same program without writes computes, bit for bit;
// gradients and training steps of what was read before it was written.
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/simplify/simplify.hpp>

#include <doctest/doctest.h>

#include <both_ways.hpp>

#include <cmath>
#include <memory>

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

template <int N, class Placement, std::int64_t... E>
using tensor = sw::dtensor_of<double, sw::shape<E...>, mesh<N>, sw::on<line<N>, Placement>>;

numbers some(std::size_t n, int salt) {
  numbers v(n);
  std::uint32_t x = 12345U + 77U * static_cast<std::uint32_t>(salt);
  for (auto& e : v) {
    x = x * 1664525U + 1013904223U;
    e = (x >> 8) / 8388608.0 - 1;
  }
  return v;
}

// x (7, 6), w (6, 5): what is computed is written through a slice and a transposed view, x through a view of a view.
struct writes {
  constexpr auto operator()(const auto& x, const auto& w) const {
    const auto h = sw::matmul(x, w);
    const auto middle = sw::narrow<1, 1, 3>(h);
    const auto turned = sw::transpose<0, 1>(h);
    const auto unit = sw::unsqueeze<1>(h);
    sw::mul_(middle, 3);
    sw::clamp_max_(turned, 1.5);
    sw::add_(sw::narrow<2, 2, 3>(unit), sw::narrow<2, 0, 3>(unit));
    const auto part = sw::squeeze<1>(sw::unsqueeze<1>(sw::narrow<1, 0, 2>(x)));
    sw::mul_(part, sw::narrow<1, 4, 2>(x));
    sw::relu_(x);
    return std::tuple{h, sw::contiguous(turned), part, sw::matmul(x, w)};
  }
};
struct pure {
  constexpr auto operator()(const auto& x, const auto& w) const {
    const auto product = sw::matmul(x, w);
    const auto tripled = sw::slice_scatter<1, 1>(product, sw::scale(sw::narrow<1, 1, 3>(product), 3));
    const auto clamped = sw::contiguous(sw::transpose<0, 1>(sw::clamp_max(sw::transpose<0, 1>(tripled), 1.5)));
    const auto h = sw::slice_scatter<1, 2>(clamped, sw::add(sw::narrow<1, 2, 3>(clamped), sw::narrow<1, 0, 3>(clamped)));
    const auto scaled = sw::mul(sw::narrow<1, 0, 2>(x), sw::narrow<1, 4, 2>(x));
    const auto now = sw::relu(sw::slice_scatter<1, 0>(x, scaled));
    return std::tuple{h, sw::contiguous(sw::transpose<0, 1>(h)), sw::narrow<1, 0, 2>(now), sw::matmul(now, w), now};
  }
};

template <class Step, class Rank, class X, class W>
auto run_program(Rank& rank, const X& x, const W& w) {
  auto e = std::make_unique<sw::executor<Step, Rank>>(rank, sw::executor_checks::poison);
  for (int round = 0; round < 2; ++round) {
    const auto give = [&](int input, const auto& block) {
      std::memcpy(e->template input<double>(input).data(), block.data(), block.size_bytes());
    };
    give(0, x.to_local().data);
    give(1, w.to_local().data);
    e->run({});
  }
  return e;
}

template <int N, class PX, class PW>
void check_writes() {
  sw::launch<mesh<N>>([](auto& rank) {
    sw::eager on(rank);
    using x_type = tensor<N, PX, 7, 6>;
    using w_type = tensor<N, PW, 6, 5>;
    const auto fresh = [&] { return x_type::distribute(on, some(42, 1)); };
    const auto w = w_type::distribute(on, some(30, 2));
    const auto x = fresh();
    const auto want = pure{}(fresh(), w);
    const auto have = writes{}(x, w);
    CHECK(values_of(std::get<0>(have).to_local()) == values_of(std::get<0>(want).to_local()));
    CHECK(values_of(std::get<1>(have).to_local()) == values_of(std::get<1>(want).to_local()));
    CHECK(values_of(std::get<2>(have).to_local()) == values_of(std::get<2>(want).to_local()));
    CHECK(values_of(std::get<3>(have).to_local()) == values_of(std::get<3>(want).to_local()));
    CHECK(values_of(x.to_local()) == values_of(std::get<4>(want).to_local()));
    CHECK(std::get<2>(have).shares_storage_with(x));

    using step = function_of<writes, x_type, w_type>;
    static_assert(count_of<step>(sw::op_code::assign) == 1 && !sw::verify(step::program));
    const auto e = run_program<step>(rank, fresh(), w);
    CHECK(values_of(e->template output<double>(0)) == values_of(std::get<0>(want).to_local()));
    CHECK(values_of(e->template output<double>(1)) == values_of(std::get<1>(want).to_local()));
    CHECK(values_of(e->template output<double>(2)) == values_of(std::get<2>(want).to_local()));
    CHECK(values_of(e->template output<double>(3)) == values_of(std::get<3>(want).to_local()));
    CHECK(numbers(e->template input<double>(0).begin(), e->template input<double>(0).end()) == values_of(x.to_local()));

    // run at once, the program writes the tensor that it is given
    const auto given = fresh();
    const auto again = x_type::template run<step>(given, w);
    CHECK(values_of(std::get<3>(again).to_local()) == values_of(std::get<3>(want).to_local()));
    CHECK(values_of(given.to_local()) == values_of(x.to_local()));
  });
}
TEST_CASE("mutation: sharded and replicated tensors on 1 to 4 ranks, eager and as programs") {
  check_writes<1, R, R>();
  check_writes<2, S<0>, sw::reduced>();
  check_writes<3, S<0>, sw::reduced>();
  check_writes<4, S<0>, sw::reduced>();
  check_writes<3, R, R>();
}

// --- placements ------------------------------------------------------------------------------------------------------

// Writes to a tensor under another name, which is not seen in it, to shares of a sum, and where operands are moved to what
// is written.
struct named {
  template <int N>
  static constexpr auto run(const auto& x, const auto& y) {
    using axis = line<N>;
    const auto as_reduced = sw::redistribute<axis, sw::reduced>(x);
    sw::mul_(as_reduced, 2);
    const auto shares = sw::redistribute<axis, sw::partial<>>(as_reduced);
    sw::add_(shares, shares);
    sw::zero_(sw::narrow<0, 0, 2>(shares));
    const auto other = sw::implicit(y);
    sw::mul_(other, sw::implicit(x));
    return std::tuple{sw::contiguous(sw::transpose<0, 1>(x)), sw::redistribute<axis, R>(shares), sw::strict(other)};
  }
};
template <int N>
struct named_on {
  constexpr auto operator()(const auto& x, const auto& y) const { return named::run<N>(x, y); }
};
template <int N>
void check_named() {
  sw::launch<mesh<N>>([](auto& rank) {
    sw::eager on(rank);
    using x_type = tensor<N, R, 5, 4>;
    using y_type = tensor<N, S<0>, 5, 4>;
    const numbers x0 = some(20, 3), y0 = some(20, 4);
    using step = function_of<named_on<N>, x_type, y_type>;
    static_assert(count_of<step>(sw::op_code::assign) == 1);
    sw::executor<step> e(rank, sw::executor_checks::poison);
    e.set_input(0, x0);
    e.set_input(1, y0);
    e.run({});
    const auto block = values_of(y_type::distribute(on, y0).to_local());
    const auto factor = values_of(y_type::distribute(on, x0).to_local());
    for (std::size_t i = 0; i < 20; ++i) {
      CHECK(e.template input<double>(0)[i] == x0[i]);
      CHECK(e.template output<double>(0).data[i] == x0[i % 5 * 4 + i / 5]);
      CHECK(e.template output<double>(1).data[i] == (i < 8 ? 0 : 4 * x0[i]));
    }
    for (std::size_t i = 0; i < block.size(); ++i) CHECK(e.template input<double>(1)[i] == block[i] * factor[i]);
  });
}
TEST_CASE("mutation: under another name, of shares of a sum, and with operands that are moved") {
  check_named<2>();
  check_named<3>();
}

// Blocks of a tensor that every axis shards are the tensor's; others are their own, since a rank that writes one would leave
// the other ranks with other values.
struct blocks {
  constexpr auto operator()(const auto& x) const {
    const auto h = sw::scale(x, 1);
    const auto l = sw::to_local(h);
    sw::add_(sw::narrow<1, 1, 2>(l), 1);
    const auto back = sw::from_local<sw::shape<5, 4>, S<0>>(l);
    sw::mul_(back, 2);
    return std::tuple{sw::scale(h, 1), l, back};
  }
};
struct own_blocks {
  constexpr auto operator()(const auto& x) const {
    const auto h = sw::scale(x, 1);
    const auto l = sw::to_local(h);
    sw::add_(l, 1);
    const auto whole = sw::from_local<R>(l);
    sw::mul_(l, 2);
    return std::tuple{sw::scale(h, 1), l, sw::scale(whole, 1)};
  }
};
template <int N>
void check_blocks() {
  sw::launch<mesh<N>>([](auto& rank) {
    sw::eager on(rank);
    const auto x = tensor<N, S<0>, 5, 4>::distribute(on, some(20, 8));
    auto want = values_of(x.to_local());
    for (std::size_t i = 0; i < want.size(); ++i) want[i] = 2 * (want[i] + (i % 4 == 1 || i % 4 == 2 ? 1 : 0));
    const auto results = both_ways<blocks>(rank, x);
    CHECK(values_of(std::get<0>(results).to_local()) == want);
    CHECK(values_of(std::get<1>(results).to_local()) == want);
    CHECK(values_of(std::get<2>(results).to_local()) == want);
    const auto y = tensor<N, R, 5, 4>::distribute(on, some(20, 8));
    const auto own = both_ways<own_blocks>(rank, y);
    CHECK(values_of(std::get<0>(own).to_local()) == some(20, 8));
    CHECK(values_of(std::get<1>(own).to_local()) != some(20, 8));
    CHECK(values_of(std::get<2>(own).to_local()) != values_of(std::get<1>(own).to_local()));
  });
}
TEST_CASE("mutation: through blocks that are the tensor's, and not through those that are not") {
  check_blocks<1>();
  check_blocks<3>();
}

// --- gradients -------------------------------------------------------------------------------------------------------

// x is read, written and read again; so is what is computed of the weight.
struct written_loss {
  constexpr auto operator()(const auto& x, const auto& w) const {
    const auto h = sw::matmul(x, w);
    const auto square = sw::mul(h, x);
    sw::tanh_(sw::narrow<1, 1, 3>(h));
    sw::mul_(x, sw::add(x, 1));
    const auto rows = sw::transpose<0, 1>(h);
    sw::mul_(rows, sw::transpose<0, 1>(x));
    sw::copy_(sw::narrow<1, 0, 1>(h), sw::narrow<1, 5, 1>(square));
    return sw::mul(sw::add(h, square), x);
  }
};
struct pure_loss {
  constexpr auto operator()(const auto& x, const auto& w) const {
    const auto h = sw::matmul(x, w);
    const auto square = sw::mul(h, x);
    const auto bent = sw::slice_scatter<1, 1>(h, sw::tanh(sw::narrow<1, 1, 3>(h)));
    const auto now = sw::mul(x, sw::add(x, 1));
    const auto rows = sw::contiguous(sw::transpose<0, 1>(sw::mul(sw::transpose<0, 1>(bent), sw::transpose<0, 1>(now))));
    const auto last = sw::slice_scatter<1, 0>(rows, sw::narrow<1, 5, 1>(square));
    return sw::mul(sw::add(last, square), now);
  }
};
template <int N, class PX, class PW>
void check_gradient() {
  sw::launch<mesh<N>>([](auto& rank) {
    sw::eager on(rank);
    using x_type = tensor<N, PX, 7, 6>;
    using w_type = tensor<N, PW, 6, 6>;
    const auto fresh = [&] { return x_type::distribute(on, some(42, 5)); };
    const numbers w0 = some(36, 6);
    const auto w = w_type::distribute(on, w0);
    const auto x = fresh();
    const auto [loss, dw] = sw::value_and_grad<written_loss, 1>(x, w);
    const auto [pure_value, pure_dw] = sw::value_and_grad<pure_loss, 1>(fresh(), w);
    CHECK(values_of(loss.to_local()) == values_of(pure_value.to_local()));
    CHECK(values_of(dw.to_local()) == values_of(pure_dw.to_local()));
    const auto was = values_of(fresh().to_local()), now = values_of(x.to_local());
    for (std::size_t i = 0; i < now.size(); ++i) CHECK(now[i] == was[i] * (was[i] + 1));

    using step = gradient_of<written_loss, sw::wrt<1>, x_type, w_type>;
    static_assert(step::program.nodes[step::program.node_count - 1].op == sw::op_code::assign);  // behind the backward
    const auto e = run_program<step>(rank, fresh(), w);
    CHECK(values_of(e->template output<double>(0)) == values_of(loss.to_local()));
    CHECK(values_of(e->template output<double>(1)) == values_of(dw.to_local()));

    // and the derivative is what differences say
    const auto total_at = [&](std::size_t k, double by) {
      numbers v = w0;
      v[k] += by;
      return sw::sum(written_loss{}(fresh(), w_type::distribute(on, v))).item();
    };
    const auto total = dw.full_tensor();
    const auto whole = total.to_local();
    for (const std::size_t k : {std::size_t{0}, std::size_t{8}, std::size_t{17}, std::size_t{35}}) {
      const double by = 1e-6, slope = (total_at(k, by) - total_at(k, -by)) / (2 * by);
      CHECK(std::abs(whole.data[k] - slope) < 1e-6 * (1 + std::abs(slope)));
    }
  });
}
TEST_CASE("mutation: gradients are those of what was read") {
  check_gradient<1, R, R>();
  check_gradient<2, S<0>, sw::reduced>();
  check_gradient<3, S<0>, sw::reduced>();
  check_gradient<4, R, R>();
}

// --- training --------------------------------------------------------------------------------------------------------

template <bool InPlace>
struct family {
  template <class Bound = sw::unbound>
  struct model : sw::module<model<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::linear<6, 9>, up), (sw::linear<9, 4>, down));
    constexpr auto forward(const auto& x) const {
      const auto h = up(x);
      if constexpr (InPlace) {
        sw::relu_(h);
        sw::mul_(sw::narrow<1, 2, 4>(h), 0.5);
        return down(h);
      } else {
        const auto r = sw::relu(h);
        return down(sw::slice_scatter<1, 2>(r, sw::scale(sw::narrow<1, 2, 4>(r), 0.5)));
      }
    }
  };
};
// What the loss is weighted with decays, step by step, after it was used.
template <int N, bool InPlace>
struct weighted {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<5, 6>, sw::on<line<N>, S<0>>>,
                            sw::input_tensor<double, sw::shape<4>, sw::on<line<N>, sw::reduced>>>;
  constexpr auto operator()(const auto& m, const auto& x, const auto& weight) const {
    const auto y = sw::mul(m(x), weight);
    if constexpr (InPlace) sw::mul_(weight, 0.5);
    return sw::mean(sw::mul(y, y));
  }
};
template <int N, bool InPlace, class Pipeline = sw::pipeline<>>
using training = sw::train_step<family<InPlace>::template model, weighted<N, InPlace>, sw::plan<sw::data_parallel<line<N>>>,
                                mesh<N>, sw::adam<>, Pipeline, double>;

template <int N, class Pipeline>
void check_training() {
  using in_place = training<N, true, Pipeline>;
  using apart = training<N, false>;
  static_assert(count_of<in_place>(sw::op_code::assign) == 1 && in_place::peak_bytes > 0);
  sw::launch<mesh<N>>([](auto& rank) {
    sw::executor<in_place> a(rank, sw::executor_checks::poison);
    sw::executor<apart> b(rank, sw::executor_checks::poison);
    a.initialise(3);
    b.initialise(3);
    const numbers x = some(30, 7);
    numbers weight{1, -2, 3, 0.5};
    a.set_input(1, weight);
    for (int step = 0; step < 3; ++step) {
      sw::step_env env;
      env.step = step + 1;
      env.lr = 0.1;
      a.set_input(0, x);
      b.set_input(0, x);
      b.set_input(1, weight);
      a.run(env);
      b.run(env);
      for (double& v : weight) v *= 0.5;
      CHECK(a.loss() == b.loss());
      for (int p = 0; p < a.parameter_count(); ++p)
        CHECK(numbers(a.parameter(p).begin(), a.parameter(p).end()) ==
              numbers(b.parameter(p).begin(), b.parameter(p).end()));
      CHECK(numbers(a.template input<double>(1).begin(), a.template input<double>(1).end()) == weight);
    }
  });
}
TEST_CASE("mutation: training steps of a model that writes its activations and an input") {
  check_training<1, sw::pipeline<>>();
  check_training<2, sw::pipeline<sw::cancel_redistributions, sw::merge_common, sw::fuse_pointwise>>();
}

// value_and_grad of an eager model writes the input, after all that reads it.
using weights = sw::dtensor_of<double, sw::shape<4>, mesh<2>, sw::on<line<2>, sw::reduced>>;
template <class Rank>
void check_eager_training(Rank& rank) {
  sw::eager on(rank);
  using plan = sw::plan<sw::data_parallel<line<2>>>;
  sw::bind_eager<family<true>::template model, plan, mesh<2>, double> in_place{};
  sw::bind_eager<family<false>::template model, plan, mesh<2>, double> apart{};
  sw::initialise(in_place, on, 3);
  sw::initialise(apart, on, 3);
  const auto x = tensor<2, S<0>, 5, 6>::distribute(on, some(30, 7));
  const auto weight = weights::distribute(on, numbers{1, -2, 3, 0.5});
  const auto apart_weight = weights::distribute(on, numbers{1, -2, 3, 0.5});
  const auto a = sw::value_and_grad(weighted<2, true>{})(in_place, x, weight);
  const auto b = sw::value_and_grad(weighted<2, false>{})(apart, x, apart_weight);
  CHECK(values_of(a.loss.to_local()) == values_of(b.loss.to_local()));
  CHECK(values_of(a.gradients.up.weight.to_local()) == values_of(b.gradients.up.weight.to_local()));
  CHECK(values_of(a.gradients.down.weight.to_local()) == values_of(b.gradients.down.weight.to_local()));
  CHECK(values_of(weight.to_local()) == numbers{0.5, -1, 1.5, 0.25});
}
TEST_CASE("mutation: eager training") {
  sw::launch<mesh<2>>([](auto& rank) { check_eager_training(rank); });
}

}  // namespace
