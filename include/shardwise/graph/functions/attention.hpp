// SPDX-License-Identifier: Apache-2.0
// scaled_dot_product_attention, with PyTorch's names: one operation whose memory grows with the time, not with its square. Made like
// a user's own, with as many operands as a call needs.
#pragma once

#include <shardwise/graph/functions/custom.hpp>
#include <shardwise/graph/functions/fills.hpp>
#include <shardwise/graph/functions/option_number.hpp>
#include <shardwise/operations/attention/record.hpp>

namespace shardwise::inline v0_1 {

// Where the heads' dim stands in queries, keys, values and result: (batch, heads, time, size) as in PyTorch, or
// (batch, time, heads, size), which is how a projection leaves them. Neither needs a copy.
enum class head_layout { bhtd, bthd };

struct attention_options {
  bool causal = true;  // a query sees no key that comes after it
  head_layout layout = head_layout::bhtd;
  bool enable_gqa = false;  // keys and values may have fewer heads: head h of q reads head h / (heads of q / heads of k)
  std::int32_t window = 0;  // > 0: a query sees the last so many keys, itself included, and none after it
  option_number scale = __builtin_nan("");  // of the scores; no number: 1 / sqrt(size)
  option_number dropout = 0.0;              // weights are 0 with this probability, and 1 / (1 - it) times as large else
};

// Beside q, k, v: a query sees the keys of its own document alone; ids (batch, time) of int32.
template <tensor I>
struct documents {
  I ids;
  constexpr explicit documents(const I& of) : ids(of) {}
};

namespace detail {

constexpr operation attention_record(int first, int ids) {
  const int indices = ids < 0 ? -1 : first + ids;
  return first == operations::attention_inputs ? operations::attention(indices) : operations::attention_adjoint(indices);
}
// Of an operation with `further` operands behind the first ones, of which number `ids`, if any, holds int32.
constexpr custom_operation attention_operation(const char* name, int first, int further, int ids,
                                               const autodiff::adjoint_rule* rule) {
  return {.name = name, .operands = first + further, .record = attention_record(first, ids), .adjoint = rule};
}

}  // namespace detail

namespace custom {

constexpr void pull_attention(autodiff::pullback& p);
inline constexpr autodiff::adjoint_rule attention_rule = autodiff::pulled<10>(&pull_attention);

// biased: a bias is added to the scores; marked: a mask, or documents; dropped: some weights are.
inline constexpr custom_operation attention = detail::attention_operation("attention", 3, 0, -1, &attention_rule);
inline constexpr custom_operation attention_biased =
    detail::attention_operation("attention_biased", 3, 1, -1, &attention_rule);
inline constexpr custom_operation attention_marked =
    detail::attention_operation("attention_marked", 3, 1, 0, &attention_rule);
inline constexpr custom_operation attention_biased_marked =
    detail::attention_operation("attention_biased_marked", 3, 2, 1, &attention_rule);
inline constexpr custom_operation attention_dropped =
    detail::attention_operation("attention_dropped", 3, 1, -1, &attention_rule);
inline constexpr custom_operation attention_biased_dropped =
    detail::attention_operation("attention_biased_dropped", 3, 2, -1, &attention_rule);
inline constexpr custom_operation attention_marked_dropped =
    detail::attention_operation("attention_marked_dropped", 3, 2, 0, &attention_rule);

// (q, k, v, lse, dout, delta, further...): dq, dk, dv. Nothing is known of their gradients.
inline constexpr custom_operation attention_adjoint =
    detail::attention_operation("attention_adjoint", 6, 0, -1, &autodiff::unknown);
inline constexpr custom_operation attention_adjoint_biased =
    detail::attention_operation("attention_adjoint_biased", 6, 1, -1, &autodiff::unknown);
inline constexpr custom_operation attention_adjoint_marked =
    detail::attention_operation("attention_adjoint_marked", 6, 1, 0, &autodiff::unknown);
inline constexpr custom_operation attention_adjoint_biased_marked =
    detail::attention_operation("attention_adjoint_biased_marked", 6, 2, 1, &autodiff::unknown);
inline constexpr custom_operation attention_adjoint_dropped =
    detail::attention_operation("attention_adjoint_dropped", 6, 1, -1, &autodiff::unknown);
inline constexpr custom_operation attention_adjoint_biased_dropped =
    detail::attention_operation("attention_adjoint_biased_dropped", 6, 2, -1, &autodiff::unknown);
inline constexpr custom_operation attention_adjoint_marked_dropped =
    detail::attention_operation("attention_adjoint_marked_dropped", 6, 2, 0, &autodiff::unknown);
inline constexpr custom_operation attention_delta{
    .name = "attention_delta", .operands = 2, .record = operations::attention_delta, .adjoint = &autodiff::unknown};

}  // namespace custom

namespace detail {

constexpr std::int64_t bit_of(attention_operand o) { return static_cast<std::int64_t>(o); }

// The operation for operands as attention_attributes::operands says.
constexpr const custom_operation* attention_for(std::int64_t operands) {
  const bool biased = (operands & bit_of(attention_operand::bias)) != 0;
  const bool marked = (operands & (bit_of(attention_operand::mask) | bit_of(attention_operand::documents))) != 0;
  if ((operands & bit_of(attention_operand::key)) != 0)
    return biased ? &custom::attention_biased_dropped
                  : (marked ? &custom::attention_marked_dropped : &custom::attention_dropped);
  return biased ? (marked ? &custom::attention_biased_marked : &custom::attention_biased)
                : (marked ? &custom::attention_marked : &custom::attention);
}
constexpr const custom_operation* attention_adjoint_for(std::int64_t operands) {
  const custom_operation* const of = attention_for(operands);
  return of == &custom::attention_biased_dropped   ? &custom::attention_adjoint_biased_dropped
         : of == &custom::attention_marked_dropped ? &custom::attention_adjoint_marked_dropped
         : of == &custom::attention_dropped        ? &custom::attention_adjoint_dropped
         : of == &custom::attention_biased_marked  ? &custom::attention_adjoint_biased_marked
         : of == &custom::attention_biased         ? &custom::attention_adjoint_biased
         : of == &custom::attention_marked         ? &custom::attention_adjoint_marked
                                                   : &custom::attention_adjoint;
}

}  // namespace detail

namespace custom {

// With weights p = exp(scores - lse): dv = p^T dout, dp = dout v^T, and the scores' gradient is p (dp - delta), where delta is the
// sum of dout out, less lse's own cotangent.
constexpr void pull_attention(autodiff::pullback& p) {
  const auto a = attributes_of<attention_attributes>(p.n.a);
  const operations::attention_places at(a, operations::attention_inputs);
  if (at.bias >= 0 && p.wants(at.bias)) return p.refuse({problem::attention_bias_gradient, p.id});
  if (!p.wants(0) && !p.wants(1) && !p.wants(2)) return;
  const int dout = autodiff::contiguous_node(p.t, p.cotangent(0), p.n.scope);
  int delta = p.make(attention_delta, p.n.a, 0, dout, p.result(0));
  if (p.has(1)) delta = p.make(op_code::sub, delta, p.cotangent(1));
  const int q = p.n.in[0], k = p.n.in[1], v = p.n.in[2], lse = p.result(1), x = p.n.in[3], y = p.n.in[4];
  const custom_operation& op = *detail::attention_adjoint_for(a.operands);
  const int all = p.n.inputs == 3   ? p.make(op, p.n.a, p.n.f, q, k, v, lse, dout, delta)
                  : p.n.inputs == 4 ? p.make(op, p.n.a, p.n.f, q, k, v, lse, dout, delta, x)
                                    : p.make(op, p.n.a, p.n.f, q, k, v, lse, dout, delta, x, y);
  for (int i = 0; i < 3; ++i)
    if (p.wants(i)) p.give(i, p.result_of(all, i));
}

}  // namespace custom

namespace detail {

// --- the operands behind q, k, v --------------------------------------------------------------------------------------------

template <class F>
inline constexpr attention_operand kind_of_operand =
    is_floating(F::sp.type) ? attention_operand::bias : attention_operand::mask;
template <class I>
inline constexpr attention_operand kind_of_operand<documents<I>> = attention_operand::documents;

template <class F>
constexpr const F& tensor_of_operand(const F& f) {
  return f;
}
template <class I>
constexpr const I& tensor_of_operand(const documents<I>& d) {
  return d.ids;
}

constexpr bool ascends(std::initializer_list<std::int64_t> bits) {
  std::int64_t last = 0;
  for (const std::int64_t b : bits) {
    if (b <= last) return false;
    last = b;
  }
  return true;
}
// What an operation with these operands cannot be called with: it takes eight, and one of int32.
constexpr problem attention_together(std::int64_t operands, bool in_order) {
  const auto has = [=](attention_operand o) { return (operands & bit_of(o)) != 0; };
  const bool marked = has(attention_operand::mask) || has(attention_operand::documents);
  const bool all = has(attention_operand::bias) && marked && has(attention_operand::key);
  return !in_order || all ||
                 (has(attention_operand::mask) && (has(attention_operand::documents) || has(attention_operand::bias)))
             ? problem::attention_together
             : problem::none;
}

constexpr double attention_scale(option_number given, std::int64_t size) {
  if (given.value() == given.value()) return given.value();
  const double n = size > 0 ? static_cast<double>(size) : 1;
  double root = n;
  for (int i = 0; i < 60; ++i) root = 0.5 * (root + n / root);  // sqrt, at compile time too
  return 1 / root;
}

constexpr spec attention_key_spec(const spec& q) {
  spec s = constant_spec(q);
  s.rank = 1;
  s.extent[0] = operations::attention_key_extent;
  make_contiguous(s);
  return s;
}

template <attention_options O>
constexpr attention_attributes attributes_of_options(std::int64_t operands) {
  attention_attributes a;
  a.layout = O.layout == head_layout::bhtd ? 0 : 1;
  a.causal = O.causal ? 1 : 0;
  a.window = O.window;
  a.dropout = real(O.dropout.value());
  a.operands = operands;
  return a;
}

// By value: nvcc reads no dependent constant by reference.
constexpr problem attention_call_problem(attention_attributes a, attention_options o, spec q, spec k, spec v) {
  const double scale = o.scale.value();
  constexpr double most = 1.7976931348623157e308;  // compared: clang makes no constant of NaN - NaN
  if (scale == scale && !(scale >= -most && scale <= most)) return problem::attention_options;
  if (const problem p = operations::attention_problem(a); p != problem::none) return p;
  return operations::attention_operands_problem(a, q, k, v, o.enable_gqa);
}

template <attention_options O, tensor Q, tensor K, tensor V, class... Further>
constexpr auto attend(const Q& q, const K& k, const V& v, const Further&... further) {
  if constexpr (!resolved<Q, K, V, std::remove_cvref_t<decltype(tensor_of_operand(further))>...>) {
    return unresolved<typename Q::mesh_type>{};
  } else {
    constexpr bool drops = O.dropout.value() != 0;
    constexpr std::int64_t given = (std::int64_t{0} | ... | bit_of(kind_of_operand<Further>));
    constexpr std::int64_t operands = given | (drops ? bit_of(attention_operand::key) : 0);
    constexpr bool in_order = ascends({bit_of(kind_of_operand<Further>)...});
    constexpr attention_attributes a = attributes_of_options<O>(operands);
    constexpr problem together = attention_together(operands, in_order);
    constexpr problem what =
        together != problem::none ? together : attention_call_problem(a, O, spec(Q::sp), spec(K::sp), spec(V::sp));
    if constexpr (what != problem::none) {
      return refused<what, op_code::custom, operand_t<Q::sp>, operand_t<K::sp>, operand_t<V::sp>>(q, k, v);
    } else {
      constexpr double scale = attention_scale(O.scale, Q::sp.extent[3]);
      const auto all = [&](const auto&... more) {
        return call<*attention_for(operands), pack_attributes(a)>(scale, q, k, v, more...);
      };
      if constexpr (drops)
        return std::get<0>(
            all(tensor_of_operand(further)..., leaf_like<op_code::rand, attention_key_spec(Q::sp), no_attr>(q, 0)));
      else return std::get<0>(all(tensor_of_operand(further)...));
    }
  }
}

}  // namespace detail

// softmax(scale q k^T) v by heads, causal unless told otherwise: q (batch, heads, time, size), k and v alike, or as `layout` says;
// v may be of another size. A query that sees no key gives 0; keys that it does not see do not reach its result, whatever they hold.
// Placements: cut along the batch; along the heads of all three; along q's time, k and v reduced; along v's size, q and k reduced.
template <attention_options Options, tensor Q, tensor K, tensor V>
constexpr auto scaled_dot_product_attention(const Q& q, const K& k, const V& v) {
  return detail::attend<Options>(q, k, v);
}
// The same with a bias that is added to the scores, or an int32 mask whose zeros hide keys, either broadcast to (batch, heads, time of
// q, time of k); with documents(ids); or with a bias and documents. A bias takes no gradient: one that asks for it is refused.
template <attention_options Options = attention_options{}, tensor Q, tensor K, tensor V, class Further, class... More>
constexpr auto scaled_dot_product_attention(const Q& q, const K& k, const V& v, const Further& further,
                                            const More&... more) {
  return detail::attend<Options>(q, k, v, further, more...);
}
// The same by its two oldest options.
template <bool Causal = true, head_layout Layout = head_layout::bhtd, tensor Q, tensor K, tensor V>
constexpr auto scaled_dot_product_attention(const Q& q, const K& k, const V& v) {
  return detail::attend<attention_options{.causal = Causal, .layout = Layout}>(q, k, v);
}

}  // namespace shardwise::inline v0_1
