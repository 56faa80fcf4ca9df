// SPDX-License-Identifier: Apache-2.0
// What FSDP's compiled form asks of a trace beside its collectives: training states, hooks that a trace goes into or does not.
#include <stdexcept>
#include <vector>

#include <shardwise/module/forward_hooks.hpp>
#include <shardwise/module/training_state.hpp>

#include <doctest/doctest.h>

#include "thrown.hpp"
#include "tracked_models.hpp"

namespace {

namespace sw = shardwise;
using namespace tracked;
using state = sw::training_state;

// --- training states ---------------------------------------------------------------------------------------------------------------

// A group without parameters: nothing but its state.
struct group {
  state training = state::idle;
};

// x + 1 where the group is in its forward; `group` is what it was behind it.
constexpr auto plus_one(group& g, const auto& x) {
  const sw::use_training_state scope(g.training, state::forward);
  if (g.training == state::forward) return x + 1;
  return contiguous(x);
}
struct plus_one_function {
  constexpr auto operator()(const auto& x) const {
    group g;
    const auto y = plus_one(g, x);
    if (g.training != state::idle)
      throw std::logic_error("the state is not restored");  // in a constant: it does not compile
    return y;
  }
};

constexpr bool restored_when_left_early(int n) {
  group g;
  const auto leaves = [&](int k) {
    const sw::use_training_state outer(g.training, state::pre_backward);
    if (k == 0) return g.training == state::pre_backward;
    const sw::use_training_state inner(g.training, state::post_backward);
    for (;;) {
      const sw::use_training_state innermost(g.training, state::forward);
      if (k == 1) return g.training == state::forward;
      break;
    }
    return g.training == state::post_backward;
  };
  return leaves(n) && g.training == state::idle;
}
static_assert(restored_when_left_early(0) && restored_when_left_early(1) && restored_when_left_early(2));

using vector1 = sw::dtensor_of<double, sw::shape<1>, mesh>;
using compiled_plus_one = sw::function_step<plus_one_function, mesh, sw::inputs<sw::input_like<vector1>>>;
static_assert(sw::trace_counts_of<compiled_plus_one>.frames == 1);
static_assert(sw::trace_counts_of<compiled_plus_one>.ops == 1);
static_assert(sw::trace_counts_of<compiled_plus_one>.graphs == 1);
static_assert(sw::trace_counts_of<compiled_plus_one>.opaque_calls == 0);
static_assert(std::is_same_v<decltype(sw::trace_counts_of<compiled_plus_one>), const sw::trace_counts>);

// The states of a module's call, its root's and of a name that nobody has, as the four hooks see them.
template <class Plan>
using layers = sw::module_events_of<layers_model, sum_of<2, 8>, Plan, mesh, double>;
template <class Watched>
constexpr auto states_of = [] {
  struct {
    list<state, 16> first, root;
    state before, after, unknown;
  } r;
  sw::module_tracker tracker;
  const auto hook = [&](sw::tracked_module m) {
    if (m.name() == "Layers.linears.1") r.first.add(m.state());
    r.root.add(tracker.state_of("Layers"));
  };
  tracker.register_user_hooks(hook, hook, hook, hook);
  r.before = tracker.state_of("Layers");
  sw::replay<Watched>(tracker);
  r.after = tracker.state_of("Layers");
  r.unknown = tracker.state_of("nobody");
  return r;
}();
constexpr auto states = states_of<layers<sw::plan<>>>;
static_assert(states.first.is({state::forward, state::forward, state::pre_backward, state::post_backward}));
static_assert(states.root.is({state::forward, state::forward, state::forward, state::forward, state::forward, state::forward,
                              state::pre_backward, state::pre_backward, state::pre_backward, state::pre_backward}));
// What a checkpoint computes again is its backward's, in whose state it stays.
static_assert(states_of<layers<sw::plan<sw::at<"linears.1", sw::checkpoint>>>>.first.is(
    {state::forward, state::forward, state::pre_backward, state::pre_backward, state::pre_backward, state::post_backward}));
static_assert(states.before == state::idle && states.after == state::idle && states.unknown == state::idle);

// --- hooks ---------------------------------------------------------------------------------------------------------------------------

struct doubled {
  constexpr auto operator()(const sw::tensor auto& x) const { return 2.0 * x; }
  template <class T>
  void operator()(std::span<T> out, std::span<const T> in) const {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = T(2) * in[i];
  }
};
struct less_one {
  constexpr auto operator()(const sw::tensor auto& x) const { return x - 1.0; }
  template <class T>
  void operator()(std::span<T> out, std::span<const T> in) const {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[i] - T(1);
  }
};

struct dp : sw::axis<2> {};
using mesh2 = sw::mesh<dp>;

// in (4, 4) -> linear, relu, linear, relu: 4 to 16 to 4 features.
template <class Bound = sw::unbound>
struct mlp : sw::module<mlp<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<4, 16>, in_proj), (sw::linear<16, 4>, out_proj));
  constexpr auto forward(const auto& x) const { return sw::relu(out_proj(sw::relu(in_proj(x)))); }
};
template <class B>
using mlp_model = mlp<B>;

struct mlp_task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<4, 4>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return model(x); }
};

template <sw::hook_bodies Bodies>
using hooked = sw::plan<sw::data_parallel<dp>, sw::at<"in_proj", sw::forward_hooks<dp, doubled, sw::no_hook, Bodies>>,
                        sw::at<"out_proj", sw::forward_hooks<dp, doubled, less_one, Bodies>>>;
template <class Plan>
using mlp_step = sw::forward_step<mlp_model, mlp_task, Plan, mesh2, sw::pipeline<>, double>;
using traced_step = mlp_step<hooked<sw::hook_bodies::traced>>;
using opaque_step = mlp_step<hooked<sw::hook_bodies::opaque>>;
using plain_step = mlp_step<sw::plan<sw::data_parallel<dp>>>;

static_assert(sw::trace_counts_of<traced_step>.hook_frames == 3 && sw::trace_counts_of<traced_step>.opaque_calls == 0);
static_assert(sw::trace_counts_of<opaque_step>.hook_frames == 0 && sw::trace_counts_of<opaque_step>.opaque_calls == 3);
static_assert(sw::trace_counts_of<plain_step>.hook_frames == 0 && sw::trace_counts_of<plain_step>.opaque_calls == 0);
static_assert(sw::trace_counts_of<traced_step>.ops == sw::trace_counts_of<plain_step>.ops + 3);
static_assert(sw::trace_counts_of<opaque_step>.ops == sw::trace_counts_of<plain_step>.ops + 3);

template <class Step, class Rank>
std::vector<double> result(Rank& rank, const std::vector<double>& x) {
  sw::executor<Step, Rank> run(rank);
  run.initialise(11);
  run.set_input(0, x);
  run.run(sw::step_env{});
  const auto out = run.output();
  return {out.begin(), out.end()};
}

}  // namespace

TEST_CASE("fsdp compile: test_dynamo_trace_use_training_state") {
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    group g;
    const auto x = vector1::zeros(on);
    CHECK(g.training == state::idle);
    const auto eager = plus_one(g, x);
    CHECK(g.training == state::idle);
    CHECK(eager.item() == 1);
    sw::executor<compiled_plus_one, std::remove_reference_t<decltype(rank)>> run(rank);
    run.set_input(0, std::vector<double>{0});
    run.run(sw::step_env{});
    CHECK(run.output()[0] == eager.item());
    // left by an exception
    CHECK(test::thrown([&] {
            const sw::use_training_state scope(g.training, state::post_backward);
            throw std::runtime_error("early");
          }) == "early");
    CHECK(g.training == state::idle);
  });
}

TEST_CASE("fsdp compile: test_disable_compiling_hooks") {
  std::vector<double> x(16);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.1 * static_cast<double>(i) - 0.6;
  sw::launch<mesh2>([&](auto& rank) {
    const auto traced = result<traced_step>(rank, x), opaque = result<opaque_step>(rank, x),
               plain = result<plain_step>(rank, x);
    CHECK(traced == opaque);
    CHECK(traced != plain);
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::eager on(rank);
    sw::bind_eager<mlp_model, hooked<sw::hook_bodies::traced>, mesh2, double, rank_type> model{};
    sw::initialise(model, on, 11);
    const auto at_once =
        model(sw::dtensor_of<double, sw::shape<4, 4>, mesh2, sw::on<dp, sw::shard<0>>>::distribute(on, x)).to_local();
    CHECK(at_once.data.size() == traced.size());
    for (std::size_t i = 0; i < traced.size(); ++i) CHECK(at_once.data[i] == traced[i]);
  });
}
