// SPDX-License-Identifier: Apache-2.0
// copied_blocks: what is copied from one program's blocks to another one's, parameter by parameter or state by state, and whether it
// may be.
#pragma once

#include <type_traits>

#include <shardwise/graph/kept_gradients.hpp>
#include <shardwise/graph/tensor.hpp>
#include <shardwise/graph/text/text.hpp>
#include <shardwise/graph/units.hpp>
#include <shardwise/runtime/program/copy_list.hpp>
#include <shardwise/runtime/program/flat_parts.hpp>
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

// A program's parameters, or its buffers: how many, where they begin in its table, and the leaf that each of them is: its node, or
// of a part of a flat parameter its id.
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
    if constexpr (!Buffers && flat_parts_of<Program>.any())
      for (int i = 0; i < count; ++i) node[i] = flat_parts_of<Program>.parameter_id(g, i);
  }
};

// Whether two programs have the same parameters, or buffers, in the same places: the first difference, if there is one.
struct parameter_difference {
  problem what = problem::none;
  int at = -1, node_a = 0, node_b = 0;
};
template <class A, class B, bool Buffers, bool Anywhere>
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
    const spec& s = flat_parts_of<A>.spec_of(g, a.node[i]);
    const spec& t = flat_parts_of<B>.spec_of(h, b.node[i]);
    bool same = same_name(p.name, q.name) && s.rank == t.rank && s.type == t.type;
    for (int d = 0; same && d < s.rank; ++d) same = s.extent[d] == t.extent[d];
    if (same && !(p.scope == same_a && q.scope == same_b)) {
      same = same_path(g, p.scope, h, q.scope);
      same_a = p.scope;
      same_b = q.scope;
    }
    if (!same) return {differ, i, a.node[i], b.node[i]};
    if (!Anywhere && !alike_on_ranks<A, B>(g, a.node[i], h, b.node[i])) return {placed, i, a.node[i], b.node[i]};
  }
  return {};
}

template <class Program, bool Buffers, int At>
struct parameter_path {
  using tensors = module_tensors<Program, Buffers>;
  static constexpr text_buffer<120> path = [] {
    text_buffer<120> out;
    const auto& item = Program::parameters.item[tensors::first + At];
    if (text::has_module(Program::program, item.scope)) {
      text::put_module(out, Program::program, item.scope);
      out.push_back('.');
    }
    text::put(out, item.name);
    return out;
  }();
  static constexpr auto name = exact_string<path.view().size()>(path.view());
  using type = std::conditional_t<Buffers, buffer_named<name>, parameter_named<name>>;
};

// A difference in the words of problem What: of parameter or buffer number At, -1: of how many there are.
template <class A, class B, bool Buffers, problem What, int At, int NodeA, int NodeB>
constexpr bool say_difference() {
  if constexpr (At < 0) {
    constexpr int a = module_tensors<A, Buffers>::count, b = module_tensors<B, Buffers>::count;
    return raise<What, std::conditional_t<Buffers, buffer_number<a>, parameter_number<a>>,
                 std::conditional_t<Buffers, buffer_number<b>, parameter_number<b>>>::ok;
  } else {
    return raise<What, std::conditional_t<Buffers, buffer_number<At>, parameter_number<At>>,
                 typename parameter_path<A, Buffers, At>::type, typename A::mesh_type,
                 placed_in<operand_t<flat_parts_of<A>.spec_of(A::program, NodeA)>,
                           operand_t<flat_parts_of<B>.spec_of(B::program, NodeB)>>>::ok;
  }
}
template <class A, class B, bool Buffers, bool Anywhere>
constexpr bool say_differing() {
  constexpr parameter_difference found = differing_parameter<A, B, Buffers, Anywhere>();
  return say_difference<A, B, Buffers, found.what, found.at, found.node_a, found.node_b>();
}

// What an optimizer keeps: neither what an iterated step keeps, which is nobody's, nor the sum of a parameter's gradients.
constexpr bool is_optimizer_state(const node& n) {
  return n.op == op_code::state && belongs_to_optimizer(attributes_of<leaf_attributes>(n.a));
}
// f(attributes, id) for every state that a program's optimizer keeps, each under its own parameter.
template <class Program, class Graph, class F>
constexpr void each_state(const Graph& g, F&& f) {
  constexpr const flat_parts& flat = flat_parts_of<Program>;
  for (int i = 0; i < g.node_count; ++i) {
    if (!is_optimizer_state(g.nodes[i])) continue;
    const auto of = attributes_of<leaf_attributes>(g.nodes[i].a);
    const int owner = static_cast<int>(of.parameter);
    if (!flat.is_flat(owner)) {
      f(of, i);
      continue;
    }
    for (int p = 0; p < flat.total; ++p)
      if (flat.is_flat(p) && flat.leaf(p) == owner) {
        leaf_attributes own = of;
        own.parameter = p;
        f(own, flat.state_id(g, p, of.which));
      }
  }
}
template <class Program>
constexpr int count_states(const auto& g) {
  int n = 0;
  each_state<Program>(g, [&n](const leaf_attributes&, int) { ++n; });
  return n;
}
template <class A, class B>
constexpr bool same_states() {
  const auto& g = A::program;
  const auto& h = B::program;
  if (count_states<A>(g) != count_states<B>(h)) return false;
  bool same = true;
  each_state<A>(
      g, [&](const leaf_attributes& of, int) { same = same && flat_parts_of<B>.state_id(h, of.parameter, of.which) >= 0; });
  return same;
}

}  // namespace detail

// `ok` is true; parameters or buffers of programs A and B that cannot be copied, Anywhere or block by block, are a sentence with the
// first of them.
template <class A, class B, bool Anywhere>
struct checked_parameters {
#if SHARDWISE_DEVICE_PASS
  static constexpr bool ok = true;
#else
  static constexpr bool ok = [] {
    if constexpr (A::mesh_type::size != B::mesh_type::size)
      return raise<problem::copied_ranks_differ, typename A::mesh_type, typename B::mesh_type>::ok;
    else if constexpr (!detail::say_differing<A, B, false, Anywhere>()) return false;
    else return detail::say_differing<A, B, true, Anywhere>();
  }();
#endif
};

// The same of their states, beside the parameters that they are of.
template <class A, class B, bool Anywhere>
struct checked_states {
#if SHARDWISE_DEVICE_PASS
  static constexpr bool ok = true;
#else
  static constexpr bool ok = [] {
    if constexpr (!checked_parameters<A, B, Anywhere>::ok) return false;
    else
      return raise<(detail::same_states<A, B>() ? problem::none : problem::copied_states_differ), typename A::mesh_type>::ok;
  }();
#endif
};

enum class copied_leaves { parameters, states };

// In place of a list: a part of a flat parameter and a block, or two such parts, are copied by way of the whole tensor, one at a time.
inline constexpr int copied_whole = -2;

// Leaf by leaf the ids in To and in From, and for those whose blocks are not the same part of the tensor the list of what goes
// where: a constant table.
template <class To, class From, copied_leaves What>
struct copied_blocks {
  struct leaf {
    int to = 0, from = 0, list = -1;  // -1: block for block
    int parameter = -1;               // of a state: whose it is, -1: nobody's
  };
#if SHARDWISE_DEVICE_PASS
  static constexpr int count = 0, ranks = 1;
  static constexpr leaf leaves[1]{};
  static constexpr copy_list<1> lists[1]{};
#else
  static constexpr int ranks = To::mesh_type::size;
  static constexpr int count =
      What == copied_leaves::states ? detail::count_states<To>(To::program) : To::parameter_total + To::buffer_total;

 private:
  struct pair {
    int to, from;  // numbers of specs
  };
  struct found {
    leaf all[count > 0 ? count : 1]{};
    pair pairs[count > 0 ? count : 1]{};
    int pair_count = 0;
  };
  static constexpr found of = [] {
    found r;
    const auto& g = To::program;
    const auto& h = From::program;
    int n = 0;
    const auto add = [&](int to, int from, int parameter = -1) {
      leaf& l = r.all[n++];
      l = {to, from, -1, parameter};
      if (alike_on_ranks<To, From>(g, to, h, from)) return;
      if (flat_parts_of<To>.is_part(g, to) || flat_parts_of<From>.is_part(h, from)) {
        l.list = copied_whole;
        return;
      }
      const pair wanted{g.nodes[to].spec, h.nodes[from].spec};
      for (l.list = 0; l.list < r.pair_count; ++l.list)
        if (r.pairs[l.list].to == wanted.to && r.pairs[l.list].from == wanted.from) return;
      r.pairs[r.pair_count++] = wanted;
    };
    if constexpr (What == copied_leaves::states) {
      detail::each_state<To>(g, [&](const leaf_attributes& of, int id) {
        add(id, flat_parts_of<From>.state_id(h, of.parameter, of.which), static_cast<int>(of.parameter));
      });
    } else {
      const detail::module_tensors<To, false> parameters(g);
      const detail::module_tensors<From, false> given(h);
      for (int i = 0; i < To::parameter_total; ++i) add(parameters.node[i], given.node[i]);
      const detail::module_tensors<To, true> buffers(g);
      const detail::module_tensors<From, true> held(h);
      for (int i = 0; i < To::buffer_total; ++i) add(buffers.node[i], held.node[i]);
    }
    return r;
  }();
  static constexpr int list_count = of.pair_count > 0 ? of.pair_count : 1;
  struct table {
    copy_list<ranks> all[list_count]{};
  };
  static constexpr table made = [] {
    table r;
    for (int k = 0; k < of.pair_count; ++k)
      r.all[k] = copies_between<ranks>(From::program.specs[of.pairs[k].from], To::program.specs[of.pairs[k].to]);
    return r;
  }();

 public:
  static constexpr const auto& leaves = of.all;
  static constexpr const auto& lists = made.all;
#endif
};

}  // namespace shardwise::inline v0_1::runtime
