// SPDX-License-Identifier: Apache-2.0
// What a checkpoint has of a program: its parameters, buffers and the optimizer's states, by name, and which rank writes each block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <shardwise/io/checkpoint/index.hpp>
#include <shardwise/io/safetensors/format.hpp>
#include <shardwise/runtime/executor/block_access.hpp>
#include <shardwise/runtime/program/copied_parameters.hpp>
#include <shardwise/runtime/program/copy_list.hpp>

namespace shardwise::inline v0_1::storage {

// A tensor of a program. States are named after their parameter: "net1.weight:first_moment"; a dynamic loss scale's are
// ":loss_scale" and ":loss_scale_counts". No path of a module has a colon.
// Its id is a node's, or of a parameter in a flat group and its moments that of flat_parts, of which a rank has a run of the row-major
// elements. Such a group's count of steps is one node for all its parameters.
struct saved_leaf {
  std::string name, type;
  int id = 0;
  bool is_state = false;
  int buffer = -1;  // its number among the program's buffers; -1: it is none
  extents shape{};  // of the whole tensor
};

inline std::string state_name(const std::string& parameter, std::int64_t which) {
  switch (which) {
    case 0: return parameter + ":first_moment";
    case 1: return parameter + ":second_moment";
    case 2: return parameter + ":steps";
    case largest_second_moment: return parameter + ":largest_second_moment";
    case scale_state: return ":loss_scale";
    case scale_counts: return ":loss_scale_counts";
  }
  throw std::logic_error("shardwise: checkpoint: parameter '" + parameter + "' has a state of an unknown kind, " +
                         std::to_string(which));
}

// In the program's order: parameters, buffers, states. Throws of a program that keeps values from one iteration for the next.
template <class Executor>
std::vector<saved_leaf> leaves_of(const char* call_name) {
  const auto& g = Executor::image();
  std::vector<saved_leaf> all;
  const auto add = [&](std::string name, int id, bool is_state, int buffer = -1) {
    const spec& s = Executor::flat.spec_of(g, id);
    for (int a = 0; a < s.axes; ++a)
      if (s.place[a].is_partial())
        throw std::logic_error(std::string("shardwise: ") + call_name + ": '" + name +
                               "' is partial: its blocks are no parts of it; place it shard, replicate or reduced");
    if (s.type != dtype_v<typename Executor::element>)
      throw std::logic_error(std::string("shardwise: ") + call_name + ": '" + name + "' has elements of type " +
                             name_of(s.type) + ", and the program's are " + name_of(dtype_v<typename Executor::element>));
    all.push_back({std::move(name), safetensors_type(s.type), id, is_state, buffer, extents(s.extent, s.extent + s.rank)});
  };
  for (int i = 0; i < Executor::parameter_count(); ++i)
    add(Executor::parameter_name(i), Executor::find(op_code::param, i), false);
  for (int i = 0; i < Executor::buffer_count(); ++i)
    add(Executor::buffer_name(i), Executor::find(op_code::module_buffer, i), false, i);
  for (int i = 0; i < g.node_count; ++i) {
    if (g.nodes[i].op != op_code::state) continue;
    const auto of = attributes_of<leaf_attributes>(g.nodes[i].a);
    if (of.which == kept_value)
      throw std::logic_error(
          std::string("shardwise: ") + call_name +
          ": the program is a part of an iterated step, which keeps values from one iteration for the next; end the "
          "iteration with run(env, true), and copy parameters and states to an executor of the step without moves");
  }
  using program = typename runtime::block_access::program<Executor>::type;
  runtime::detail::each_state<program>(g, [&](const leaf_attributes& of, int id) {
    add(state_name(of.parameter >= 0 ? Executor::parameter_name(static_cast<int>(of.parameter)) : "", of.which), id, true);
  });
  return all;
}

inline std::vector<stored_tensor> tensors_of(const std::vector<saved_leaf>& leaves) {
  std::vector<stored_tensor> all;
  for (const saved_leaf& leaf : leaves) all.push_back({leaf.name, leaf.type, leaf.shape});
  return all;
}

// Of the ranks that have one block of leaf number `leaf`, the one that writes it: they take turns, so that no rank writes all.
template <class Executor>
bool writes_block(int id, int leaf, int rank) {
  const runtime::equal_blocks groups{Executor::image().spec_of(Executor::flat.node_of(Executor::image(), id))};
  return groups.member(rank, leaf % groups.copies()) == rank;
}

// The part of a tensor that a block is, stored row-major: whatever order the block itself is stored in.
inline runtime::layout dense_layout(const std::vector<std::int64_t>& offset, const std::vector<std::int64_t>& shape) {
  runtime::layout l;
  l.rank = static_cast<std::int32_t>(shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d) {
    l.ext[d] = shape[d];
    l.origin[d] = offset[d];
  }
  l.make_dense();
  return l;
}
inline runtime::layout dense_layout(runtime::layout l) {
  l.make_dense();
  return l;
}
inline runtime::box_copy whole_box(const runtime::layout& l) {
  runtime::box_copy box;
  for (int d = 0; d < l.rank; ++d) {
    box.begin[d] = l.origin[d];
    box.size[d] = l.ext[d];
  }
  return box;
}
template <class T>
void copy_block(const T* from, const runtime::layout& lf, T* to, const runtime::layout& lt) {
  if (lf.numel() > 0) runtime::copy_box(whole_box(lf), from, lf, to, lt);
}

}  // namespace shardwise::inline v0_1::storage
