// SPDX-License-Identifier: Apache-2.0
// pass_sequence: passes chosen and ordered while a program runs, on graph values, under the law of pipeline<...>.
#pragma once

#include <string>
#include <vector>

#include <shardwise/pass/framework/pipeline.hpp>
#include <shardwise/support/type_name.hpp>

namespace shardwise::inline v0_1 {

// A pass as a value, for graphs of one type. Names are keys: two passes of one name are one pass.
template <class Graph>
struct pass_entry {
  std::string name;
  std::vector<std::string> prerequisites;
  std::vector<std::string> apply_after;
  finding (*apply)(Graph&) = nullptr;
  bool (*keeps)(const Graph& before, const Graph& after) = nullptr;  // what it declares to preserve; none: nothing
  bool admits_mutation = false;                                      // whether it takes graphs that write in place
};

// What applying a pass said: a finding, the passes concerned (those that must come later, or that are missing), and the
// sentence with their names; empty where the pass was applied.
struct pass_report {
  finding what;
  std::vector<std::string> passes;
  std::string text;

  explicit operator bool() const { return static_cast<bool>(what); }
};

namespace detail {

template <class P>
std::string key_name() {
  return std::string(type_name<typename key_of<P>::type>());
}
template <class... P>
std::vector<std::string> names_of(passes_list<P...>) {
  return {key_name<P>()...};
}

inline std::string name_list(const std::vector<std::string>& names) {
  std::string s = "{";
  for (const std::string& n : names) s += (s.size() > 1 ? ", " : "") + n;
  return s + "}";
}

inline bool has(const std::vector<std::string>& names, const std::string& name) {
  for (const std::string& n : names)
    if (n == name) return true;
  return false;
}

template <class Graph, class... Property>
bool all_hold(passes_list<Property...>, const Graph& before, const Graph& after) {
  return (true && ... && Property::holds(before, after));
}

}  // namespace detail

// The entry of a pass type that is a graph function.
template <pass P, class Graph>
  requires requires(Graph& g) { P::apply(g); }
pass_entry<Graph> entry_of() {
  return {detail::key_name<P>(),
          detail::names_of(typename detail::prerequisites_of<P>::type{}),
          detail::names_of(typename detail::apply_after_of<P>::type{}),
          [](Graph& g) -> finding { return P::apply(g); },
          [](const Graph& before, const Graph& after) {
            return detail::all_hold(typename detail::preserved_by<P>::type{}, before, after);
          },
          detail::admits_mutation<P>};
}

// The passes applied to one graph so far.
template <class Graph>
class pass_sequence {
 public:
  const std::vector<std::string>& applied() const { return names_; }

  // Checks as pipeline<...> does, in its order; then runs the pass and the verifier. A pass that fails is not recorded
  // and leaves the graph as it was.
  pass_report apply(const pass_entry<Graph>& p, Graph& g) {
    if (!p.apply)
      return {{problem::pass_not_a_pass}, {}, std::string(sentence(problem::pass_not_a_pass)) + " Given: " + p.name + "."};
    if (detail::has(names_, p.name))
      return {{problem::pass_twice}, {p.name}, std::string(sentence(problem::pass_twice)) + " Given: " + p.name + "."};
    pass_report r;
    for (const entry& e : history_)
      if (detail::has(e.apply_after, p.name)) r.passes.push_back(e.name);
    if (!r.passes.empty()) {
      r.what.what = problem::pass_too_late;
      r.text =
          std::string(sentence(r.what.what)) + " " + detail::name_list(r.passes) + " must be applied after " + p.name + ".";
      return r;
    }
    for (const std::string& n : p.prerequisites)
      if (!detail::has(names_, n)) r.passes.push_back(n);
    if (!r.passes.empty()) {
      r.what.what = problem::pass_prerequisites;
      r.text = std::string(sentence(r.what.what)) + " " + detail::name_list(r.passes) + " are the prerequisites of " +
               p.name + " but are not applied. Applied passes are " + detail::name_list(names_) + ".";
      return r;
    }
    if (!p.admits_mutation && has_mutation(g)) {
      r.what.what = problem::mutation_left;
      r.text = std::string(sentence(r.what.what)) + " Given: " + p.name + ".";
      return r;
    }
    Graph next = g;
    r.what = p.apply(next);
    if (!r.what) r.what = next.error;
    if (!r.what) r.what = verify(next);
    if (!r.what && p.keeps && !p.keeps(g, next)) r.what.what = problem::pass_broke_promise;
    if (r.what) {
      r.text = std::string(sentence(r.what.what)) + " In pass " + p.name + ".";
      return r;
    }
    g = next;
    history_.push_back({p.name, p.apply_after});
    names_.push_back(p.name);
    return r;
  }

 private:
  struct entry {
    std::string name;
    std::vector<std::string> apply_after;
  };
  std::vector<entry> history_;
  std::vector<std::string> names_;
};

}  // namespace shardwise::inline v0_1
