// SPDX-License-Identifier: Apache-2.0
// checked_parameters: whether the parameters and buffers of one program may be copied to another one, block by block.
#pragma once

#include <type_traits>

#include <shardwise/graph/tensor.hpp>
#include <shardwise/graph/text/text.hpp>
#include <shardwise/graph/units.hpp>
#include <shardwise/support/config.hpp>
#include <shardwise/support/fixed_string.hpp>

namespace shardwise::inline v0_1::runtime {

namespace detail {

// A parameter or a buffer by its number, and what it is in each of two programs.
template <int Number>
struct parameter_number;
template <int Number>
struct buffer_number;
template <class First, class Second>
struct placed_in;
// Its path: "net1.weight".
template <fixed_string Path>
struct parameter_named;
template <fixed_string Path>
struct buffer_named;
}  // namespace detail

}  // namespace shardwise::inline v0_1::runtime

namespace shardwise::inline v0_1 {

template <int Number>
struct fact<runtime::detail::parameter_number<Number>> : detail::number_fact<"parameter number", Number> {};
template <int Number>
struct fact<runtime::detail::buffer_number<Number>> : detail::number_fact<"buffer number", Number> {};
template <fixed_string Path>
struct fact<runtime::detail::parameter_named<Path>> : detail::quoted_fact<"parameter", Path> {};
template <fixed_string Path>
struct fact<runtime::detail::buffer_named<Path>> : detail::quoted_fact<"buffer", Path> {};
template <class First, class Second>
struct facts_in<runtime::detail::placed_in<First, Second>> {
  using type = detail::type_list<First, Second>;
};

}  // namespace shardwise::inline v0_1

namespace shardwise::inline v0_1::runtime {

namespace detail {

template <class Graph>
constexpr int named_scope(const Graph& g, int at) {
  while (at >= 0 && (is_unit(g.scopes[at]) || (g.scopes[at].name && g.scopes[at].name[0] == '\0'))) at = g.scopes[at].parent;
  return at;
}
constexpr bool same_name(const char* a, const char* b) {
  if (!a || !b) return a == b;
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}
template <class G, class H>
constexpr bool same_path(const G& g, int a, const H& h, int b) {
  for (;;) {
    a = named_scope(g, a);
    b = named_scope(h, b);
    if (a < 0 || b < 0) return a < 0 && b < 0;
    if (!same_name(g.scopes[a].name, h.scopes[b].name) || g.scopes[a].index != h.scopes[b].index) return false;
    a = g.scopes[a].parent;
    b = h.scopes[b].parent;
  }
}

// A program's parameters, or its buffers: how many, where they begin in its table, and the leaf that each of them is.
template <class Program, bool Buffers>
struct module_tensors {
  static constexpr int count = Buffers ? Program::buffer_total : Program::parameter_total;
  static constexpr int first = Buffers ? Program::parameter_total : 0;
  static constexpr op_code op = Buffers ? op_code::module_buffer : op_code::param;

  int node[count > 0 ? count : 1]{};

  template <class Graph>
  constexpr explicit module_tensors(const Graph& g) {
    for (int i = 0, left = count; left > 0 && i < g.node_count; ++i)
      if (g.nodes[i].op == op) {
        node[attributes_of<leaf_attributes>(g.nodes[i].a).index] = i;
        --left;
      }
  }
};

// Whether two programs have the same parameters, or buffers, in the same places: the first difference, if there is one.
struct parameter_difference {
  problem what = problem::none;
  int at = -1, node_a = 0, node_b = 0;
};
template <class A, class B, bool Buffers>
constexpr parameter_difference differing_parameter() {
  using in_a = module_tensors<A, Buffers>;
  using in_b = module_tensors<B, Buffers>;
  constexpr problem differ = Buffers ? problem::copied_buffers_differ : problem::copied_parameters_differ;
  constexpr problem placed = Buffers ? problem::copied_buffers_placed : problem::copied_parameters_placed;
  if (in_a::count != in_b::count) return {differ, -1, 0, 0};
  const auto& g = A::program;
  const auto& h = B::program;
  const in_a a(g);
  const in_b b(h);
  int same_a = -2, same_b = -2;  // parameters of one module follow each other
  for (int i = 0; i < in_a::count; ++i) {
    const auto& p = A::parameters.item[in_a::first + i];
    const auto& q = B::parameters.item[in_b::first + i];
    const spec& s = g.spec_of(a.node[i]);
    const spec& t = h.spec_of(b.node[i]);
    bool same = same_name(p.name, q.name) && s.rank == t.rank && s.type == t.type;
    for (int d = 0; same && d < s.rank; ++d) same = s.extent[d] == t.extent[d];
    if (same && !(p.scope == same_a && q.scope == same_b)) {
      same = same_path(g, p.scope, h, q.scope);
      same_a = p.scope;
      same_b = q.scope;
    }
    if (!same) return {differ, i, a.node[i], b.node[i]};
    if (!(s == t)) return {placed, i, a.node[i], b.node[i]};
  }
  return {};
}

template <class Program, bool Buffers, int At>
struct parameter_path {
  using tensors = module_tensors<Program, Buffers>;
  static constexpr text_buffer<120> path = [] {
    text_buffer<120> out;
    const auto& item = Program::parameters.item[tensors::first + At];
    const int node = tensors(Program::program).node[At];
    if (text::has_module(Program::program, Program::program.nodes[node].scope)) {
      text::put_module(out, Program::program, Program::program.nodes[node].scope);
      out.push_back('.');
    }
    text::put(out, item.name);
    return out;
  }();
  static constexpr auto name = exact_string<path.view().size()>(path.view());
  using type = std::conditional_t<Buffers, buffer_named<name>, parameter_named<name>>;
};

template <class A, class B, bool Buffers>
constexpr bool say_differing() {
  constexpr parameter_difference found = differing_parameter<A, B, Buffers>();
  if constexpr (found.at < 0) {
    constexpr int a = module_tensors<A, Buffers>::count, b = module_tensors<B, Buffers>::count;
    return raise<found.what, std::conditional_t<Buffers, buffer_number<a>, parameter_number<a>>,
                 std::conditional_t<Buffers, buffer_number<b>, parameter_number<b>>>::ok;
  } else {
    return raise<found.what, std::conditional_t<Buffers, buffer_number<found.at>, parameter_number<found.at>>,
                 typename parameter_path<A, Buffers, found.at>::type, typename A::mesh_type,
                 placed_in<operand_t<A::program.spec_of(found.node_a)>, operand_t<B::program.spec_of(found.node_b)>>>::ok;
  }
}

}  // namespace detail

// `ok` is true; parameters or buffers of programs A and B that cannot be copied block by block are a sentence with the first of
// them.
template <class A, class B>
struct checked_parameters {
#if SHARDWISE_DEVICE_PASS
  static constexpr bool ok = true;
#else
  static constexpr bool ok = [] {
    if constexpr (!detail::say_differing<A, B, false>()) return false;
    else return detail::say_differing<A, B, true>();
  }();
#endif
};

}  // namespace shardwise::inline v0_1::runtime
