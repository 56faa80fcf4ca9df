// SPDX-License-Identifier: Apache-2.0
// explanation: what a compiled program is and costs, as plain data: plan, graph, collectives, memory, kernels. From its constants
// alone; nothing is run. markdown.hpp and html.hpp write it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <shardwise/io/explain.hpp>
#include <shardwise/runtime/timeline/program.hpp>

namespace shardwise::inline v0_1 {

// Bytes of collectives on an axis are those of the rank that sends most on it (the lowest of several): they add up to
// Step::comm_bytes<Axis>. Other bytes are of rank 0, whose blocks are the largest, or of the arena, equal on all ranks.
struct explanation {
  // A leaf of the program: "parameter", "buffer", "input" or "state".
  struct tensor {
    std::string kind, name, shape;    // whole
    std::vector<std::string> places;  // on each axis
    std::string block;                // on rank 0
    std::int64_t elements = 0, own = 0;
  };
  struct axis {
    std::string name;
    int size = 1, busiest = 0;  // the rank that sends most
    std::int64_t bytes = 0;
  };
  enum class kind : std::uint8_t { leaf, view, kernel, collective };
  struct node {
    std::string name, text, module, tensor;  // text: its line of the program
    enum kind kind = kind::kernel;
    program_phase phase = program_phase::forward;
    std::vector<int> inputs;
    std::int64_t live = 0;     // bytes of the arena in use while it runs
    int axis = -1;             // of a collective
    const char* moved = "";    // its kind: all_reduce, ...
    std::int64_t bytes = 0;    // sent
    bool with_before = false;  // in one batch with the collective before it
  };
  struct amount {
    std::string name;
    std::int64_t bytes = 0;
  };
  struct count {
    std::string name;           // of an operation
    std::vector<int> launches;  // after each of `passes`
  };
  struct pass {
    std::string name;  // "as written" for the first
    int launches = 0, kernels = 0, nodes = 0;
  };

  std::string name, type;
  int ranks = 1;
  std::vector<axis> axes;
  std::vector<tensor> tensors;
  std::vector<node> nodes;
  std::vector<int> outputs;
  int collectives = 0;           // a batch counted once
  std::int64_t total_bytes = 0;  // Step::total_comm_bytes()
  std::int64_t peak = 0;         // Step::peak_bytes
  std::int64_t persistent = 0;   // of it what lives as long as the program: leaves, and kernels' workspace
  std::vector<amount> memory;    // by kind where most is live, and what lies between buffers: they add up to peak
  std::vector<amount> most;      // the most that is live in each phase
  std::vector<pass> passes;      // the last one is the program
  std::vector<count> kernels;
  std::string subgraphs;  // explain_subgraphs

  // Sent on axis `a` by collectives of one kind ("": all) in one phase (count: all).
  std::int64_t sent(int a, std::string_view moved, program_phase phase = program_phase::count) const {
    std::int64_t n = 0;
    for (const node& x : nodes)
      if (x.kind == kind::collective && x.axis == a && (moved.empty() || moved == x.moved) &&
          (phase == program_phase::count || phase == x.phase))
        n += x.bytes;
    return n;
  }
};

namespace detail {

// What stands behind the last "::" of a type's name, without its arguments: "dp".
template <class T>
std::string short_name() {
  const std::string name = type_name<T>();
  int depth = 0;
  std::size_t begin = 0, end = name.size();
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<' || name[i] == '(' || name[i] == '{') ++depth;
    if (name[i] == '>' || name[i] == ')' || name[i] == '}') --depth;
    if (depth == 0 && name[i] == ':') begin = i + 1;
  }
  for (std::size_t i = begin; i < name.size() && end == name.size(); ++i)
    if (name[i] == '<') end = i;
  return name.substr(begin, end - begin);
}

// As their types are, and where two are called alike, as split<2> and split<4>, the later ones with their place in the mesh.
template <class Mesh>
std::vector<std::string> names_of_axes() {
  std::vector<std::string> names;
  const auto add = [&](std::string name) {
    for (const std::string& before : names)
      if (before == name) {
        name += " (axis " + std::to_string(names.size()) + ")";
        break;
      }
    names.push_back(std::move(name));
  };
  [&]<int... I>(std::integer_sequence<int, I...>) {
    (add(short_name<axis_at<Mesh, I>>()), ...);
  }(std::make_integer_sequence<int, Mesh::axes>{});
  return names;
}

// The program that was written, whose pipeline is known: of one with another's parameters (with_parameters_of) the program itself.
template <class Step>
struct program_written {
  using type = Step;
};
template <class Step>
  requires requires { typename Step::lone_program; }
struct program_written<Step> {
  using type = typename Step::lone_program;
};

template <class Step>
concept with_pipeline = requires { typename pipeline_of<Step>::source; };

template <class Graph>
enum explanation::kind kind_of_node(const Graph& g, int i) {
  const node& n = g.nodes[i];
  if (is_leaf(n.op)) return explanation::kind::leaf;
  if (communicates(transition_at(g, i))) return explanation::kind::collective;
  return passes::is_kernel(g, i) ? explanation::kind::kernel : explanation::kind::view;
}

template <class Step>
void explain_tensors(explanation& e) {
  using ex = runtime::lowered<Step>;
  const auto& g = ex::image();
  const int origin[max_axes]{};
  const auto add = [&](const char* kind, const std::string& name, const spec& s) {
    explanation::tensor t;
    t.kind = kind;
    t.name = name;
    t.shape = extents_text(s);
    spec block = s;
    for (int d = 0; d < s.rank; ++d) block.extent[d] = local_interval(s, d, origin).size;
    for (int a = 0; a < s.axes; ++a) t.places.push_back(to_string(s.place[a]));
    t.block = extents_text(block);
    t.elements = numel(s);
    t.own = numel(block);
    e.tensors.push_back(std::move(t));
  };
  for (int i = 0; i < ex::parameter_count(); ++i) add("parameter", ex::parameter_name(i), ex::parameter_spec(i));
  for (int i = 0; i < ex::buffer_count(); ++i) add("buffer", ex::buffer_name(i), ex::buffer_spec(i));
  for (int i = 0; i < g.node_count; ++i)
    if (g.nodes[i].op == op_code::input || g.nodes[i].op == op_code::state)
      add(name_of(g.nodes[i].op), e.nodes[static_cast<std::size_t>(i)].name, g.spec_of(i));
}

template <class Step>
void explain_nodes(explanation& e) {
  using mesh_type = typename program_traits<Step>::mesh_type;
  const auto& g = runtime::lowered<Step>::image();
  const std::vector<std::string> names = node_names(g);
  const auto live = runtime::live_bytes(g, runtime::lowered<Step>::plan());
  const auto& sized = runtime::program_image<Step>::value;
  passes::phase_marks<std::remove_cvref_t<decltype(sized)>::node_capacity> marks;
  passes::mark_phases(marks, sized);
  std::vector<int> number(static_cast<std::size_t>(g.node_count) + 1);
  number_nodes(g, number.data());
  for (int i = 0; i < g.node_count; ++i) {
    const node& n = g.nodes[i];
    explanation::node x;
    x.name = names[static_cast<std::size_t>(i)];
    x.module = module_path(g, n.scope);
    x.tensor = extents_text(g.spec_of(i));
    text::put_node(x.text, text_format::program, g, i, number.data());
    while (!x.text.empty() && x.text.back() == '\n') x.text.pop_back();
    x.kind = kind_of_node(g, i);
    x.phase = marks.of(i);
    for (int k = 0; k < n.inputs; ++k) x.inputs.push_back(n.in[k]);
    x.live = live[static_cast<std::size_t>(i)];
    if (x.kind == explanation::kind::collective) {
      x.axis = static_cast<int>(attributes_of<redistribute_attributes>(n.a).axis);
      x.moved = name_of(transition_at(g, i));
      x.with_before = joins_batch(g, i);
      const auto c = mesh_type::coordinate(e.axes[static_cast<std::size_t>(x.axis)].busiest);
      x.bytes = bytes_sent(g.spec_of(n.in[0]), g.spec_of(i), x.axis, c.data());
    }
    e.nodes.push_back(std::move(x));
  }
  for (int k = 0; k < g.output_count; ++k) e.outputs.push_back(g.outputs[k]);
}

template <class Step>
void explain_passes(explanation& e) {
  std::vector<counted_graph> all;
  const auto& g = runtime::lowered<Step>::image();
  if constexpr (with_pipeline<typename program_written<Step>::type>) {
    using from = pipeline_of<typename program_written<Step>::type>;
    all.push_back({"as written", passes::kernel_calls(from::source::value), from::source::value.node_count});
    count_passes<typename from::source, typename from::type>::run(all);
  }
  all.push_back({"the program", passes::kernel_calls(g), g.node_count});
  for (const counted_graph& c : all) e.passes.push_back({c.after, c.kernels.launches, c.kernels.kernels, c.nodes});
  for (int op = 0; op < static_cast<int>(op_code::count); ++op) {
    explanation::count row{name_of(static_cast<op_code>(op)), {}};
    bool any = false;
    for (const counted_graph& c : all) {
      any = any || c.kernels.of[op] > 0;
      row.launches.push_back(c.kernels.of[op]);
    }
    if (any) e.kernels.push_back(std::move(row));
  }
}

}  // namespace detail

// Of any compiled program that an executor runs. `name` is its title; axes are called as their types are.
template <class Step>
explanation explanation_of(const std::string& name) {
  using ex = runtime::lowered<Step>;
  using mesh_type = typename program_traits<Step>::mesh_type;
  const auto& g = ex::image();
  explanation e;
  e.name = name;
  e.type = type_name<Step>();
  e.ranks = mesh_type::size;
  const std::vector<std::string> axes = detail::names_of_axes<mesh_type>();
  for (int a = 0; a < mesh_type::axes; ++a) {
    explanation::axis x{axes[static_cast<std::size_t>(a)], mesh_type::sizes[static_cast<unsigned>(a)]};
    for (int r = 0; r < mesh_type::size; ++r)
      if (const auto n = passes::busiest_bytes<mesh_type>(g, Step::traffic, a, r); n > x.bytes) {
        x.bytes = n;
        x.busiest = r;
      }
    e.axes.push_back(std::move(x));
  }
  e.collectives = Step::traffic.collectives;
  e.total_bytes = passes::busiest_bytes<mesh_type>(g, Step::traffic, -1, -1);
  detail::explain_nodes<Step>(e);
  detail::explain_tensors<Step>(e);
  e.peak = ex::source::peak_bytes;
  e.persistent = ex::plan().persistent_end;
  constexpr const memory_breakdown& use = Step::memory_use::value;
  for (int k = 0; k < memory_kinds; ++k)
    if (use.kind[k] > 0) e.memory.push_back({name_of(static_cast<memory_kind>(k)), use.kind[k]});
  if (const std::int64_t rest = e.peak - use.live(); rest != 0)  // the peak is exact, buffers are rounded up
    e.memory.push_back({rest > 0 ? "free between buffers" : "rounding of the last buffer", rest});
  for (int p = 0; p < program_phases; ++p)
    if (use.phase[p] > 0) e.most.push_back({name_of(static_cast<program_phase>(p)), use.phase[p]});
  detail::explain_passes<Step>(e);
  using written = typename detail::program_written<Step>::type;
  if constexpr (detail::with_pipeline<written>) e.subgraphs = explain_subgraphs<written>();
  return e;
}

}  // namespace shardwise::inline v0_1
