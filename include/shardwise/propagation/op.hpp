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
  X(fused, 1) X(norm, 1) X(norm_grads, 1) X(buffer, 0) X(part, 0)                                                   \
  X(sgd, 1) X(adam, 1)

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
//   What only passes write, after differentiation (see graph/expression.hpp):
//   fused                v0..v3 the bits of its expression's constants
//   norm                 v0, v1 as norm_apply; v2 1 if the statistics are stored in its last operand, a buffer
//   norm_grads           sum of dy over all dims but the last; norm_dw is stored in its last operand, a buffer
//   einsum               v3 1: sum of lhs over all dims but the last is stored in operand 2, a buffer
//   buffer               storage without a value; part: its value once operand 1 has run
//   sgd, adam            v0 1 if the last input is the clip factor; v1 flavour
struct op_attr {
  std::int64_t v[6];
  constexpr bool operator==(const op_attr&) const = default;
};

}  // namespace shardwise
