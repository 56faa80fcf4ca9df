// SPDX-License-Identifier: Apache-2.0
// Trackers of real runs: compiled steps, gradients computed at once and modules called at once move them alike, and each node runs
// while the modules that it belongs to are parents; their names are those of errors, explain and timelines.
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <shardwise/graph/text/render.hpp>
#include <shardwise/runtime/timeline/program.hpp>

#include <doctest/doctest.h>

#include "thrown.hpp"
#include "tracked_models.hpp"

namespace {

namespace sw = shardwise;
using namespace tracked;

template <int N>
struct rows : sw::axis<N> {};
template <int N>
struct cols : sw::axis<N> {};
template <int M, int N>
using grid = sw::mesh<rows<M>, cols<N>>;

template <class Bound = sw::unbound>
struct block : sw::module<block<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<12, 20>, up), (sw::linear<20, 12>, down), (sw::layer_norm_module<12>, norm));
  constexpr auto forward(const auto& x) const {
    sw::tanh(x);  // nobody reads it: events have no place at what does not run
    return norm(x + sw::dropout(down(sw::gelu(up(x))), 0.2));
  }
};
template <class B>
using block_type = block<B>;

// A list of blocks, a head, and a module that is never called.
template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::repeat<3, block_type>, layers), (sw::linear<12, 7>, head), (sw::linear<4, 4>, unused));
  constexpr auto forward(const auto& x) const { return head(layers(x)); }
};
template <class B>
using net_model = net<B>;

template <int M, int N>
using plan = sw::plan<sw::data_parallel<rows<M>>, sw::at<"layers.*.up", sw::colwise<cols<N>>>,
                      sw::at<"layers.*.down", sw::rowwise<cols<N>>>>;

template <int M, int N>
using checkpointed_plan = sw::plan<sw::data_parallel<rows<M>>, sw::at<"layers.*.up", sw::colwise<cols<N>>>,
                                   sw::at<"layers.*.down", sw::rowwise<cols<N>>>, sw::at<"layers.1", sw::checkpoint>>;

template <class r>
struct fit {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<9, 12>, sw::on<r, sw::shard<0>>>,
                            sw::input_tensor<double, sw::shape<9, 7>, sw::on<r, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& t) const {
    const auto apart = model(x) - t;
    return sw::mean(apart * apart);
  }
};

std::string full_name(const std::string& path) { return path.empty() ? "net" : "net." + path; }

struct event_text {
  std::vector<std::string> all;
  sw::module_tracker tracker;
  event_text() {
    const auto hook = [this](const char* name) {
      return [this, name](sw::tracked_module m) {
        all.push_back(std::string(name) + " " + std::string(m.name()) + (tracker.is_bw() ? " bw" : ""));
      };
    };
    tracker.register_user_hooks(hook("pre_fw"), hook("post_fw"), hook("pre_bw"), hook("post_bw"));
  }
};

sw::step_env env_of_step(int s) {
  sw::step_env env;
  env.seed = 3;
  env.step = s;
  env.lr = 0.02;
  return env;
}

// The replay of a step, and beside it the law: a node of the forward or backward runs while its module and all above it that are
// called are parents.
template <class Step>
struct judged_replay final : sw::runtime::call_observer {
  using events = sw::detail::step_events<Step>;
  sw::module_tracker& tracker;
  sw::detail::event_replay<std::remove_cvref_t<decltype(events::value)>> inner;
  int nodes = 0, backward = 0, again = 0;

  explicit judged_replay(sw::module_tracker& t)
      : tracker(t),
        inner(t, events::value, t.enter_program<typename events::root>(Step::program.scopes, Step::program.scope_count)) {}
  void before(int node) override {
    inner.before(node);
    const auto& g = Step::program;
    if (node == g.node_count || tracker.parents().size() == 1) return;
    again += sw::replay_of(g, node) >= 0;
    for (int s = g.nodes[node].scope; s >= 0; s = g.scopes[s].parent) {
      const std::string path = sw::module_path(g, s);
      if (path == "layers") continue;  // a list
      CHECK_MESSAGE(tracker.is_parent(full_name(path)), path, " is no parent at node ", node);
      ++nodes;
      backward += tracker.is_bw();
    }
  }
};

// Again: events of what a checkpoint makes run again.
template <int M, int N, template <int, int> class Plan = plan, std::size_t Again = 0, class Rank>
void check_runs(Rank& rank) {
  using mesh_type = grid<M, N>;
  using task = fit<rows<M>>;
  using step = sw::train_step<net_model, task, Plan<M, N>, mesh_type, sw::adam<>, sw::pipeline<>, double>;
  using events = sw::module_events_of<net_model, task, Plan<M, N>, mesh_type, double>;
  event_text replayed, compiled, eager;
  sw::replay<events>(replayed.tracker);
  // net, its first block and that one's first layer have no end in the backward
  REQUIRE(replayed.all.size() == 4 * (3 * 4 + 2) - 3 + Again);

  std::vector<double> xs(9 * 12), ts(9 * 7);
  for (std::size_t i = 0; i < xs.size(); ++i) xs[i] = 0.01 * static_cast<double>(i % 17) - 0.05;
  for (std::size_t i = 0; i < ts.size(); ++i) ts[i] = 0.02 * static_cast<double>(i % 13) - 0.1;
  sw::executor<step, Rank> tracked_step(rank), plain(rank);
  for (auto* e : {&tracked_step, &plain}) {
    e->initialise(5);
    e->set_input(0, xs);
    e->set_input(1, ts);
  }
  sw::run_tracked(compiled.tracker, tracked_step, env_of_step(1));
  plain.run(env_of_step(1));
  CHECK(compiled.all == replayed.all);
  CHECK(tracked_step.loss() == plain.loss());

  judged_replay<step> judge(compiled.tracker);
  tracked_step.observe(&judge);
  tracked_step.run(env_of_step(2));
  tracked_step.observe(nullptr);
  CHECK(judge.nodes > 100);
  CHECK(judge.backward > 50);
  CHECK((judge.again > 5) == (Again > 0));
  plain.run(env_of_step(2));
  CHECK(tracked_step.loss() == plain.loss());
  CHECK(compiled.all.size() == 2 * replayed.all.size());

  sw::eager on(rank);
  sw::bind_eager<net_model, Plan<M, N>, mesh_type, double, Rank> model{};
  sw::initialise(model, on, 5);
  using input = sw::dtensor_of<double, sw::shape<9, 12>, mesh_type, sw::on<rows<M>, sw::shard<0>>>;
  using target = sw::dtensor_of<double, sw::shape<9, 7>, mesh_type, sw::on<rows<M>, sw::shard<0>>>;
  const auto x = input::distribute(on, xs);
  const auto t = target::distribute(on, ts);
  on.start_step(3, 1);
  const auto watched = sw::tracked_value_and_grad(eager.tracker, task{})(model, x, t);
  on.start_step(3, 1);
  const auto unwatched = sw::value_and_grad(task{})(model, x, t);
  CHECK(eager.all == replayed.all);
  CHECK(watched.loss.item() == unwatched.loss.item());
  CHECK(watched.gradients.head.bias.full_tensor().to_local().data[3] ==
        unwatched.gradients.head.bias.full_tensor().to_local().data[3]);

  // modules called at once: the forward's part
  event_text at_once;
  {
    const sw::tracked_calls calls(at_once.tracker, on, model);
    CHECK(model(x).has_value());
    CHECK(test::mentions(test::thrown([&] { sw::tracked_calls second(eager.tracker, on, model); }), "another one watches"));
  }
  CHECK(model(x).has_value());  // nobody watches
  const std::vector<std::string> forward(replayed.all.begin(), replayed.all.begin() + 2 * (3 * 4 + 2));
  CHECK(at_once.all == forward);
  CHECK(at_once.tracker.parents().size() == 1);
}

// A step whose gradients are read in two bytes has fewer nodes than its trace says.
struct low_fit {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<9, 12>>, sw::input_tensor<float, sw::shape<9, 7>>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& t) const {
    const auto apart = sw::cast<float>(model(x)) - t;
    return sw::mean(apart * apart);
  }
};
template <class... E>
void check_low() {
  using step =
      sw::train_step<net_model, low_fit, sw::plan<sw::mixed<sw::bf16>, E...>, grid<1, 1>, sw::adam<>, sw::pipeline<>>;
  sw::launch<grid<1, 1>>([](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(5);
    run.set_input(0, std::vector<float>(9 * 12, 0.1F));
    run.set_input(1, std::vector<float>(9 * 7, 0.2F));
    event_text seen;
    judged_replay<step> judge(seen.tracker);
    run.observe(&judge);
    run.run(env_of_step(1));
    run.observe(nullptr);
    CHECK(judge.nodes > 100);
    CHECK(judge.backward > 50);
    CHECK((judge.again > 5) == (sizeof...(E) > 0));
  });
}

// A call that ends by an exception.
template <class Bound = sw::unbound>
struct fails : sw::module<fails<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<4, 4>, inner));
  auto forward(const auto& x) const {
    auto y = inner(x);
    if (y.has_value()) throw std::runtime_error("the module's own");
    return y;
  }
};
template <class B>
using fails_model = fails<B>;

// A class of the same name in another namespace.
namespace other {
struct Bar {};
}  // namespace other

}  // namespace

TEST_CASE("module tracker: steps, gradients at once and calls at once agree, on 1, 2 and 4 ranks, with a checkpoint too") {
  sw::launch<grid<1, 1>>([](auto& rank) { check_runs<1, 1>(rank); });
  sw::launch<grid<1, 2>>([](auto& rank) { check_runs<1, 2>(rank); });
  sw::launch<grid<2, 2>>([](auto& rank) { check_runs<2, 2>(rank); });
  sw::launch<grid<1, 2>>([](auto& rank) { check_runs<1, 2, checkpointed_plan, 8>(rank); });
}

TEST_CASE("module tracker: nodes of a mixed step run while their modules are parents, with a checkpoint too") {
  check_low<>();
  check_low<sw::at<"layers.1", sw::checkpoint>>();
}

TEST_CASE("module tracker: names are those of errors, explain and timelines behind the root's class") {
  using task = fit<rows<1>>;
  using step = sw::train_step<net_model, task, plan<1, 1>, grid<1, 1>, sw::adam<>, sw::pipeline<>, double>;
  const auto& g = step::program;
  std::vector<std::string> called;
  sw::module_tracker tracker;
  tracker.register_user_hooks([&](sw::tracked_module m) { called.emplace_back(m.name()); }, nullptr, nullptr, nullptr);
  const int first = tracker.enter_program<typename sw::detail::step_events<step>::root>(g.scopes, g.scope_count);
  for (int s = 0; s < g.scope_count; ++s) tracker.happen({sw::module_event_kind::pre_forward, s, 0, nullptr}, first);
  REQUIRE(called.size() == static_cast<std::size_t>(g.scope_count));
  for (int s = 0; s < g.scope_count; ++s) CHECK(called[static_cast<std::size_t>(s)] == full_name(sw::module_path(g, s)));
  CHECK(called[3] == "net.layers.0.up");
  CHECK(tracker.warnings() == 0);
  sw::launch<grid<1, 1>>([&](auto& rank) {
    sw::executor<step, std::remove_reference_t<decltype(rank)>> run(rank);
    run.initialise(5);
    run.set_input(0, std::vector<double>(9 * 12));
    run.set_input(1, std::vector<double>(9 * 7));
    sw::timeline t(1);
    run.record(&t);
    run.run(env_of_step(1));
    int named = 0;
    for (const auto& c : t.program_of(t.runs()[0]).calls) {
      bool known = c.module.empty();
      for (const std::string& name : called) known = known || name == full_name(c.module);
      CHECK_MESSAGE(known, c.module, " is no name of the tracker's");
      named += !c.module.empty();
    }
    CHECK(named > 50);
  });
}

TEST_CASE("module tracker: what throws leaves nothing under way") {
  sw::launch<mesh>([](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::eager on(rank);
    sw::bind_eager<fails_model, sw::plan<>, mesh, double, rank_type> model{}, stranger{};
    sw::initialise(model, on, 5);
    sw::initialise(stranger, on, 5);
    const auto x = sw::dtensor_of<double, sw::shape<2, 4>, mesh>::ones(on);
    event_text log;
    {
      const sw::tracked_calls calls(log.tracker, on, model);
      CHECK(test::thrown([&] { model(x); }) == "the module's own");
      CHECK(log.all ==
            std::vector<std::string>{"pre_fw fails", "pre_fw fails.inner", "post_fw fails.inner", "post_fw fails"});
      CHECK(log.tracker.parents().size() == 1);
      CHECK(test::mentions(test::thrown([&] { stranger(x); }), "none of the model's"));
    }
    // a hook that throws ends the run, and the next one is whole
    sw::bind_eager<bar_model, sw::plan<>, mesh, double, rank_type> bar{};
    sw::initialise(bar, on, 5);
    const auto y = sw::dtensor_of<double, sw::shape<10, 10>, mesh>::ones(on);
    sw::module_tracker tracker;
    bool fail = true;
    int events = 0;
    tracker.register_user_hooks([&](sw::tracked_module) { ++events; }, nullptr,
                                [&](sw::tracked_module m) {
                                  ++events;
                                  if (fail && m.name() == "Bar.foo") throw std::runtime_error("the hook's own");
                                },
                                nullptr);
    const auto run = [&] { sw::tracked_value_and_grad(tracker, sum_of<10, 10>{})(bar, y); };
    CHECK(test::mentions(test::thrown(run), "the hook's own"));
    CHECK(!tracker.is_bw());
    CHECK(tracker.parents().size() == 1);
    CHECK(events == 4);
    fail = false;
    run();
    CHECK(events == 8);
    CHECK(tracker.warnings() == 0);
  });
}

TEST_CASE("module tracker: hooks are set in their order until one is refused; nullptr takes one away") {
  sw::module_tracker tracker;
  int first = 0, second = 0;
  const auto add = [](int& n) { return [&n](sw::tracked_module) { ++n; }; };
  tracker.register_user_hooks(nullptr, nullptr, add(first), nullptr);
  // pre_fw and post_fw are set before pre_bw is refused; post_bw is not
  const auto twice = [&] { tracker.register_user_hooks(add(second), add(second), add(second), add(second)); };
  CHECK(test::mentions(test::thrown(twice), "Only one pre_bw_hook can be registered at a time"));
  const auto events = [&] {
    first = second = 0;
    sw::replay<sw::module_events_of<linear2, sum_of<1, 2>, sw::plan<>, mesh, double, sw::wrt<0>>>(tracker);
    return first * 10 + second;
  };
  CHECK(events() == 12);
  for (const char* name : {"pre_fw_hook", "post_fw_hook"}) {
    CHECK(test::mentions(test::thrown(twice), std::string("Only one ") + name));
    if (name == std::string("pre_fw_hook")) tracker.register_user_hooks(nullptr, nullptr, nullptr, nullptr);
    if (name == std::string("pre_fw_hook")) tracker.register_user_hooks(nullptr, add(second), nullptr, nullptr);
    if (name == std::string("pre_fw_hook")) CHECK(events() == 1);
  }
  tracker.clear_user_hooks();
  CHECK(events() == 0);
  tracker.register_user_hooks(add(first), nullptr, nullptr, add(second));
  CHECK(test::mentions(test::thrown([&] { tracker.register_user_hooks(nullptr, nullptr, nullptr, add(second)); }),
                       "Only one post_bw_hook"));
  CHECK(events() == 1);
}

TEST_CASE("module tracker: counters, warnings and what ends without having begun") {
  using kind = sw::module_event_kind;
  constexpr sw::scope scopes[] = {{"", -1, -1}, {"foo", -1, 0}};
  sw::module_tracker tracker;
  const int a = tracker.enter_program<tracked::Bar<>>(scopes, 2);
  const auto at = [&](kind k, int s) { tracker.happen({k, s, 0, nullptr}, a); };
  at(kind::pre_forward, 0);
  at(kind::pre_forward, 0);  // calls itself
  CHECK(tracker.warnings() == 1);
  at(kind::post_forward, 0);
  CHECK(tracker.is_parent("Bar"));
  at(kind::post_forward, 0);
  CHECK(!tracker.is_parent("Bar"));
  CHECK(test::mentions(test::thrown([&] { at(kind::post_forward, 0); }), "a call of Bar ends that has not begun"));
  // in a backward that is accepted, and counts go on at the next begin from one
  at(kind::begin_backward, -1);
  at(kind::post_backward, 0);
  at(kind::pre_backward, 0);
  at(kind::pre_forward, 0);
  at(kind::post_forward, 0);
  CHECK(tracker.is_parent("Bar"));
  CHECK(tracker.is_bw());
  at(kind::end_backward, -1);
  CHECK(!tracker.is_parent("Bar"));
  CHECK(tracker.is_parent("Global"));
  CHECK(tracker.warnings() == 1);
  // a root of the same class has the same names
  constexpr sw::scope others[] = {{"", -1, -1}};
  const int b = tracker.enter_program<other::Bar>(others, 1);
  CHECK(b != a);
  CHECK(tracker.enter_program<tracked::Bar<>>(scopes, 2) == a);
  at(kind::pre_forward, 0);
  tracker.happen({kind::pre_forward, 0, 0, nullptr}, b);
  CHECK(tracker.warnings() == 2);
  CHECK(tracker.parents().size() == 2);
}
