// SPDX-License-Identifier: Apache-2.0
// Models that module trackers watch: a dict and a list of modules, a write in place, a list of which one module is checkpointed.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>

#include <shardwise/graph/functions/watch.hpp>
#include <shardwise/module/tracker/runs.hpp>
#include <shardwise/shardwise.hpp>

namespace tracked {

namespace sw = shardwise;

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;

template <int Rows, int Columns>
using real = sw::input_tensor<double, sw::shape<Rows, Columns>>;

// --- Mod{a: Foo, b: {nest: Foo}, c: [Foo]}: each Foo writes its operand in place ----------------------------------------------

template <class Bound = sw::unbound>
struct Foo : sw::module<Foo<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound);
  constexpr auto forward(const auto& x) const {
    sw::relu_(x);
    sw::note(x, "forward");
    sw::register_hook(x, "backward");
    return sw::matmul(x, x);
  }
};
template <class B>
using foo_block = Foo<B>;

template <class Bound = sw::unbound>
struct dict : sw::module<dict<Bound>, Bound> {  // never called
  SHARDWISE_MEMBERS(Bound, (Foo<>, nest));
};

template <class Bound = sw::unbound>
struct Mod : sw::module<Mod<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (Foo<>, a), (dict<>, b), (sw::repeat<1, foo_block>, c));
  constexpr auto forward(const auto& x) const { return b.nest(a(c(x))); }
};
template <class B>
using mod_model = Mod<B>;

struct mod_task {
  using inputs = sw::inputs<real<10, 10>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::sum(model(1.0 * x)); }
};

// --- Bar{foo: Linear}: its result is written in place ----------------------------------------------------------------------------

template <class Bound = sw::unbound>
struct Bar : sw::module<Bar<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 10>, foo));
  constexpr auto forward(const auto& x) const { return sw::relu_(foo(x)); }
};
template <class B>
using bar_model = Bar<B>;

// The sum of what a model makes of a tensor.
template <int Rows, int Columns>
struct sum_of {
  using inputs = sw::inputs<real<Rows, Columns>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::sum(model(x)); }
};

// --- two layers, each behind a relu ------------------------------------------------------------------------------------------------

template <class B>
using linear8 = sw::linear<8, 8, B>;

template <class Bound = sw::unbound>
struct Layers : sw::module<Layers<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::repeat<2, linear8>, linears));
  constexpr auto forward(const auto& x) const {
    return sw::relu(std::get<1>(linears.items)(sw::relu(std::get<0>(linears.items)(x))));
  }
};
template <class B>
using layers_model = Layers<B>;

template <class B>
using linear2 = sw::linear<2, 2, B>;

// --- what a tracker's hooks see, in constants and at run time ---------------------------------------------------------------------

// A name that is kept, since a tracker's views of names end with it.
struct kept_name {
  char text[24]{};
  std::size_t size = 0;
  constexpr kept_name() = default;
  constexpr kept_name(const char* s) : kept_name(std::string_view(s)) {}
  constexpr kept_name(std::string_view s) : size(s.size()) {
    for (std::size_t i = 0; i < s.size(); ++i) text[i] = s[i];
  }
  constexpr std::string_view view() const { return {text, size}; }
  constexpr bool operator==(const kept_name&) const = default;
};

// ("pre_fw", "Bar.foo", in parents, is_bw); a module that is gone has no name.
struct seen {
  kept_name hook, module;
  bool in_parents = false, is_bw = false;
  constexpr bool operator==(const seen&) const = default;
};

template <class T, std::size_t N>
struct list {
  std::array<T, N> item{};
  std::size_t count = 0;
  constexpr void add(const T& x) {
    if (count < N) item[count] = x;
    ++count;
  }
  template <std::size_t M>
  constexpr bool is(const T (&expected)[M]) const {
    bool same = count == M;
    for (std::size_t i = 0; same && i < M; ++i) same = item[i] == expected[i];
    return same;
  }
};

struct nothing {
  constexpr void operator()(const seen&) const {}
};
// One of the hooks.
template <class Log, class F>
struct logging_hook {
  sw::module_tracker* tracker;
  Log* log;
  const char* name;
  F f;
  constexpr void operator()(sw::tracked_module m) const {
    const seen s{name, m.name(), tracker->is_parent(m.name()), tracker->is_bw()};
    log->add(s);
    f(s);
  }
};
// The four hooks, each of which adds what it sees to the log and then calls f of it.
template <class Log, class F = nothing>
constexpr void log_hooks(sw::module_tracker& tracker, Log& log, const F& f = F()) {
  using hook = logging_hook<Log, F>;
  tracker.register_user_hooks(hook{&tracker, &log, "pre_fw", f}, hook{&tracker, &log, "post_fw", f},
                              hook{&tracker, &log, "pre_bw", f}, hook{&tracker, &log, "post_bw", f});
}

// What one replay of a program's events shows to the four hooks.
template <class Watched>
inline constexpr auto log_of = [] {
  list<seen, 64> log;
  sw::module_tracker tracker;
  log_hooks(tracker, log);
  sw::replay<Watched>(tracker);
  return log;
}();

}  // namespace tracked
