// SPDX-License-Identifier: Apache-2.0
// Blocks as tensors and tensors as blocks, opaque functions, hooks: in and out of the world of placements.
#include <doctest/doctest.h>

#include <atomic>
#include <both_ways.hpp>

namespace {

using namespace test;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using R = sw::replicate;
using U = sw::reduced;
using P = sw::partial<>;
template <int D>
using S = sw::shard<D>;
template <class Shape, class Placement>
using tensor = sw::dtensor_of<float, Shape, mesh, Placement>;
using numbers = std::vector<float>;

// A local tensor whose block on each rank has the extents given first; dim 0 lies across the ranks.
template <std::int64_t First, std::int64_t... More>
using blocks = tensor<sw::shape<2 * First, More...>, S<0>>;

// --- from_local, to_local -------------------------------------------------------------------------------------------

struct replicated_and_back {
  constexpr auto operator()(const auto& x) const { return sw::to_local<sw::dtensor_gradient>(sw::from_local<R>(x)) + 2; }
};
// The other spelling: the axis by name.
struct replicated_and_back_named {
  constexpr auto operator()(const auto& x) const {
    return sw::to_local<sw::dtensor_gradient>(sw::from_local<sw::on<tp, R>>(x)) + 2;
  }
};

// to_local with a gradient placement, then something that differs from rank to rank, so that its gradient does too.
template <class Grad>
struct gradient_arrives {
  constexpr auto operator()(const auto& x, const auto& factor) const {
    return (sw::to_local<Grad>(sw::from_local<R>(x)) + 2) * factor;
  }
};
struct plus_two_labelled {
  constexpr auto operator()(const auto& x) const { return sw::to_local<sw::grad<S<0>>>(sw::from_local<R>(x)) + 2; }
};

struct gather {
  constexpr auto operator()(const auto& x) const {
    return sw::to_local<sw::dtensor_gradient>(sw::redistribute<tp, R>(sw::from_local<S<0>>(x))) + 2;
  }
};
struct gather_named {
  constexpr auto operator()(const auto& x) const {
    return sw::to_local<sw::dtensor_gradient>(sw::redistribute<tp, sw::replicate>(sw::from_local<sw::on<tp, S<0>>>(x))) + 2;
  }
};

// --- a hook after a module's forward --------------------------------------------------------------------------------

template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<4, 4>, fc));
  constexpr auto forward(const auto& x) const { return fc(x); }
};
template <class B>
using net_model = net<B>;

// A style whose hook leaves the world of placements, adds 2 to the blocks and comes back.
template <class Axis>
struct add_two_to_blocks : sw::prepare_output<Axis, R> {
  template <class X>
  static constexpr auto leave(const X& x) {
    return sw::from_local<R>(sw::to_local<sw::grad<R>>(x) + 2);
  }
};
using plain_plan = sw::plan<>;
using hooked_plan = sw::plan<sw::at<"fc", add_two_to_blocks<tp>>>;

using net_input = sw::dtensor_of<double, sw::shape<4, 4>, mesh, R>;
struct forward_task {
  using inputs = sw::inputs<sw::input_like<net_input>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return model(x); }
};
struct loss_task {
  using inputs = forward_task::inputs;
  constexpr auto operator()(const auto& model, const auto& x) const {
    const auto y = model(x);
    return sw::sum(y * y);
  }
};

// --- opaque functions, unchecked claims -----------------------------------------------------------------------------

std::atomic<int> calls{0};

struct announced {  // what the tracer may not look into
  template <class T>
  void operator()(std::span<T> out, std::span<const T> in) const {
    ++calls;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[i] * in[i] + 1;
  }
};

struct through_opaque {
  constexpr auto operator()(const auto& x) const { return sw::from_local<R>(sw::opaque<announced>(x)) * 2; }
};

struct construct_unchecked {  // two placements on a mesh of one axis, and a shape that the blocks do not have
  constexpr auto operator()(const auto& x) const { return sw::from_local_unchecked<sw::shape<128, 32>, R, S<0>>(x); }
};

}  // namespace

TEST_CASE("dtensor compile: test_dynamo_dtensor_from_local") {
  with_and_without_peers<mesh>([](auto& rank) {
    sw::eager on(rank);
    using type = blocks<1>;
    const auto x = type::from_local(on, numbers{1});
    const auto [y] = both_ways<replicated_and_back>(rank, x);
    CHECK(values_of(y.to_local()) == numbers{3});
    const auto [z, dx] = gradients_both_ways<replicated_and_back, 0>(rank, x);
    static_assert(decltype(dx)::sp == type::sp);
    CHECK(values_of(z.to_local()) == numbers{3});
    CHECK(values_of(dx.to_local()) == numbers{1});
    // two spellings, one graph
    using first = function_of<replicated_and_back, type>;
    using second = function_of<replicated_and_back_named, type>;
    CHECK(sw::to_text(first::program) == sw::to_text(second::program));
    static_assert(first::traffic.collectives == 0 && first::traffic.order_hash == second::traffic.order_hash);
    const auto [named] = both_ways<replicated_and_back_named>(rank, x);
    CHECK(same_bits(named.to_local(), y.to_local()));
  });
}

TEST_CASE("dtensor compile: test_dynamo_to_local_kwargs") {
  with_and_without_peers<mesh>([](auto& rank) {
    sw::eager on(rank);
    const auto x = blocks<4>::from_local(on, numbers{1, 1, 1, 1});
    const auto [y] = both_ways<plus_two_labelled>(rank, x);
    CHECK(values_of(y.to_local()) == numbers{3, 3, 3, 3});

    // the option is a part of the backward program alone
    const numbers factors[] = {{1, 2, 3, 4}, {10, 20, 30, 40}};
    const numbers &own = factors[rank.index()], &at_0 = factors[found_at(rank, 0)], &at_1 = factors[found_at(rank, 1)];
    const auto factor = blocks<4>::from_local(on, own);
    using label_r = gradient_arrives<sw::grad<R>>;
    using label_s = gradient_arrives<sw::grad<S<0>>>;
    using label_p = gradient_arrives<sw::grad<sw::on<tp, P>>>;
    const auto plain = values_of(std::get<0>(both_ways<gradient_arrives<void>>(rank, x, factor)).to_local());
    const auto [vr, dr] = gradients_both_ways<label_r, 0>(rank, x, factor);
    const auto [vs, ds] = gradients_both_ways<label_s, 0>(rank, x, factor);
    const auto [vp, dp] = gradients_both_ways<label_p, 0>(rank, x, factor);
    CHECK(values_of(vr.to_local()) == plain);
    CHECK(values_of(vs.to_local()) == plain);
    CHECK(values_of(vp.to_local()) == plain);
    // equal on all ranks, as is claimed: each rank keeps its own
    CHECK(values_of(dr.to_local()) == own);
    // each rank's own chunk counts, and all see all chunks
    if (found_at(rank, 1) != found_at(rank, 0)) CHECK(values_of(ds.to_local()) == numbers{1, 2, 30, 40});
    else  // the own chunk, twice
      CHECK(values_of(ds.to_local()) == (rank.index() == 0 ? numbers{1, 2, 1, 2} : numbers{30, 40, 30, 40}));
    // summands
    numbers total(4);
    for (std::size_t i = 0; i < 4; ++i) total[i] = at_0[i] + at_1[i];
    CHECK(values_of(dp.to_local()) == total);
    using type = blocks<4>;
    static_assert(function_of<label_s, type, type>::traffic.collectives == 0);
    static_assert(collectives_of<gradient_of<label_r, sw::wrt<0>, type, type>>() == in_order());
    static_assert(collectives_of<gradient_of<label_s, sw::wrt<0>, type, type>>() == in_order(sw::transition::all_gather));
    static_assert(collectives_of<gradient_of<label_p, sw::wrt<0>, type, type>>() == in_order(sw::transition::all_reduce));
  });
}

TEST_CASE("dtensor compile: test_dynamo_dtensor_from_local_redistribute") {
  with_and_without_peers<mesh>([](auto& rank) {
    sw::eager on(rank);
    using type = blocks<1>;
    const auto x = type::from_local(on, numbers{1});
    const auto [y] = both_ways<gather>(rank, x);
    CHECK(values_of(y.to_local()) == numbers{3, 3});
    static_assert(collectives_of<function_of<gather, type>>() == in_order(sw::transition::all_gather));
    CHECK(sw::to_text(function_of<gather, type>::program) == sw::to_text(function_of<gather_named, type>::program));
    // ranks with different blocks: the own one and the other's
    const auto mine = type::from_local(on, numbers{10.0F * static_cast<float>(rank.index())});
    const auto [z, dx] = gradients_both_ways<gather, 0>(rank, mine);
    const auto gathered = [&](int r) { return 10.0F * static_cast<float>(found_at(rank, r)) + 2; };
    CHECK(values_of(z.to_local()) == numbers{gathered(0), gathered(1)});
    CHECK(values_of(dx.to_local()) == numbers{1});
  });
}

TEST_CASE("dtensor compile: test_dynamo_to_local_kwargs_forward_hook") {
  using plain = sw::forward_step<net_model, forward_task, plain_plan, mesh, sw::pipeline<>, double>;
  using hooked = sw::forward_step<net_model, forward_task, hooked_plan, mesh, sw::pipeline<>, double>;
  using train_plain = sw::train_step<net_model, loss_task, plain_plan, mesh, sw::sgd<>, sw::pipeline<>, double>;
  using train_hooked = sw::train_step<net_model, loss_task, hooked_plan, mesh, sw::sgd<>, sw::pipeline<>, double>;
  static_assert(!sw::verify(hooked::program) && !sw::verify(train_hooked::program));
  static_assert(hooked::program.spec_of(hooked::program.outputs[0]).place[0] == sw::replicate_value());
  static_assert(hooked::traffic.collectives == 0 && train_hooked::traffic.collectives == 0);
  std::vector<double> input(16);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<double>(i * 7 % 11) / 4 - 1;
  with_and_without_peers<mesh>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<plain, rank_type> without(rank);
    sw::executor<hooked, rank_type> with(rank);
    for (const auto run : {&without}) run->initialise(3);
    with.initialise(3);
    without.set_input(0, input);
    with.set_input(0, input);
    without.run({});
    with.run({});
    sw::eager on(rank);
    sw::bind_eager<net_model, hooked_plan, mesh, double, rank_type> model{};
    sw::initialise(model, on, 3);
    const auto x = net_input::distribute(on, input);
    const auto y = forward_task{}(model, x);
    static_assert(decltype(y)::sp.place[0].is_replicate());
    CHECK(same_bits(y.to_local(), with.output(0)));
    for (std::size_t i = 0; i < 16; ++i) CHECK(with.output()[i] == without.output()[i] + 2);

    // the hook is differentiated: d/dw sum(h^2) = 2 h dh/dw, with h two larger than without the hook
    sw::executor<train_plain, rank_type> step(rank);
    sw::executor<train_hooked, rank_type> hooked_step(rank);
    step.initialise(3);
    hooked_step.initialise(3);
    std::vector<double> bias(4, 0.5), bias_with_two(4, 2.5);
    hooked_step.set_parameter(1, bias);
    step.set_parameter(1, bias_with_two);
    step.set_input(0, input);
    hooked_step.set_input(0, input);
    sw::step_env env;
    env.lr = 0.125;
    env.step = 1;
    step.run(env);
    hooked_step.run(env);
    CHECK(step.loss() == doctest::Approx(hooked_step.loss()).epsilon(1e-14));
    for (std::size_t i = 0; i < 16; ++i)
      CHECK(step.parameter(0)[i] == doctest::Approx(hooked_step.parameter(0)[i]).epsilon(1e-13));
    for (std::size_t i = 0; i < 4; ++i)
      CHECK(step.parameter(1)[i] - 2 == doctest::Approx(hooked_step.parameter(1)[i]).epsilon(1e-13));
  });
}

TEST_CASE("dtensor compile: test_dtensor_constructor_w_graph_break") {
  with_and_without_peers<mesh>([](auto& rank) {
    sw::eager on(rank);
    using type = blocks<64, 32>;
    numbers own(64 * 32);
    for (std::size_t i = 0; i < own.size(); ++i)
      own[i] = static_cast<float>(i % 97) - 40.0F * static_cast<float>(rank.index());
    const auto x = type::from_local(on, own);
    const auto raw = construct_unchecked{}(x);
    static_assert(decltype(raw)::placements == 2);
    static_assert(std::is_same_v<typename decltype(raw)::shape_type, sw::shape<128, 32>>);
    CHECK(raw.local.shares_storage_with(x));
    const auto [y] = both_ways<construct_unchecked>(rank, x);
    CHECK(values_of(y.to_local()) == own);
    // the claim that holds has a tensor; see test/fail/claim_placement_count.cpp for this one
    const auto good = sw::from_local_unchecked<sw::shape<128, 32>, S<0>>(x).checked();
    static_assert(decltype(good)::sp == tensor<sw::shape<128, 32>, S<0>>::sp);
    CHECK(values_of(good.to_local()) == own);
  });
}

TEST_CASE("dtensor compile: test_dtensor_constructor_w_dynamo_disable") {
  calls = 0;
  using type = blocks<32>;
  using program = function_of<through_opaque, type>;
  static_assert(count_of<program>(sw::op_code::opaque) == 1 && count_of<program>(sw::op_code::mul) == 0);
  static_assert(program::program.node_count == 4);  // input, the call, the claim, times 2: nothing of the call's inside
  CHECK(calls == 0);                                // tracing did not call it
  with_and_without_peers<mesh>([](auto& rank) {
    sw::eager on(rank);
    numbers own(32), wanted(32);
    for (std::size_t i = 0; i < own.size(); ++i) {
      own[i] = static_cast<float>(i) / 8 - 1;
      wanted[i] = (own[i] * own[i] + 1) * 2;
    }
    const auto x = type::from_local(on, own);
    const auto [y] = both_ways<through_opaque>(rank, x);
    static_assert(decltype(y)::sp == tensor<sw::shape<32>, R>::sp);
    CHECK(values_of(y.to_local()) == wanted);
  });
  CHECK(calls == ways * 2 * 3);  // on each rank once at once and twice by the program
}
