// SPDX-License-Identifier: Apache-2.0
// held_blocks: the blocks of an executor whose memory the caller can read and write: parameters, buffers, optimizer states.
#pragma once

#include <span>
#include <string_view>

#include <shardwise/propagation/op.hpp>
#include <shardwise/runtime/program/names.hpp>

namespace shardwise::inline v0_1::runtime {

// Self is the executor, which derives from this too.
template <class Self, class Element>
class held_blocks {
 public:
  // This rank's block of a parameter or of a buffer, by number or by name ("layers.3.attn.wq"), to be written: it counts as set from
  // now on. Of a const executor, to be read. A name that the model does not have throws, with the nearest ones.
  std::span<Element> parameter(int index) { return self().block_to_write(op_code::param, index); }
  std::span<const Element> parameter(int index) const { return self().block_to_read("parameter", op_code::param, index); }
  std::span<Element> parameter(std::string_view name) { return parameter(Self::parameter_index(name)); }
  std::span<const Element> parameter(std::string_view name) const { return parameter(Self::parameter_index(name)); }

  std::span<Element> buffer(int index) { return self().block_to_write(op_code::module_buffer, index); }
  std::span<const Element> buffer(int index) const { return self().block_to_read("buffer", op_code::module_buffer, index); }
  std::span<Element> buffer(std::string_view name) { return buffer(Self::buffer_index(name)); }
  std::span<const Element> buffer(std::string_view name) const { return buffer(Self::buffer_index(name)); }

  // This rank's block of what the optimizer keeps for a parameter: state("layers.3.attn.wq", moment::first). Throws if it keeps none.
  std::span<Element> state(std::string_view name, moment m) {
    return self().template block<Element>(Self::state_node(name, m));
  }
  std::span<const Element> state(std::string_view name, moment m) const {
    return self().template block<const Element>(Self::state_node(name, m));
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }
  const Self& self() const { return static_cast<const Self&>(*this); }
};

}  // namespace shardwise::inline v0_1::runtime
