// SPDX-License-Identifier: Apache-2.0
// infer: the one entry to all rules, operation and operand specs to result spec or finding; as a value and as a type.
#pragma once

#include <shardwise/propagation/contraction.hpp>
#include <shardwise/propagation/fill.hpp>
#include <shardwise/propagation/indexing.hpp>
#include <shardwise/propagation/join.hpp>
#include <shardwise/propagation/pointwise.hpp>
#include <shardwise/propagation/reduction.hpp>
#include <shardwise/propagation/ordering.hpp>
#include <shardwise/propagation/transition.hpp>
#include <shardwise/propagation/view.hpp>

namespace shardwise {

namespace rules {

constexpr linearity linearity_of(op_code op) {
  switch (op) {
    case op_code::add:
    case op_code::sub: return linearity::joint;
    case op_code::mul: return linearity::each;
    case op_code::scale:
    case op_code::dropout:
    case op_code::contiguous:
    case op_code::relu_bwd:
    case op_code::tanh_bwd:
    case op_code::gelu_tanh_bwd:
    case op_code::gelu_erf_bwd:
    case op_code::div:
    case op_code::mask_keep: return linearity::first;
    case op_code::where: return linearity::joint;  // in its two values
    default: return linearity::none;
  }
}

constexpr bool is_pointwise(op_code op) {
  switch (op) {
    case op_code::add:
    case op_code::sub:
    case op_code::mul:
    case op_code::scale:
    case op_code::relu:
    case op_code::tanh:
    case op_code::gelu_tanh:
    case op_code::gelu_erf:
    case op_code::clip_factor:
    case op_code::relu_bwd:
    case op_code::tanh_bwd:
    case op_code::gelu_tanh_bwd:
    case op_code::gelu_erf_bwd:
    case op_code::contiguous:
    case op_code::dropout: return true;
    default: return is_elementwise(op);
  }
}

// Pointwise operations whose value at an element needs no more than the operands' there and one real parameter: what a
// fused kernel may contain. Masks need an index, the clip factor the step.
constexpr bool is_scalar(op_code op) {
  return is_pointwise(op) && op != op_code::dropout && op != op_code::clip_factor && !is_comparison(op) &&
         index_operand(op) < 0;
}

constexpr spec row_stat(const spec& x, bool keep_pair) {
  spec s = contiguous(x);
  if (keep_pair) {
    s.extent[s.rank - 1] = 2;
  } else {
    s.rank = static_cast<std::uint8_t>(s.rank - 1);
    s.extent[s.rank] = s.stride[s.rank] = 0;
  }
  make_contiguous(s);
  return s;
}

// Extents of the result and the checks that need no placement.
constexpr outcome infer_shape(op_code op, const op_attr& a, const spec* in, int n) {
  const spec& x = in[0];
  const int index = index_operand(op);
  const spec& values = in[index == 0 && n > 1 ? 1 : 0];
  for (int k = 0; k < n; ++k) {
    if (k == index && is_floating(in[k].type)) return fail(problem::needs_integers, x, k);
    if (k != index && !is_floating(in[k].type) && !only_moves(op) && !is_comparison(op))
      return fail(problem::needs_floating_point, x, k);
    if (k != index && in[k].type != values.type) return fail(problem::types_differ, x, k);
  }
  if (is_pointwise(op)) {
    outcome r = broadcast_shape(in, n);
    r.out.type = is_comparison(op) ? dtype::i32 : values.type;
    return r;
  }
  switch (op) {
    case op_code::einsum: return einsum_shape(a, in);
    case op_code::sum:
    case op_code::sumsq: return sum_shape(a, x);
    case op_code::vector_norm: return vector_norm_shape(a, x);
    case op_code::vector_norm_bwd: return {{}, contiguous(in[1])};
    case op_code::softmax:
    case op_code::softmax_bwd:
      if (x.rank < 1) return fail(problem::dim_out_of_range, x);
      if (a.v[0] != 0 && x.rank < 2) return fail(problem::causal_rank, x);
      return {{}, contiguous(x)};
    case op_code::norm_stats:
      if (x.rank < 1) return fail(problem::dim_out_of_range, x);
      return {{}, row_stat(x, true)};
    case op_code::norm_apply:
      for (int k = 2; k < n; ++k)
        if (in[k].rank != 1 || in[k].extent[0] != x.extent[x.rank - 1])
          return fail(problem::norm_weight_shape, x, k, 0, in[k].extent[0], x.extent[x.rank - 1]);
      return {{}, contiguous(x)};
    case op_code::norm_dx: return {{}, contiguous(x)};
    case op_code::norm_dw: {
      outcome r{{}, scalar_like(x)};
      r.out.rank = 1;
      r.out.extent[0] = x.extent[x.rank - 1];
      make_contiguous(r.out);
      return r;
    }
    case op_code::embedding: {
      if (x.rank != 2) return fail(problem::embedding_rank, x, 0, -1, x.rank, 2);
      if (in[1].rank + 1 > max_rank) return fail(problem::rank_too_large, x, 1, -1, in[1].rank + 1, max_rank);
      outcome r{{}, scalar_like(x)};
      for (int d = 0; d < in[1].rank; ++d) copy_dim(r.out, d, in[1], d);
      r.out.extent[in[1].rank] = x.extent[1];
      r.out.rank = static_cast<std::uint8_t>(in[1].rank + 1);
      make_contiguous(r.out);
      return r;
    }
    case op_code::embedding_dw: {
      outcome r{{}, scalar_like(x)};
      r.out.rank = 2;
      r.out.extent[0] = a.v[0];
      r.out.extent[1] = x.extent[x.rank - 1];
      make_contiguous(r.out);
      return r;
    }
    case op_code::lse:
      if (x.rank < 1) return fail(problem::dim_out_of_range, x);
      return {{}, row_stat(x, false)};
    case op_code::nll: {
      const spec out = row_stat(x, false);
      const spec& t = in[2];
      if (t.rank != out.rank) return fail(problem::loss_target_shape, out, 2, -1, t.rank, out.rank);
      for (int d = 0; d < out.rank; ++d)
        if (t.extent[d] != out.extent[d])
          return fail(problem::loss_target_shape, out, 2, d, t.extent[d], out.extent[d]);
      return {{}, out};
    }
    case op_code::nll_dx: return {{}, contiguous(in[1])};
    case op_code::amax:
    case op_code::amin:
    case op_code::prod: return sum_shape(kept_dims(a), x);
    case op_code::prod_dx: return {{}, contiguous(in[1])};
    case op_code::log_softmax:
      if (x.rank < 1) return fail(problem::dim_out_of_range, x);
      return {{}, contiguous(x)};
    case op_code::exp_sum: return {{}, row_stat(x, false)};
    case op_code::topk: return topk_shape(a, x);
    case op_code::take: return take_shape(x, in[1]);
    case op_code::take_dx: return {{}, with_last(x, a.v[0])};
    case op_code::broadcast: return broadcast_to_shape(a, x);
    case op_code::cat: return cat_shape(a, in, n);
    case op_code::gather:
    case op_code::scatter_add:
    case op_code::scatter:
    case op_code::scatter_dsrc: return gather_shape(op, a, in, n);
    case op_code::index_select:
    case op_code::index_add: return index_select_shape(op, a, in);
    case op_code::one_hot: return one_hot_shape(a, x);
    case op_code::constant_pad: return constant_pad_shape(a, x);
    case op_code::triangle:
      if (x.rank < 2) return fail(problem::triangle_rank, x, 0, -1, x.rank, 2);
      return {{}, contiguous(x)};
    default: return {{}, contiguous(x)};
  }
}

constexpr rule_rows infer_rows(op_code op, const op_attr& a, const spec* in, int n, const spec& out) {
  rule_rows t;
  if (is_pointwise(op)) {
    t = pointwise_rows(in, n, out, linearity_of(op));
    if (index_operand(op) >= 0) indices_replicate(t, in, n);
    return t;
  }
  switch (op) {
    case op_code::einsum: return einsum_rows(a, in);
    case op_code::sum: return sum_rows(a, in[0]);
    case op_code::sumsq:
      t = sum_rows(a, in[0]);
      --t.count;  // not linear: the partial row, which stands last, goes
      return t;
    case op_code::vector_norm: return vector_norm_rows(a, in[0]);
    case op_code::vector_norm_bwd: return vector_norm_bwd_rows(a, in[1]);
    case op_code::softmax: return row_rows(in[0].rank, 1, 0, false);
    case op_code::softmax_bwd: return row_rows(in[0].rank, 2, 0, true);
    case op_code::norm_stats: return row_rows(in[0].rank, 1, 0, false);
    case op_code::norm_apply: return row_rows(in[0].rank, n, n - 2, false);
    case op_code::norm_dx: return row_rows(in[0].rank, 4, 1, true);
    case op_code::norm_dw: return norm_dw_rows(in[0].rank);
    case op_code::embedding: return embedding_rows(in[1]);
    case op_code::embedding_dw: return embedding_dw_rows(in[1]);
    case op_code::lse: return row_rows(in[0].rank, 1, 0, false);
    case op_code::nll:
      t = row_rows(in[0].rank, 3, 0, false);
      t.push_back(classes_sharded(in[0].rank, 0, rows::P));
      indices_replicate(t, in, n);
      return t;
    case op_code::nll_dx:
      t = row_rows(in[1].rank, 4, 0, true);
      t.push_back(classes_sharded(in[1].rank, 1, rows::S(in[1].rank - 1)));
      indices_replicate(t, in, n);
      return t;
    case op_code::amax: return extreme_rows(a, in[0], reduction::max);
    case op_code::amin: return extreme_rows(a, in[0], reduction::min);
    case op_code::prod: return extreme_rows(a, in[0], reduction::product);
    case op_code::prod_dx: return prod_dx_rows(a, in[1]);
    case op_code::log_softmax:
    case op_code::topk: return row_rows(in[0].rank, 1, 0, false);
    case op_code::exp_sum:
      t = row_rows(in[0].rank, 2, 0, false);
      t.push_back(classes_sharded(in[0].rank, 0, rows::P));
      return t;
    case op_code::take:
    case op_code::take_dx:
      t = row_rows(in[0].rank, 2, 0, true);
      indices_replicate(t, in, n);
      return t;
    case op_code::broadcast: return broadcast_to_rows(in[0], out);
    case op_code::cat: return cat_rows(a, in[0]);
    case op_code::gather: return gather_rows(a, in[0]);
    case op_code::scatter_dsrc:
      t = gather_rows(a, in[0]);
      --t.count;  // which write was the last, no rank knows of its part of the index
      return t;
    case op_code::scatter_add: return scatter_add_rows(a, in[0]);
    case op_code::index_select: return index_select_rows(a, in[0]);
    case op_code::index_add: return index_add_rows(a, in[0]);
    case op_code::scatter: return scatter_rows(a, in[0], n);
    case op_code::one_hot: return one_hot_rows(in[0]);
    case op_code::constant_pad: return constant_pad_rows(a, in[0]);
    case op_code::triangle: return elementwise_rows(in[0], true);
    case op_code::bernoulli: return elementwise_rows(in[0], false);
    default: return t;
  }
}

constexpr finding placement_finding(op_code op, const op_attr& a, const spec* in, int n, const spec& out, int axis,
                                    bool split_differs) {
  finding f{problem::pointwise_placements, 0, -1, axis};
  bool partial_in = false;
  for (int k = 0; k < n; ++k)
    if (in[k].place[axis].is_partial()) {
      partial_in = true;
      f.operand = k;
    }
  switch (op) {
    case op_code::einsum: f.what = einsum_problem(a, in, axis, split_differs); break;
    case op_code::softmax:
    case op_code::softmax_bwd:
    case op_code::log_softmax:
      f.what = partial_in ? problem::partial_nonlinear : problem::softmax_dim_sharded;
      f.dim = in[0].rank - 1;
      break;
    case op_code::norm_stats:
      f.what = partial_in ? problem::partial_nonlinear : problem::norm_dim_sharded;
      f.dim = in[0].rank - 1;
      break;
    case op_code::norm_apply:
    case op_code::norm_dx:
    case op_code::norm_dw:
      f.what = partial_in ? problem::partial_nonlinear : problem::norm_weight_placement;
      f.operand = 2;
      break;
    case op_code::lse:
      f.what = partial_in ? problem::partial_nonlinear : problem::loss_class_dim_sharded;
      break;
    case op_code::amax:
    case op_code::amin:
    case op_code::prod:
      f.what = partial_in ? problem::partial_other_reduction : problem::pointwise_placements;
      break;
    case op_code::topk:
    case op_code::take:
    case op_code::take_dx:
      f.what = partial_in && op == op_code::topk ? problem::partial_nonlinear : problem::topk_dim_sharded;
      break;
    case op_code::exp_sum:
    case op_code::nll:
    case op_code::nll_dx:
      f.what = partial_in ? problem::partial_nonlinear : problem::loss_target_placement;
      f.operand = 2;
      break;
    case op_code::embedding:
    case op_code::embedding_dw: f.what = problem::embedding_placements; break;
    case op_code::sumsq: f.what = problem::partial_nonlinear; break;
    case op_code::where:
      f.what = partial_in ? problem::where_partial : pointwise_problem(in, n, out, axis, linearity::none);
      break;
    case op_code::broadcast: f.what = partial_in ? problem::partial_nonlinear : problem::expand_dim_sharded; break;
    case op_code::cat: f.what = cat_problem(a, in, n, axis); break;
    case op_code::gather:
    case op_code::scatter_add:
    case op_code::index_select:
    case op_code::index_add:
    case op_code::scatter:
    case op_code::scatter_dsrc: f.what = indexing_problem(op, a, in, n, axis); break;
    case op_code::constant_pad: f.what = constant_pad_problem(in[0], axis); break;
    case op_code::bernoulli: f.what = problem::random_partial; break;
    default: f.what = pointwise_problem(in, n, out, axis, linearity_of(op)); break;
  }
  return f;
}

}  // namespace rules

// The result of an operation in strict mode: no operand is redistributed on the quiet.
constexpr outcome infer(op_code op, const op_attr& a, const spec* in, int n) {
  if (op == op_code::permute) return rules::permute_spec(a, in[0]);
  if (op == op_code::reshape) return rules::reshape_spec(a, in[0]);
  if (op == op_code::slice) return rules::slice_spec(a, in[0]);
  if (op == op_code::pad) return rules::pad_spec(a, in[0]);
  if (op == op_code::redistribute) return rules::redistribute_spec(a, in[0]);
  if (op == op_code::slice_scatter) return rules::slice_scatter_spec(a, in);
  if (op == op_code::copy_) return rules::copy_spec(in);
  if (op == op_code::wait) return {{}, in[0]};
  if (op == op_code::contiguous) return {{}, contiguous(in[0])};  // a copy is placed as what it copies, whatever that is
  outcome r = rules::infer_shape(op, a, in, n);
  for (auto& p : r.out.place) p = placement{};
  if (r.error) return r;
  const rule_rows t = rules::infer_rows(op, a, in, n, r.out);
  if (t.count == 0) {
    r.error = {problem::rule_missing, 0, -1, -1, static_cast<long long>(op), 0};
    return r;
  }
  for (int axis = 0; axis < in[0].axes; ++axis) {
    const row_match m = match(t, in, n, axis);
    if (!m.found) {
      r.error = rules::placement_finding(op, a, in, n, r.out, axis, m.split_differs);
      for (auto& p : r.out.place) p = placement{};
      return r;
    }
    r.out.place[axis] = op == op_code::embedding_dw ? rules::embedding_dw_split(a, axis, m.out) : m.out;
  }
  normalise(r.out);
  return r;
}

// What the error prints beside the sentence: the operation, the mesh, and every operand's shape and placements.
namespace detail {
template <class Op, class Mesh, class... Operands>
struct where;
template <class Element, class Operand>
struct typed_operand;
template <spec S>
struct element_of {
  static constexpr spec s = S;
  using type = element_t<s.type>;
};
}

// Each distinct application of a rule is evaluated once, within its own evaluation budget, and fails on the user's line.
template <class Mesh, op_code Op, op_attr A, spec... In>
struct rule_result {
  static constexpr spec in[] = {In...};
  static constexpr outcome value = infer(Op, A, in, static_cast<int>(sizeof...(In)));
  static constexpr problem what = value.error.what;
  static constexpr spec out = value.out;
};

namespace detail {
template <class R, bool Wrong, class Mesh, op_code Op, spec... In>
struct explain_rule {
  static constexpr bool ok = true;
};
template <class R, class Mesh, op_code Op, spec... In>
struct explain_rule<R, true, Mesh, Op, In...> {
  static constexpr bool ok = raise<R::what, where<typename op_tag<Op>::type, Mesh, operand_t<In>...>>::ok;
};
// Where types are what is wrong, they are named.
template <class R, class Mesh, op_code Op, spec... In>
  requires(R::what == problem::types_differ)
struct explain_rule<R, true, Mesh, Op, In...> {
  static constexpr bool ok =
      raise<R::what, where<typename op_tag<Op>::type, Mesh, typed_operand<typename element_of<In>::type, operand_t<In>>...>>::ok;
};
}  // namespace detail

template <class Mesh, op_code Op, op_attr A, spec... In>
struct checked_rule {
  using result = rule_result<Mesh, Op, A, In...>;
  static_assert(detail::explain_rule<result, result::what != problem::none, Mesh, Op, In...>::ok);
  static constexpr spec out = result::out;
};

}  // namespace shardwise
