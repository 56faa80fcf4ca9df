// SPDX-License-Identifier: Apache-2.0
// The contract of passes: once each, in the order and with the prerequisites they declare; as types and at run time.
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/pass/framework/pipeline.hpp>
#include <shardwise/pass/framework/sequence.hpp>
#include <shardwise/pass/iteration/iter_move.hpp>

#include <doctest/doctest.h>

#include <string>
#include <type_traits>
#include <vector>

namespace {

namespace sw = shardwise;
namespace order = shardwise::pass_order;

// Passes that change nothing, on a graph without nodes.
struct quiet {
  using shardwise_pass = void;
  template <class Graph>
  static constexpr sw::finding apply(Graph&) {
    return {};
  }
};
struct p1 : quiet {};
struct p2 : quiet {
  using prerequisites = sw::passes_list<p1>;
};
struct p3 : quiet {
  using apply_after = sw::passes_list<p1>;
};
// A pass whose body says no.
struct refuses : quiet {
  template <class Graph>
  static constexpr sw::finding apply(Graph& g) {
    g.node_count = 1;
    return {sw::problem::graph_unplaced, 0};
  }
};

using empty = sw::graph<2, 2>;
struct G {
  static constexpr empty value{};
};

template <class... P>
struct scene {
  using graph = G;
};
template <class First, class... Rest>
struct scene<First, Rest...> {
  using graph = sw::apply_pass<First, typename scene<Rest...>::graph>;
};
// The graph after the passes, the last one first.
template <class... P>
using after = typename scene<P...>::graph;
template <class P, class On, class Reason>
inline constexpr bool refused = !sw::can_apply<P, On> && std::is_same_v<sw::why_not<P, On>, Reason>;

// Scene A: p1, p3, p2.
static_assert(sw::can_apply<p1, G> && sw::can_apply<p3, after<p1>> && sw::can_apply<p2, after<p3, p1>>);
static_assert(after<p2, p3, p1>::value.node_count == 0);
static_assert(std::is_same_v<after<p2, p3, p1>::applied, sw::passes_list<p1, p3, p2>>);
// Scene B: p3 alone; what it would come after need not be there.
static_assert(sw::can_apply<p3, G> && after<p3>::value.node_count == 0);
// Scene C: p2 alone lacks p1.
static_assert(refused<p2, G, order::missing_prerequisite<p1>>);
// Scene D: p1 comes too late for p3.
static_assert(refused<p1, after<p3>, order::must_precede<p3>>);
// Once, on a graph, a pass.
static_assert(refused<p1, after<p1>, order::twice>);
static_assert(refused<p1, int, order::not_a_graph>);
static_assert(refused<int, G, order::not_a_pass>);
static_assert(std::is_same_v<sw::why_not<p1, G>, order::fine>);

// Passes go by their keys: a schedule of waits of one's own is one, comes but once with the library's, and before the moves.
struct own_waits : quiet {
  using key = sw::comm_wait_schedule;
};
using move = sw::iter_move_grads_and_optimizers<"all_reduce", "relu">;
struct moved : G {
  using applied = sw::passes_list<move>;
};
struct scheduled : G {
  using applied = sw::passes_list<sw::schedule_comm_wait>;
};
static_assert(refused<own_waits, scheduled, order::twice> &&
              refused<sw::schedule_comm_wait, after<own_waits>, order::twice>);
static_assert(refused<own_waits, moved, order::must_precede<move>> &&
              refused<sw::schedule_comm_wait, moved, order::must_precede<move>>);
static_assert(sw::can_apply<p1, moved> && sw::can_apply<own_waits, G>);

// The order of reasons: each pass here has its own fault and all later ones.
struct faulty : quiet {
  using prerequisites = sw::passes_list<p1, p2>;
};
struct before_it : quiet {
  using apply_after = sw::passes_list<faulty>;
};
struct listed : G {
  using applied = sw::passes_list<faulty, before_it>;
};
struct not_listed : G {
  using applied = sw::passes_list<before_it, p2>;
};
struct neither : G {
  using applied = sw::passes_list<p2>;
};
struct no_graph {
  using applied = sw::passes_list<faulty, before_it>;
};
static_assert(refused<faulty, no_graph, order::not_a_graph>);
static_assert(refused<faulty, listed, order::twice>);
static_assert(refused<faulty, not_listed, order::must_precede<before_it>>);
static_assert(refused<faulty, neither, order::missing_prerequisite<p1>>);
static_assert(refused<faulty, G, order::missing_prerequisite<p1, p2>>);

// A pipeline says the same of its list.
template <class... P>
using outcome = typename sw::detail::run_pipeline<G, sw::pipeline<P...>>::type;
static_assert(outcome<p1, p3, p2>::value.node_count == 0);
static_assert(outcome<>::value.node_count == 0);

bool says(sw::problem p, const std::string& text) { return std::string(sw::sentence(p)).find(text) != std::string::npos; }

TEST_CASE("spmd passes: test_order") {
  CHECK(says(sw::problem::pass_not_a_graph, "first argument of the pass must be"));
  CHECK(says(sw::problem::pass_twice, "cannot apply"));
  CHECK(says(sw::problem::pass_twice, "twice"));
  CHECK(says(sw::problem::pass_too_late, "must be applied after"));
  CHECK(says(sw::problem::pass_prerequisites, "are the prerequisites of"));
  CHECK(says(sw::problem::pass_prerequisites, "but are not applied"));

  const auto first = sw::entry_of<p1, empty>(), second = sw::entry_of<p2, empty>(), third = sw::entry_of<p3, empty>();
  const auto contains = [](const std::string& s, const std::string& part) { return s.find(part) != std::string::npos; };
  using names = std::vector<std::string>;
  empty g;
  {  // scene A
    sw::pass_sequence<empty> passes;
    CHECK(!passes.apply(first, g));
    CHECK(!passes.apply(third, g));
    CHECK(!passes.apply(second, g));
    CHECK(passes.applied() == names{first.name, third.name, second.name});
  }
  {  // scene B
    sw::pass_sequence<empty> passes;
    CHECK(!passes.apply(third, g));
  }
  {  // scene C
    sw::pass_sequence<empty> passes;
    const sw::pass_report r = passes.apply(second, g);
    CHECK(r.what.what == sw::problem::pass_prerequisites);
    CHECK(r.passes == names{first.name});
    CHECK(contains(r.text, "{" + first.name + "} are the prerequisites of " + second.name +
                               " but are not applied. Applied passes are {}."));
    CHECK(passes.applied().empty());
  }
  {  // scene D
    sw::pass_sequence<empty> passes;
    CHECK(!passes.apply(third, g));
    const sw::pass_report r = passes.apply(first, g);
    CHECK(r.what.what == sw::problem::pass_too_late);
    CHECK(r.passes == names{third.name});
    CHECK(contains(r.text, "{" + third.name + "} must be applied after " + first.name + "."));
    CHECK(passes.applied() == names{third.name});
  }
  {  // twice
    sw::pass_sequence<empty> passes;
    CHECK(!passes.apply(first, g));
    CHECK(passes.apply(first, g).what.what == sw::problem::pass_twice);
  }
}

TEST_CASE("spmd passes: a pass whose body fails is not recorded and changes nothing") {
  empty g;
  sw::pass_sequence<empty> passes;
  const sw::pass_report r = passes.apply(sw::entry_of<refuses, empty>(), g);
  CHECK(r.what == sw::finding{sw::problem::graph_unplaced, 0});
  CHECK(r.text.find(sw::type_name<refuses>()) != std::string::npos);
  CHECK(g.node_count == 0);
  CHECK(passes.applied().empty());
}

// Forgets an output and declares to keep them.
struct forgets : quiet {
  using preserves = sw::passes_list<sw::kept::updates, sw::kept::outputs>;
  template <class Graph>
  static constexpr sw::finding apply(Graph& g) {
    g.output_count = 0;
    return {};
  }
};

TEST_CASE("spmd passes: what a pass declares to preserve is checked at run time") {
  empty g;
  sw::builder b = g.edit();
  sw::node n = sw::empty_node;
  n.spec = b.intern(sw::spec{});
  b.append(n);
  g.finish(b);
  g.output_count = 1;
  g.outputs[0] = 0;
  sw::pass_sequence<empty> passes;
  CHECK(passes.apply(sw::entry_of<forgets, empty>(), g).what.what == sw::problem::pass_broke_promise);
  CHECK(g.output_count == 1);
}

// Two promises about outputs: as they are stored, or what they hold.
TEST_CASE("spmd passes: what outputs are, and what they hold, are told apart") {
  constexpr std::int32_t sizes[] = {2};
  const auto with = [&](bool turned, std::int64_t rows, int outputs) {
    empty g;
    sw::builder b = g.edit();
    sw::spec s = sw::empty_spec(sw::dtype::f32, 1, sizes, sw::device_kind::host);
    s.rank = 2;
    s.extent[0] = rows;
    s.extent[1] = 4;
    sw::make_contiguous(s);
    if (turned) {
      s.stride[0] = 1;
      s.stride[1] = rows;
    }
    sw::node n = sw::empty_node;
    n.spec = b.intern(s);
    b.append(n);
    g.finish(b);
    g.output_count = outputs;
    g.outputs[0] = 0;
    return g;
  };
  const empty plain = with(false, 3, 1), turned = with(true, 3, 1), longer = with(false, 5, 1), none = with(false, 3, 0);
  CHECK(sw::kept::output_values::holds(plain, plain));
  CHECK(sw::kept::output_values::holds(plain, turned));
  CHECK(!sw::kept::outputs::holds(plain, turned));
  CHECK(!sw::kept::output_values::holds(plain, longer));
  CHECK(!sw::kept::output_values::holds(plain, none));
  CHECK(!sw::kept::output_values::holds(none, plain));
}

TEST_CASE("spmd passes: reasons come in one order at run time too") {
  using names = std::vector<std::string>;
  empty g;
  sw::pass_sequence<empty> passes;
  const sw::pass_entry<empty> nothing{"nothing", {"absent"}, {}, nullptr, nullptr};
  CHECK(passes.apply(nothing, g).what.what == sw::problem::pass_not_a_pass);
  const auto late = sw::entry_of<faulty, empty>(), early = sw::entry_of<before_it, empty>();
  CHECK(passes.apply(late, g).what.what == sw::problem::pass_prerequisites);
  CHECK(passes.apply(late, g).passes == names{sw::type_name<p1>(), sw::type_name<p2>()});
  CHECK(!passes.apply(early, g));
  CHECK(passes.apply(late, g).what.what == sw::problem::pass_too_late);
}

}  // namespace
