// SPDX-License-Identifier: Apache-2.0
// The library's operations and the integers that parameterise them; users' own are all `custom` (graph/custom.hpp).
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include <shardwise/support/message.hpp>

namespace shardwise::inline v0_1 {

// clang-format off: a table
// Elementwise functions whose formulas stand once for all devices, in operations/pointwise/formulas.hpp; see is_elementwise.
#define SHARDWISE_ELEMENTWISE_OPS(X)                                                                                \
  X(abs, 1) X(sign, 1) X(exp, 1) X(log, 1) X(sqrt, 1) X(rsqrt, 1) X(reciprocal, 1) X(sigmoid, 1) X(sin, 1) X(cos, 1) \
  X(pow, 1) X(clamp_min, 1) X(clamp_max, 1)                                                                         \
  X(div, 1) X(maximum, 1) X(minimum, 1) X(wins, 1) X(keeps, 1)                                                      \
  X(eq, 1) X(ne, 1) X(lt, 1) X(le, 1) X(gt, 1) X(ge, 1)                                                             \
  X(where, 1) X(mask_keep, 1)

// What some names do not say:
//   wait            its operand, which may have been on its way (graph/waits.hpp)
//   detach          its operand, of which it is a view; no gradient flows through it
//   wins            1 where the first operand is larger, 1/2 where both are equal, 0 elsewhere
//   keeps           0 where the first operand is smaller, 1/2 where both are equal, 1 elsewhere, beside a NaN too
//   exp_sum         over the last dim, of exp(x - top), top without that dim; a top that is not finite counts as 0
//   take, take_dx   the elements at int32 positions along the last dim, and its adjoint
//   copy_           writes operand 1 over operand 0, a tensor or a view of one, and over all that shares its storage; only traces
//                   have it (pass/functionalise/functionalise.hpp)
// and of what only passes write, after differentiation (graph/expression.hpp):
//   norm_dw_db      sum of dy over all dims but the last; norm_dw is stored in its last operand, a room
//   norm_dx_dw      norm_dx of (dy, x, weight), statistics computed anew; row 0 of its last operand, a room, is norm_dw
//   nll_dx_loss     nll_dx of (dy, logits, target), log-sum-exp computed anew; its last operand, a room, is nll
//   room, part      storage without a value; its value once operand 1 has run
//   assign, in_place, advance   writes operand 1 over operand 0; says that operand 1 was computed there; adds 1 to operand 0
//   sgd_with, adam_with, adam_term_with   the same with options (update_option): programs without them have nothing of theirs
//   muon_direction  what muon makes orthogonal: of (momentum, gradient) Nesterov's next one, in proportion
//   adjust_scale    of a dynamic_loss_scale: whether the step's updates happen, and the next step's scale (operations/update/)
// name, kernel (1: runs a kernel, 2: the user's, 0: a view, a leaf or a marker without one)
#define SHARDWISE_OPS(X)                                                                                            \
  X(input, 0) X(param, 0) X(state, 0) X(fill, 1)                                                                    \
  X(redistribute, 1) X(wait, 0)                                                                                     \
  X(einsum, 1)                                                                                                      \
  X(add, 1) X(sub, 1) X(mul, 1) X(scale, 1)                                                                         \
  X(relu, 1) X(tanh, 1) X(gelu_tanh, 1) X(gelu_erf, 1) X(clip_factor, 1)                                            \
  X(relu_dx, 1) X(tanh_dx, 1) X(gelu_tanh_dx, 1) X(gelu_erf_dx, 1)                                              \
  X(sum, 1) X(expand, 1) X(sumsq, 1)                                                                                \
  X(vector_norm, 1) X(vector_norm_dx, 1)                                                                           \
  X(softmax, 1) X(softmax_dx, 1)                                                                                   \
  X(norm_stats, 1) X(norm_apply, 1) X(norm_dx, 1) X(norm_dw, 1)                                                     \
  X(embedding, 1) X(embedding_dw, 1)                                                                                \
  X(lse, 1) X(nll, 1) X(nll_dx, 1)                                                                                  \
  X(permute, 0) X(reshape, 0) X(slice, 0) X(pad, 1) X(contiguous, 1)                                                \
  X(broadcast, 0) X(cat, 1)                                                                                         \
  X(gather, 1) X(scatter_add, 1) X(index_select, 1) X(index_add, 1) X(scatter, 1) X(scatter_dsrc, 1) X(one_hot, 1)  \
  X(constant_pad, 1) X(triangle, 1) X(arange, 1) X(rand, 1) X(randn, 1) X(bernoulli, 1)                             \
  X(dropout, 1) X(relabel, 0) X(opaque, 1) X(custom, 2) X(getitem, 0)                                               \
  X(fused, 1) X(norm, 1) X(norm_dw_db, 1) X(norm_dx_dw, 1) X(nll_dx_loss, 1) X(room, 0) X(part, 0)                   \
  X(sgd, 1) X(adam, 1) X(sgd_with, 1) X(adam_with, 1) X(lion, 1) X(muon, 1)                                         \
  X(pack, 0) X(unpack, 0) X(assign, 1) X(in_place, 0) X(advance, 1) X(adam_term, 1) X(adam_term_with, 1) X(muon_direction, 1) X(adjust_scale, 1)                                 \
  SHARDWISE_ELEMENTWISE_OPS(X)                                                                                      \
  X(amax, 1) X(amin, 1) X(prod, 1) X(prod_dx, 1)                                                                    \
  X(log_softmax, 1) X(exp_sum, 1)                                                                                   \
  X(topk, 1) X(take, 1) X(take_dx, 1)                                                                               \
  X(slice_scatter, 1) X(copy_, 0) X(module_buffer, 0) X(detach, 0)                                         \
  X(cast, 1)
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

constexpr const char* name_of(op_code op) {
  return detail::op_names[static_cast<int>(op < op_code::count ? op : op_code::count)];
}

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
#define SHARDWISE_X(name, kernel) \
  template <>                     \
  struct op_tag<op_code::name> {  \
    using type = op::name;        \
  };
SHARDWISE_OPS(SHARDWISE_X)
#undef SHARDWISE_X
}  // namespace detail

template <class Op>
  requires(detail::in_library_namespace<Op>("op::"))
struct fact<Op> : detail::type_fact<"operation", Op> {};

inline constexpr int max_inputs =
    8;  // of one operation; what a fused kernel reads: max_fused_inputs in graph/expression.hpp
inline constexpr int max_results = 8;  // of one operation

constexpr bool is_elementwise(op_code op) { return op >= op_code::abs && op <= op_code::mask_keep; }

// Integers whose meaning belongs to the operation: propagation/attributes.hpp names them. Beside those:
//   reshape, broadcast   new extents, packed: propagation/extents.hpp (negative ones are dyn bounds' multiples)
//   constant_pad         v0..v4 elements before (low 32 bits) and after (high) each of five neighbouring dims; v5 bit 0: the
//                        number f is zero, from bit 1: the first of these dims
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
  static_assert(
      sizeof(A) % 8 == 0 && sizeof(A) <= 40 && std::has_unique_object_representations_v<A>,
      "shardwise: attributes are of 8, 16, 24, 32 or 40 bytes, all of which belong to a member; add one, or order them by size.");
  struct words {
    std::int64_t v[sizeof(A) / 8];
  };
  const auto w = std::bit_cast<words>(given);
  op_attr a{{0, 0, 0, 0, 0,
             0}};  // all are written: g++ 12 takes a template argument's array whose first ones alone are for another
  for (std::size_t i = 0; i < sizeof(A) / 8; ++i) a.v[i] = w.v[i];
  return a;
}
// Those of class A whose first words these are; the rest are 0.
template <class A, class... Word>
constexpr op_attr attributes(Word... word) {
  static_assert(sizeof...(Word) <= sizeof(A) / 8);
  op_attr a{{0, 0, 0, 0, 0, 0}};
  int i = 0;
  ((a.v[i++] = static_cast<std::int64_t>(word)), ...);
  return a;
}
// Stands for a word where a class is asked for its members: converts to nothing else.
struct a_word {
  template <class T>
    requires std::is_same_v<T, std::int64_t>
  constexpr operator T() const;
};
// Price: what has plain words alone is built of them, since a compiler's own bit_cast costs it ten times that.
template <class A>
constexpr A attributes_of(const op_attr& a) {
  constexpr int n = sizeof(A) / 8;
  if constexpr (n == 1 && requires { A{a_word{}}; }) {
    return A{a.v[0]};
  } else if constexpr (n == 2 && requires { A{a_word{}, a_word{}}; }) {
    return A{a.v[0], a.v[1]};
  } else if constexpr (n == 3 && requires { A{a_word{}, a_word{}, a_word{}}; }) {
    return A{a.v[0], a.v[1], a.v[2]};
  } else if constexpr (n == 4 && requires { A{a_word{}, a_word{}, a_word{}, a_word{}}; }) {
    return A{a.v[0], a.v[1], a.v[2], a.v[3]};
  } else {
    struct words {
      std::int64_t v[n];
    } w{};
    for (int i = 0; i < n; ++i) w.v[i] = a.v[i];
    return std::bit_cast<A>(w);
  }
}

}  // namespace shardwise::inline v0_1
