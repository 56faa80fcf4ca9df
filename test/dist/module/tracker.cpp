// SPDX-License-Identifier: Apache-2.0
// Module trackers: names, order and hooks of PyTorch's ModTracker, as constants and while programs run.
#include <optional>

#include <doctest/doctest.h>

#include "thrown.hpp"
#include "tracked_models.hpp"

namespace {

namespace sw = shardwise;
using namespace tracked;

// Parents as a set, of at most five names.
struct moment {
  std::array<kept_name, 5> parents{};
  bool is_bw = false;
  constexpr bool operator==(const moment& o) const {
    int found = 0, mine = 0, others = 0;
    for (const kept_name& n : parents) {
      mine += n.size > 0;
      others += o.parents[static_cast<std::size_t>(&n - parents.data())].size > 0;
      for (const kept_name& m : o.parents) found += n.size > 0 && n == m;
    }
    return is_bw == o.is_bw && found == mine && mine == others;
  }
};
constexpr moment moment_of(const sw::module_tracker& t) {
  moment m{{}, t.is_bw()};
  std::size_t k = 0;
  for (const std::string_view n : t.parents()) m.parents[k++] = n;
  return m;
}

// The same without a tracker.
struct mod_function {
  constexpr auto operator()(const auto& input) const {
    auto x = 1.0 * input;
    for (int k = 0; k < 3; ++k) {
      sw::relu_(x);
      x = sw::matmul(x, x);
    }
    return sw::sum(x);
  }
};

using mod = sw::module_events_of<mod_model, mod_task, sw::plan<>, mesh, double, sw::wrt<0>>;
inline constexpr auto mod_log = [] {
  struct {
    list<moment, 8> forward, backward;
    moment between, end;
    int warnings = 0;
  } r;
  sw::module_tracker tracker;
  tracker.on_note([&](const char*) { r.forward.add(moment_of(tracker)); });
  tracker.on_gradient([&](const char*) { r.backward.add(moment_of(tracker)); });
  sw::replay<mod>(tracker);
  r.between = moment_of(tracker);
  sw::replay<mod>(tracker);
  r.end = moment_of(tracker);
  r.warnings = tracker.warnings();
  return r;
}();
constexpr moment c0{{"Global", "Mod", "Mod.c.0"}, false}, a{{"Global", "Mod", "Mod.a"}, false},
    nest{{"Global", "Mod", "Mod.b.nest"}, false};
constexpr moment c0_bw{{"Global", "Mod", "Mod.c.0"}, true}, a_bw{{"Global", "Mod", "Mod.a"}, true},
    nest_bw{{"Global", "Mod", "Mod.b.nest"}, true};
static_assert(mod_log.forward.is({c0, a, nest, c0, a, nest}));
static_assert(mod_log.backward.is({nest_bw, a_bw, c0_bw, nest_bw, a_bw, c0_bw}));
static_assert(mod_log.between == moment{{"Global"}, false} && mod_log.end == moment{{"Global"}, false} &&
              mod_log.warnings == 0);

// --- the end of a backward --------------------------------------------------------------------------------------------------------

using small = sw::module_events_of<linear2, sum_of<1, 2>, sw::plan<>, mesh, double, sw::wrt<0>>;
constexpr moment after_backward = [] {
  sw::module_tracker tracker;
  sw::replay<small>(tracker);
  return moment_of(tracker);
}();
static_assert(after_backward == moment{{"Global"}, false});
static_assert(log_of<small>.is({{"pre_fw", "linear", true, false},
                                {"post_fw", "linear", true, false},
                                {"pre_bw", "linear", true, true},
                                {"post_bw", "linear", true, true}}));

// --- hooks --------------------------------------------------------------------------------------------------------------------------

using bar = sw::module_events_of<bar_model, sum_of<10, 10>, sw::plan<>, mesh, double, sw::wrt<0>>;
constexpr seen bar_events[] = {
    {"pre_fw", "Bar", true, false},  {"pre_fw", "Bar.foo", true, false}, {"post_fw", "Bar.foo", true, false},
    {"post_fw", "Bar", true, false}, {"pre_bw", "Bar", true, true},      {"pre_bw", "Bar.foo", true, true},
    {"post_bw", "Bar", true, true},  {"post_bw", "Bar.foo", true, true},
};
static_assert(log_of<bar>.is(bar_events));

// Forward events stand in order before nodes of the forward pass, then the reverse sweep's, each pair around its nodes; what is of no
// module has scope -1.
constexpr bool in_order() {
  int at = 0, open = 0;
  bool backward = false;
  for (const sw::module_event& e : bar::events) {
    using kind = sw::module_event_kind;
    if (e.at < at || e.again) return false;
    at = e.at;
    if (e.kind == kind::begin_backward) backward = true;
    open += e.kind == kind::pre_forward ? 1 : e.kind == kind::post_forward ? -1 : 0;
    const bool of_module = e.kind != kind::begin_backward && e.kind != kind::end_backward;
    if (of_module != (e.scope >= 0) || (backward && open != 0)) return false;
    if ((e.kind == kind::pre_backward || e.kind == kind::post_backward) && !backward) return false;
  }
  return backward && bar::events.count == 10 && sw::module_event{}.scope == -1;
}
static_assert(in_order());

// The model ends when its forward has.
constexpr seen gone_events[] = {
    {"pre_fw", "Bar", true, false},  {"pre_fw", "Bar.foo", true, false}, {"post_fw", "Bar.foo", true, false},
    {"post_fw", "Bar", true, false}, {"pre_bw", "", false, true},        {"pre_bw", "", false, true},
    {"post_bw", "", false, true},    {"post_bw", "", false, true},
};
constexpr auto gone_log = [] {
  list<seen, 16> log;
  sw::module_tracker tracker;
  log_hooks(tracker, log);
  const auto& g = bar::trace_type::value;
  const int model = 0;
  const int first = tracker.enter_program<bar::trace_type::unbound_model>(g.scopes, g.scope_count, &model);
  int at = 0;
  {
    const sw::module_lifetime alive = tracker.watch(model);
    for (; bar::events.item[at].kind != sw::module_event_kind::begin_backward; ++at)
      tracker.happen(bar::events.item[at], first);
  }
  for (; at < bar::events.count; ++at) tracker.happen(bar::events.item[at], first);
  return log;
}();
static_assert(gone_log.is(gone_events));

// --- a checkpointed module ------------------------------------------------------------------------------------------------------------

using again_plan = sw::plan<sw::at<"linears.1", sw::checkpoint>>;

using layers = sw::module_events_of<layers_model, sum_of<2, 8>, again_plan, mesh, double>;
static_assert(log_of<layers>.is({{"pre_fw", "Layers", true, false},
                                 {"pre_fw", "Layers.linears.0", true, false},
                                 {"post_fw", "Layers.linears.0", true, false},
                                 {"pre_fw", "Layers.linears.1", true, false},
                                 {"post_fw", "Layers.linears.1", true, false},
                                 {"post_fw", "Layers", true, false},
                                 {"pre_bw", "Layers", true, true},
                                 {"pre_bw", "Layers.linears.1", true, true},
                                 {"pre_fw", "Layers.linears.1", true, true},
                                 {"post_fw", "Layers.linears.1", true, true},
                                 {"post_bw", "Layers.linears.1", true, true},
                                 {"pre_bw", "Layers.linears.0", true, true}}));

// What has no end of its own ends with the backward.
constexpr moment after_layers = [] {
  sw::module_tracker tracker;
  sw::replay<layers>(tracker);
  return moment_of(tracker);
}();
static_assert(after_layers == moment{{"Global"}, false});

// And the next forward counts from the beginning: a call that has ended is no parent, though the backward before it had no end.
constexpr bool counted_anew = [] {
  bool ended = true;
  sw::module_tracker tracker;
  const auto hook = [&](sw::tracked_module m) {
    if (m.name() == "Layers.linears.1" && !tracker.is_bw()) ended = ended && !tracker.is_parent("Layers.linears.0");
  };
  tracker.register_user_hooks(hook, nullptr, nullptr, nullptr);
  for (int k = 0; k < 2; ++k) sw::replay<layers>(tracker);
  return ended && tracker.warnings() == 0;
}();
static_assert(counted_anew);

// With an operand that takes a gradient the modules that read it end: the outer one, which was registered first, before the inner.
using layers_of_variable = sw::module_events_of<layers_model, sum_of<2, 8>, again_plan, mesh, double, sw::wrt<0>>;
static_assert(log_of<layers_of_variable>.is({{"pre_fw", "Layers", true, false},
                                             {"pre_fw", "Layers.linears.0", true, false},
                                             {"post_fw", "Layers.linears.0", true, false},
                                             {"pre_fw", "Layers.linears.1", true, false},
                                             {"post_fw", "Layers.linears.1", true, false},
                                             {"post_fw", "Layers", true, false},
                                             {"pre_bw", "Layers", true, true},
                                             {"pre_bw", "Layers.linears.1", true, true},
                                             {"pre_fw", "Layers.linears.1", true, true},
                                             {"post_fw", "Layers.linears.1", true, true},
                                             {"post_bw", "Layers.linears.1", true, true},
                                             {"pre_bw", "Layers.linears.0", true, true},
                                             {"post_bw", "Layers", true, true},
                                             {"post_bw", "Layers.linears.0", true, true}}));

// --- several operands -----------------------------------------------------------------------------------------------------------------

// Both of its operands are waited for, but only those that take a gradient.
template <class Bound = sw::unbound>
struct product : sw::module<product<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound);
  constexpr auto forward(const auto& x, const auto& y) const { return x * y; }
};
template <class Bound = sw::unbound>
struct Pair : sw::module<Pair<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (product<>, inner));
  constexpr auto forward(const auto& x, const auto& y) const {
    const auto first = sw::relu(x), second = sw::tanh(first);
    const auto a = inner(first, second);
    const auto b = inner(first, sw::relu(y));
    const auto r = x + a + b;  // x is read twice
    sw::register_hook(second, "second");
    sw::register_hook(first, "first");
    return r;
  }
};
template <class B>
using pair_model = Pair<B>;
struct pair_task {
  using inputs = sw::inputs<real<2, 3>, real<2, 3>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const { return sw::sum(model(x, y)); }
};
template <class Plan>
constexpr auto pair_log = [] {
  list<kept_name, 32> log;
  sw::module_tracker tracker;
  const auto named = [&](std::string_view kind, std::string_view name) {
    list<kept_name, 32>& l = log;
    kept_name n;
    for (const std::string_view part : {kind, name})
      for (const char c : part) n.text[n.size++] = c;
    l.add(n);
  };
  const auto in_backward = [&](const char* kind) {
    return [&tracker, named = named, kind](sw::tracked_module m) {
      if (tracker.is_bw()) named(kind, m.name());
    };
  };
  tracker.register_user_hooks(in_backward("pre_fw "), in_backward("post_fw "), in_backward("pre_bw "),
                              in_backward("post_bw "));
  tracker.on_gradient([&](const char* label) { named("", label); });
  sw::replay<sw::module_events_of<pair_model, pair_task, Plan, mesh, double, sw::wrt<0>>>(tracker);
  return log;
}();
static_assert(pair_log<sw::plan<>>.is({"pre_bw Pair", "pre_bw Pair.inner", "pre_bw Pair.inner", "second",
                                       "post_bw Pair.inner", "post_bw Pair.inner", "first", "post_bw Pair"}));
// All of it is computed again, once, when the first value of the forward is read: the sums read none, the second product does.
static_assert(pair_log<sw::plan<sw::checkpoint>>.is({"pre_bw Pair", "pre_bw Pair.inner", "pre_fw Pair", "pre_fw Pair.inner",
                                                     "post_fw Pair.inner", "pre_fw Pair.inner", "post_fw Pair.inner",
                                                     "post_fw Pair", "pre_bw Pair.inner", "second", "post_bw Pair.inner",
                                                     "post_bw Pair.inner", "first", "post_bw Pair"}));

// --- runs -----------------------------------------------------------------------------------------------------------------------------

// f(on, model, x): an eager model with values, and an operand.
template <template <class> class Model, int Rows, int Columns, class Plan = sw::plan<>, class F>
void with_model(F&& f) {
  sw::launch<mesh>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::eager on(rank);
    sw::bind_eager<Model, Plan, mesh, double, rank_type> model{};
    sw::initialise(model, on, 5);
    f(on, model, sw::dtensor_of<double, sw::shape<Rows, Columns>, mesh>::randn(on, 7));
  });
}

template <class A, class B>
bool is_same(const A& a, const B& b) {
  bool same = a.count == b.count;
  for (std::size_t i = 0; same && i < a.count; ++i) same = a.item[i] == b.item[i];
  return same;
}

}  // namespace

TEST_CASE("module tracker: test_module_hierarchy") {
  CHECK(mod_log.forward.count == 6);  // the rest at the constant
  with_model<mod_model, 10, 10>([](auto&, auto& model, const auto& x) {
    list<moment, 8> forward, backward;
    sw::module_tracker tracker;
    tracker.on_note([&](const char* label) {
      CHECK(std::string_view(label) == "forward");
      forward.add(moment_of(tracker));
    });
    tracker.on_gradient([&](const char* label) {
      CHECK(std::string_view(label) == "backward");
      backward.add(moment_of(tracker));
    });
    for (int k = 0; k < 2; ++k) {
      const auto r = sw::tracked_value_and_grad<0>(tracker, mod_task{})(model, x);
      const auto [loss, gradient] = sw::value_and_grad<mod_function, 0>(x);
      CHECK(r.loss.item() == loss.item());
      const auto mine = std::get<0>(r.inputs).to_local(), theirs = gradient.to_local();
      for (std::size_t i = 0; i < 100; ++i) CHECK(mine.data[i] == theirs.data[i]);
      CHECK(moment_of(tracker) == moment{{"Global"}, false});
    }
    CHECK(forward.is({c0, a, nest, c0, a, nest}));
    CHECK(backward.is({nest_bw, a_bw, c0_bw, nest_bw, a_bw, c0_bw}));
    CHECK(tracker.warnings() == 0);
  });
}

TEST_CASE("module tracker: test_bw_detection") {
  with_model<linear2, 1, 2>([](auto&, auto& model, const auto& x) {
    sw::module_tracker tracker;
    list<seen, 4> log;
    log_hooks(tracker, log);
    sw::tracked_value_and_grad<0>(tracker, sum_of<1, 2>{})(model, x);
    CHECK(log.count == 4);
    CHECK(!tracker.is_bw());
    CHECK(moment_of(tracker) == after_backward);
  });
}

TEST_CASE("module tracker: test_user_hooks") {
  with_model<bar_model, 10, 10>([]<class Model>(auto&, Model& made, const auto& x) {
    std::optional<Model> model(made);
    std::optional<sw::module_lifetime> alive;
    list<seen, 16> log;
    sw::module_tracker tracker;
    log_hooks(tracker, log);
    sw::tracked_value_and_grad<0>(tracker, sum_of<10, 10>{})(*model, x);
    CHECK(log.is(bar_events));

    const auto twice = [&] { tracker.register_user_hooks([](sw::tracked_module) {}, nullptr, nullptr, nullptr); };
    CHECK(test::mentions(test::thrown(twice), "Only one pre_fw_hook can be registered at a time"));

    // the model ends with the post_fw of its root
    log = {};
    alive.emplace(tracker, &*model);
    tracker.clear_user_hooks();
    log_hooks(tracker, log, [&](const seen& s) {
      if (!(s == bar_events[3])) return;
      alive.reset();
      model.reset();
    });
    sw::tracked_value_and_grad<0>(tracker, sum_of<10, 10>{})(*model, x);
    CHECK(!model);
    CHECK(log.is(gone_events));
  });
}

TEST_CASE("module tracker: test_ac") {
  with_model<layers_model, 2, 8, again_plan>([](auto&, auto& model, const auto& x) {
    list<seen, 16> log;
    sw::module_tracker tracker;
    log_hooks(tracker, log);
    sw::tracked_value_and_grad(tracker, sum_of<2, 8>{})(model, x);
    CHECK(is_same(log, log_of<layers>));
    log.count = 0;
    sw::tracked_value_and_grad<0>(tracker, sum_of<2, 8>{})(model, x);
    CHECK(is_same(log, log_of<layers_of_variable>));
  });
}
