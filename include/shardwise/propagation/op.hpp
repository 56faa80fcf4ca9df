// SPDX-License-Identifier: Apache-2.0
// The closed list of operations and the integers that parameterise them.
#pragma once

#include <cstdint>

namespace shardwise {

// name, kernel (1: runs a kernel, 0: a view, a leaf or a marker without one)
#define SHARDWISE_OPS(X)                                                                                            \
  X(input, 0) X(param, 0) X(state, 0) X(fill, 1)                                                                    \
  X(redistribute, 1)                                                                                                \
  X(einsum, 1)                                                                                                      \
  X(add, 1) X(sub, 1) X(mul, 1) X(scale, 1)                                                                         \
  X(relu, 1) X(tanh, 1) X(gelu_tanh, 1) X(gelu_erf, 1) X(clip_factor, 1)                                            \
  X(relu_bwd, 1) X(tanh_bwd, 1) X(gelu_tanh_bwd, 1) X(gelu_erf_bwd, 1)                                              \
  X(sum, 1) X(expand, 1) X(sumsq, 1)                                                                                \
  X(softmax, 1) X(softmax_bwd, 1)                                                                                   \
  X(norm_stats, 1) X(norm_apply, 1) X(norm_dx, 1) X(norm_dw, 1)                                                     \
  X(embedding, 1) X(embedding_dw, 1)                                                                                \
  X(lse, 1) X(nll, 1) X(nll_dx, 1)                                                                                  \
  X(permute, 0) X(reshape, 0) X(slice, 0) X(pad, 1) X(contiguous, 1)                                                \
  X(dropout, 1) X(relabel, 0) X(opaque, 1)                                                                                                     \
  X(sgd, 1) X(adam, 1)                                                                                              \
  X(pack, 0) X(unpack, 0) X(assign, 1) X(in_place, 0) X(advance, 1) X(adam_term, 1)

enum class op_code : std::uint8_t {
#define SHARDWISE_X(name, kernel) name,
  SHARDWISE_OPS(SHARDWISE_X)
#undef SHARDWISE_X
      count
};

constexpr const char* name_of(op_code op) {
  switch (op) {
#define SHARDWISE_X(name, kernel) \
  case op_code::name: return #name;
    SHARDWISE_OPS(SHARDWISE_X)
#undef SHARDWISE_X
    default: return "?";
  }
}

constexpr bool runs_kernel(op_code op) {
  switch (op) {
#define SHARDWISE_X(name, kernel) \
  case op_code::name: return kernel != 0;
    SHARDWISE_OPS(SHARDWISE_X)
#undef SHARDWISE_X
    default: return false;
  }
}

// What errors print of an operation.
namespace op {
#define SHARDWISE_X(name, kernel) struct name;
SHARDWISE_OPS(SHARDWISE_X)
#undef SHARDWISE_X
}  // namespace op

namespace detail {
template <op_code C>
struct op_tag;
#define SHARDWISE_X(name, kernel)     \
  template <>                         \
  struct op_tag<op_code::name> {      \
    using type = op::name;            \
  };
SHARDWISE_OPS(SHARDWISE_X)
#undef SHARDWISE_X
}  // namespace detail

inline constexpr int max_inputs = 5;

// Integers whose meaning belongs to the operation:
//   param, state, input  v0 index in its table
//   redistribute         v0 mesh axis, v1 target placement (packed)
//   einsum               v0, v1, v2 labels of lhs, rhs, out (4 bits a dim, dim 0 lowest, labels from 1)
//   sum                  v0 mask of summed dims, v1 mask of those kept with extent 1, v2 1 for the mean
//   expand               v0, v1, v2 of the sum that it is the adjoint of
//   softmax              v0 1 for causal (key position <= query position, the last two dims)
//   norm_stats, norm_*   v0 0 layer norm (mean, 1/sigma), 1 rms norm (1/rms); v1 1 with bias
//   embedding_dw         v0 rows of the table
//   permute              v0 source dim of each dim (4 bits a dim, dim 0 lowest)
//   reshape              v0.. new extents, v5 rank (negative extents are dyn bounds' multiples)
//   slice, pad           v0 dim, v1 start, v2 length (slice) or full extent (pad)
//   dropout              v0 site: equal sites draw equal masks
//   relabel              v0..v3 placement on each axis (packed) of the operand's cotangent before it is redistributed
//   opaque               v0 index in the graph's table of functions
//   sgd, adam            v0 1 if the last input is the clip factor; v1 flavour
//   adam                 v2 1 if operand 4 counts the steps (then v0 is 0), else the run's number of the step is taken
//   pack                 v0 element at which the first operand that is not a pack begins; v1 1: goes on where operand 0,
//                        a pack, ends; v2 1: of leaves (see graph/storage.hpp)
//   unpack               v0 element at which the slot begins
//   adam_term            v1 flavour, v2 which: 0 the next first moment of (m, gradient, parameter), 1 the next second
//                        moment of (v, gradient, parameter), 2 the next parameter of (parameter, m, v, steps)
// assign writes operand 1 over operand 0; in_place says that operand 1 was computed there; advance adds 1 to operand 0.
struct op_attr {
  std::int64_t v[6];
  constexpr bool operator==(const op_attr&) const = default;
};

}  // namespace shardwise
