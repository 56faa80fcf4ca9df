// SPDX-License-Identifier: Apache-2.0
// What every host kernel is given: the lowered call, typed pointers, the step; and where it is found, by its operation.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include <shardwise/runtime/program/call.hpp>
#include <shardwise/runtime/host/loops.hpp>
#include <shardwise/runtime/host/math.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

using runtime::call;
using runtime::result;
using runtime::step_env;

// Typed pointers of a call; integer operands are read through `index`, integer results written through `index_out`.
template <class T>
struct operands {
  T* p[max_inputs + 1]{};
  const std::int32_t* index = nullptr;
  std::int32_t* index_out = nullptr;
  // Of a custom operation: what its record asks for, if it does.
  T* scratch = nullptr;
  bool has_scratch = false;
};

// How a kernel's work may be cut among a rank's threads. Law: a part's elements have the bits that they have in the whole, so a
// part is another call of the same kernel, on blocks that are cut along one dim; see runtime/host/parts.hpp.
enum class cut_kind : std::uint8_t {
  whole,      // not at all
  places,     // operands are broadcast to the result: any dim of it
  drawn,      // the same with random numbers: the outermost dim
  rows,       // any dim of operand 0 but the last one; all operands and the result have it
  normed,     // the same; operands of one dim are weights of a row's elements, and whole
  columns,    // the last dim of operands 0 and 1, of which sums over rows are taken
  sums,       // dims that are not summed
  product,    // labels of the result
  looked_up,  // the indices' dims
  gathered,   // the last dim: each column of a table is added to by itself
  update,     // the outermost dim of what is written
  shares      // by the kernel itself: call::share
};

// The host kernel of an operation, in its family's operations/<family>/host.hpp: a static run<T>(call, operands<T>, step_env).
template <op_code Op>
struct kernel;

// A kernel that says nothing of it is not cut.
template <op_code Op>
constexpr cut_kind cut_of() {
  if constexpr (Op == op_code::fused) return cut_kind::places;
  else if constexpr (requires { kernel<Op>::cut; }) return kernel<Op>::cut;
  else return cut_kind::whole;
}

template <op_code Op, class T>
concept kernel_written =
    requires(const call& c, const operands<T>& q, const step_env& env) { kernel<Op>::template run<T>(c, q, env); };

namespace detail {

using runtime::global_index;

inline void refuse_index(const char* what, std::int64_t id, std::int64_t limit, op_code op = op_code::embedding) {
  throw std::out_of_range(std::string("shardwise: ") + what + ": index " + std::to_string(id) + " is outside 0.." +
                          std::to_string(limit - 1) + "; " + runtime::index_remedy(op));
}
}  // namespace detail

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host
