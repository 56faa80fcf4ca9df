// SPDX-License-Identifier: Apache-2.0
// The library's operations and the integers that parameterise them; users' own are all `custom` (graph/custom.hpp).
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include <shardwise/support/message.hpp>

namespace shardwise {

// clang-format off: a table
// Elementwise functions whose formulas stand once for all devices, in operations/pointwise/formulas.hpp; see is_elementwise.
#define SHARDWISE_ELEMENTWISE_OPS(X)                                                                                \
  X(abs, 1) X(sign, 1) X(exp, 1) X(log, 1) X(sqrt, 1) X(rsqrt, 1) X(reciprocal, 1) X(sigmoid, 1) X(sin, 1) X(cos, 1) \
  X(pow, 1) X(clamp_min, 1) X(clamp_max, 1)                                                                         \
  X(div, 1) X(maximum, 1) X(minimum, 1) X(wins, 1) X(keeps, 1)                                                      \
  X(eq, 1) X(ne, 1) X(lt, 1) X(le, 1) X(gt, 1) X(ge, 1)                                                             \
  X(where, 1) X(mask_keep, 1)

// name, kernel (1: runs a kernel, 2: the user's, 0: a view, a leaf or a marker without one)
#define SHARDWISE_OPS(X)                                                                                            \
  X(input, 0) X(param, 0) X(state, 0) X(fill, 1)                                                                    \
  X(redistribute, 1) X(wait, 0)                                                                                     \
  X(einsum, 1)                                                                                                      \
  X(add, 1) X(sub, 1) X(mul, 1) X(scale, 1)                                                                         \
  X(relu, 1) X(tanh, 1) X(gelu_tanh, 1) X(gelu_erf, 1) X(clip_factor, 1)                                            \
  X(relu_bwd, 1) X(tanh_bwd, 1) X(gelu_tanh_bwd, 1) X(gelu_erf_bwd, 1)                                              \
  X(sum, 1) X(expand, 1) X(sumsq, 1)                                                                                \
  X(vector_norm, 1) X(vector_norm_bwd, 1)                                                                           \
  X(softmax, 1) X(softmax_bwd, 1)                                                                                   \
  X(norm_stats, 1) X(norm_apply, 1) X(norm_dx, 1) X(norm_dw, 1)                                                     \
  X(embedding, 1) X(embedding_dw, 1)                                                                                \
  X(lse, 1) X(nll, 1) X(nll_dx, 1)                                                                                  \
  X(permute, 0) X(reshape, 0) X(slice, 0) X(pad, 1) X(contiguous, 1)                                                \
  X(broadcast, 0) X(cat, 1)                                                                                         \
  X(gather, 1) X(scatter_add, 1) X(index_select, 1) X(index_add, 1) X(scatter, 1) X(scatter_dsrc, 1) X(one_hot, 1)  \
  X(constant_pad, 1) X(triangle, 1) X(arange, 1) X(rand, 1) X(randn, 1) X(bernoulli, 1)                             \
  X(dropout, 1) X(relabel, 0) X(opaque, 1) X(custom, 2) X(getitem, 0)                                               \
  X(fused, 1) X(norm, 1) X(norm_grads, 1) X(norm_bwd, 1) X(buffer, 0) X(part, 0)                                     \
  X(sgd, 1) X(adam, 1)                                                                                              \
  X(pack, 0) X(unpack, 0) X(assign, 1) X(in_place, 0) X(advance, 1) X(adam_term, 1)                                 \
  SHARDWISE_ELEMENTWISE_OPS(X)                                                                                      \
  X(amax, 1) X(amin, 1) X(prod, 1) X(prod_dx, 1)                                                                    \
  X(log_softmax, 1) X(exp_sum, 1)                                                                                   \
  X(topk, 1) X(take, 1) X(take_dx, 1)                                                                               \
  X(slice_scatter, 1) X(copy_, 0) X(module_buffer, 0)
// clang-format on

enum class op_code : std::uint8_t {
#define SHARDWISE_X(name, kernel) name,
  SHARDWISE_OPS(SHARDWISE_X)
#undef SHARDWISE_X
      count
};

namespace detail {
// Tables, not switches: a compiler that evaluates a switch compares the labels one by one.
inline constexpr const char* op_names[] = {
#define SHARDWISE_X(name, kernel) #name,
    SHARDWISE_OPS(SHARDWISE_X)
#undef SHARDWISE_X
        "?"};
inline constexpr bool ops_with_kernels[] = {
#define SHARDWISE_X(name, kernel) kernel != 0,
    SHARDWISE_OPS(SHARDWISE_X)
#undef SHARDWISE_X
        false};
}  // namespace detail

constexpr const char* name_of(op_code op) { return detail::op_names[static_cast<int>(op < op_code::count ? op : op_code::count)]; }

constexpr bool runs_kernel(op_code op) {
  return detail::ops_with_kernels[static_cast<int>(op < op_code::count ? op : op_code::count)];
}

// What errors print of an operation: the name of the function.
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

template <class Op>
  requires(detail::in_library_namespace<Op>("op::"))
struct fact<Op> : detail::type_fact<"operation", Op> {};

inline constexpr int max_inputs = 5;
inline constexpr int max_results = 8;  // of one operation

constexpr bool is_elementwise(op_code op) { return op >= op_code::abs && op <= op_code::mask_keep; }

// Integers whose meaning belongs to the operation:
//   param, module_buffer, state, input  v0 index in its table
//   redistribute         v0 mesh axis, v1 target placement (packed)
//   wait                 none: its operand, which may have been on its way (see graph/waits.hpp)
//   einsum               v0, v1, v2 labels of lhs, rhs, out (4 bits a dim, dim 0 lowest, labels from 1)
//   sum                  v0 mask of summed dims, v1 mask of those kept with extent 1, v2 1 for the mean
//   vector_norm          v0 mask of summed dims, v1 mask of those kept with extent 1, v2 the order
//   vector_norm_bwd      those of the vector_norm that it is the adjoint of: operands cotangent, operand, norms
//   expand               v0, v1, v2 of the sum that it is the adjoint of
//   softmax              v0 1 for causal (key position <= query position, the last two dims)
//   norm_stats, norm_*   v0 0 layer norm (mean, 1/sigma), 1 rms norm (1/rms); v1 1 with bias
//   embedding_dw         v0 rows of the table, v1..v4 its placement on each axis (packed) where it shards rows, else 0
//   permute              v0 source dim of each dim (4 bits a dim, dim 0 lowest)
//   reshape              v0.. new extents, v5 rank (negative extents are dyn bounds' multiples)
//   slice, pad           v0 dim, v1 start, v2 length (slice) or full extent (pad); slice: v3 1 for one of many equal parts,
//                        which are of one type, the first too, so none is taken for the beginning of its storage
//   broadcast            as reshape
//   cat                  v0 dim
//   gather, index_select, scatter_dsrc   v0 dim
//   scatter_add, index_add               v0 dim, v1 its extent in the result
//   scatter              v0 dim, v1 1: writes zeros (two operands: the number f is written)
//   one_hot              v0 classes, v1 element type of the result
//   constant_pad         v0.. elements before (low 32 bits) and after (high) each dim, v5 1 if the number f is zero
//   triangle             v0 diagonal, v1 1 for the upper part
//   arange               v0 first, v1 step
//   rand, randn, bernoulli   v0 site
//   dropout              v0 site: equal sites draw equal masks
//   relabel              v0..v3 placement on each axis (packed) of the operand's cotangent before it is redistributed
//   opaque               v0 index in the graph's table of functions
//   custom               v0..v4 the user's, v5 index in the graph's table of custom operations
//   getitem              v0 which result of its operand, a node of an operation with several: see item_of in graph/graph.hpp
//   sqrt                 v0 1: its gradient is 0 where it is 0 (a standard deviation's), else infinite there
//   wins                 1 where the first operand is larger, 1/2 where both are equal, 0 elsewhere
//   keeps                0 where the first operand is smaller, 1/2 where both are equal, 1 elsewhere, beside a NaN too
//   mask_keep            v0 1: zero where the mask is not 0; 0: zero where it is
//   amax, amin, prod, prod_dx   v0 mask of the dims reduced, which stay with extent 1
//   exp_sum              over the last dim, of exp(x - top), top without that dim; a top that is not finite counts as 0
//   nll, nll_dx          v0 1: rows whose target is v1 do not count
//   topk                 v0 how many, v1 1 or 2 for the smallest; int32 positions along the last dim, of equals the first. A NaN
//                        comes first, as the largest, and with v1 1 last; with 2 (argmin) first
//   take, take_dx        positions along the last dim; take_dx: v0 extent of that dim
//   slice_scatter        v0 dim, v1 start, v2 length: operand 0, and operand 1 in place of that slice of it
//   copy_                none: writes operand 1 over operand 0, a tensor or a view of one, and over all that shares its
//                        storage; only traces have it, see pass/functionalise/functionalise.hpp
//   What only passes write, after differentiation (see graph/expression.hpp):
//   fused                v0..v3 the bits of its expression's constants
//   norm                 v0, v1 as norm_apply; v2 1 if the statistics are stored in its last operand, a buffer
//   norm_grads           sum of dy over all dims but the last; norm_dw is stored in its last operand, a buffer
//   einsum               v3 1: sum of lhs over the contracted dims is stored in operand 2, a buffer
//   norm_bwd             norm_dx of (dy, x, weight), statistics computed anew; row 0 of its last operand, a buffer, is
//                        norm_dw, row 1, if v1 says so, the sum of dy over all dims but the last
//   buffer               storage without a value; part: its value once operand 1 has run
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
  // one expression: verification and merging compare attributes of every node, and a compiler's own loop costs it ten times that
  constexpr bool operator==(const op_attr& o) const {
    return v[0] == o.v[0] && v[1] == o.v[1] && v[2] == o.v[2] && v[3] == o.v[3] && v[4] == o.v[4] && v[5] == o.v[5];
  }
};

// --- attributes with names -------------------------------------------------------------------------------------------------

// A real number among the attributes: bits, since clang 16 takes no real number as a template argument.
struct real {
  std::int64_t bits = 0;
  constexpr real() = default;
  constexpr real(double value) : bits(std::bit_cast<std::int64_t>(value)) {}
  constexpr operator double() const { return std::bit_cast<double>(bits); }
};

// A class of integers and `real`s, of whole words and at most five of them (40 bytes), as an operation's attributes, and back.
template <class A>
constexpr op_attr pack_attributes(const A& given) {
  static_assert(sizeof(A) % 8 == 0 && sizeof(A) <= 40 && std::has_unique_object_representations_v<A>,
                "shardwise: attributes are of 8, 16, 24, 32 or 40 bytes, all of which belong to a member; add one, or order them by size.");
  struct words {
    std::int64_t v[sizeof(A) / 8];
  };
  const auto w = std::bit_cast<words>(given);
  op_attr a{};
  for (std::size_t i = 0; i < sizeof(A) / 8; ++i) a.v[i] = w.v[i];
  return a;
}
template <class A>
constexpr A attributes_of(const op_attr& a) {
  struct words {
    std::int64_t v[sizeof(A) / 8];
  } w{};
  for (std::size_t i = 0; i < sizeof(A) / 8; ++i) w.v[i] = a.v[i];
  return std::bit_cast<A>(w);
}

}  // namespace shardwise
