// SPDX-License-Identifier: Apache-2.0
// What is said of every operation in several places agrees: names, views, updates, kernels, integers, adjoints.

#include <shardwise/autodiff/grad.hpp>
#include <shardwise/graph/storage.hpp>

namespace {

using namespace shardwise;

template <class F>
constexpr int first_against(F&& law) {
  for (int o = 0; o < static_cast<int>(op_code::count); ++o)
    if (!law(static_cast<op_code>(o))) return o;
  return -1;
}
constexpr node node_of(op_code op) {
  node n = empty_node;
  n.op = op;
  n.a.v[1] = 1;
  return n;
}
constexpr spec whole{};

constexpr std::string_view unknown = name_of(op_code::count);
static_assert(first_against([](op_code op) { return name_of(op) != unknown && !std::string_view(name_of(op)).empty(); }) ==
              -1);

// A record states every field: one that leaves a field out does not compile.
static_assert(!std::is_default_constructible_v<operation> && !std::is_default_constructible_v<autodiff::adjoint_rule> &&
              !std::is_default_constructible_v<stated<bool>>);

// A view is one that may be one; only of a redistribution do placements decide.
static_assert(first_against([](op_code op) {
                return op == op_code::redistribute || is_view(node_of(op), whole, whole) == may_view(op);
              }) == -1);
static_assert(first_against([](op_code op) { return !may_view(op) || op == op_code::redistribute || !runs_kernel(op); }) ==
              -1);

// What writes into an operand is an update, and says into which; it is no operand's gradient.
static_assert(first_against([](op_code op) {
                bool any = false;
                for (int k = 0; k < max_inputs; ++k) any = any || writes_operand(node_of(op), k);
                return any == is_update(op) && (!any || autodiff::adjoint_of(op) == autodiff::adjoint::refused);
              }) == -1);

// Leaves run nothing and are not differentiated; what runs no kernel is a leaf, a view, a result of
// another node, or says where its operands lie.
static_assert(first_against([](op_code op) {
                return !is_leaf(op) || (!runs_kernel(op) && autodiff::adjoint_of(op) == autodiff::adjoint::leaf);
              }) == -1);
static_assert(first_against([](op_code op) {
                return runs_kernel(op) || is_leaf(op) || may_view(op) || op == op_code::room || op == op_code::pack ||
                       op == op_code::in_place || op == op_code::copy_ || op == op_code::getitem;
              }) == -1);

// Results that are int32 have no gradient, and gradients flow into no operand of indices.
static_assert(first_against([](op_code op) {
                return !makes_indices(op) || autodiff::adjoint_of(op) == autodiff::adjoint::constant;
              }) == -1);
static_assert(first_against([](op_code op) {
                const int index = index_operand(op);
                return index < 0 || autodiff::adjoint_of(op) == autodiff::adjoint::refused ||
                       !autodiff::differentiable(op, index);
              }) == -1);

// Without a rule nothing is placed: only what `infer` answers itself, before the rules, needs none.
constexpr bool placed_or_refused(op_code op) {
  switch (op) {
    case op_code::permute:
    case op_code::reshape:
    case op_code::slice:
    case op_code::pad:
    case op_code::redistribute:
    case op_code::slice_scatter:
    case op_code::copy_:
    case op_code::detach:
    case op_code::wait: return true;
    default: break;
  }
  spec x{};
  x.rank = 2;
  x.axes = 1;
  x.extent[0] = x.extent[1] = 2;
  make_contiguous(x);
  const spec in[max_inputs] = {x, x, x, x, x};
  const outcome o = infer(op, {}, in, 2);
  return !o.error || o.error.what != problem::rule_missing || o.error.have == static_cast<int>(op);
}
static_assert(first_against(placed_or_refused) == -1);

// What is differentiated has a rule of its own, or one of those views.
constexpr bool has_rule(op_code op) {
  const spec in[max_inputs]{};
  return rules::infer_rows(op, {}, in, 2, in[0]).count > 0;
}
static_assert(has_rule(op_code::einsum) && has_rule(op_code::add) && !has_rule(op_code::sgd) && !has_rule(op_code::input));

}  // namespace
