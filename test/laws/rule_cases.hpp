// SPDX-License-Identifier: Apache-2.0
// The programs that every sharding rule is proved on: uneven extents, extents of one, blocks, and fewer rows than
// ranks.
#pragma once

#include <string_view>

#include <laws/rule_proof.hpp>

namespace shardwise::laws {

// labels("ik", "nk", "in"): dims as letters, numbered as they first occur.
constexpr op_attr labels(std::string_view lhs, std::string_view rhs, std::string_view out) {
  char seen[16]{};
  int count = 0;
  auto packed = [&](std::string_view dims) {
    std::int64_t v = 0;
    int d = 0;
    for (char ch : dims) {
      int l = 0;
      while (l < count && seen[l] != ch) ++l;
      if (l == count) seen[count++] = ch;
      v |= static_cast<std::int64_t>(l + 1) << (4 * d++);
    }
    return v;
  };
  op_attr a{};
  a.v[0] = packed(lhs);
  a.v[1] = packed(rhs);
  a.v[2] = packed(out);
  return a;
}

constexpr op_attr attr(std::int64_t a, std::int64_t b = 0, std::int64_t c = 0) { return {{a, b, c, 0, 0, 0}}; }
constexpr op_attr to_shape(std::initializer_list<int> extents) {
  std::int64_t e[max_rank]{};
  int rank = 0;
  for (int n : extents) e[rank++] = n;
  return pack_extents(e, rank);
}
constexpr op_attr dims(std::initializer_list<int> from) {
  op_attr a{};
  int i = 0;
  for (int d : from) a.v[0] |= std::int64_t{d} << (4 * i++);
  return a;
}
// constant_pad: (before, after) of each dim in order, from the first on; `zero` where the number is.
constexpr op_attr pads(std::initializer_list<int> pairs, bool zero, int first = 0) {
  op_attr a{};
  int i = 0;
  for (int e : pairs) {
    a.v[i / 2] |= i % 2 == 0 ? std::int64_t{e} : std::int64_t{e} << 32;
    ++i;
  }
  a.v[5] = (zero ? 1 : 0) | first << 1;
  return a;
}
constexpr op_attr target(placement p, int axis = 0) { return attr(axis, pack(p)); }

// Statistics or normalisers are computed by the operation that always stands before.
constexpr program norm(leaf x, int features, bool rms) {
  const leaf w = tensor_of({features});
  if (rms)
    return on_leaves({x, w})
        .then(op_code::norm_stats, {0}, attr(1), 1e-5)
        .then(op_code::norm_apply, {0, 2, 1}, attr(1), 1e-5);
  return on_leaves({x, w, w})
      .then(op_code::norm_stats, {0}, attr(0), 1e-5)
      .then(op_code::norm_apply, {0, 3, 1, 2}, attr(0, 1), 1e-5);
}
constexpr program loss(leaf logits, leaf target) {
  return on_leaves({logits, target}).then(op_code::lse, {0}).then(op_code::nll, {0, 2, 1}).where_admitted();
}

inline constexpr program cases[] = {
    // contractions: linear, matmul, batched, attention in both head layouts, outer and inner products
    apply(op_code::einsum, {tensor_of({5, 3}), tensor_of({4, 3})}, labels("ik", "nk", "in"), 0.5),
    apply(op_code::einsum, {tensor_of({6, 4}), tensor_of({6, 4})}, labels("ik", "nk", "in"), 1).blocks(2),
    apply(op_code::einsum, {tensor_of({2, 5, 3}), tensor_of({4, 3})}, labels("bik", "nk", "bin"), 1),
    apply(op_code::einsum, {tensor_of({4, 5}), tensor_of({5, 3})}, labels("ij", "jk", "ik"), 1),
    apply(op_code::einsum, {tensor_of({5, 1}), tensor_of({1, 4})}, labels("ij", "jk", "ik"), 1),
    apply(op_code::einsum, {tensor_of({3, 4, 5}), tensor_of({3, 5, 2})}, labels("bij", "bjk", "bik"), 1),
    apply(op_code::einsum, {tensor_of({2, 3, 4}), tensor_of({4, 5})}, labels("bij", "jk", "bik"), 1),
    apply(op_code::einsum, {tensor_of({2, 3, 3, 2}), tensor_of({2, 3, 4, 2})}, labels("bhqd", "bhkd", "bhqk"), 0.25),
    apply(op_code::einsum, {tensor_of({1, 3, 4, 5}), tensor_of({1, 3, 5, 2})}, labels("bhqk", "bhkd", "bhqd"), 1),
    apply(op_code::einsum, {tensor_of({1, 5, 3, 2}), tensor_of({1, 4, 3, 2})}, labels("bqhd", "bkhd", "bhqk"), 0.25),
    apply(op_code::einsum, {tensor_of({1, 3, 4, 5}), tensor_of({1, 5, 3, 2})}, labels("bhqk", "bkhd", "bqhd"), 1),
    apply(op_code::einsum, {tensor_of({5}), tensor_of({4})}, labels("i", "j", "ij"), 1),
    apply(op_code::einsum, {tensor_of({1, 2, 1, 1, 2, 1, 2, 3}), tensor_of({1, 2, 1, 1, 2, 1, 3, 2})},
          labels("abcdefik", "abcdefkj", "abcdefij"), 1),
    apply(op_code::einsum, {tensor_of({5}), tensor_of({5})}, labels("i", "i", ""), 1),

    // pointwise, with and without broadcasting; one tensor used twice
    apply(op_code::add, {tensor_of({5, 3}), tensor_of({5, 3})}),
    apply(op_code::add, {tensor_of({6, 4}), tensor_of({6, 4})}).blocks(2),
    apply(op_code::add, {tensor_of({5, 3}), tensor_of({3})}),
    apply(op_code::add, {tensor_of({4, 5, 1}), tensor_of({5, 3})}),
    apply(op_code::add, {tensor_of({1, 4}), tensor_of({1, 4})}),
    on_leaves({tensor_of({5, 3})}).then(op_code::add, {0, 0}),
    on_leaves({tensor_of({5, 3})}).then(op_code::scale, {0}, {}, 3).then(op_code::add, {0, 1}),
    apply(op_code::sub, {tensor_of({5, 3}), tensor_of({5, 3})}),
    apply(op_code::sub, {tensor_of({5, 1}), tensor_of({5, 4})}),
    apply(op_code::sub, {tensor_of({3}), tensor_of({5, 3})}),
    apply(op_code::mul, {tensor_of({5, 3}), tensor_of({5, 3})}),
    apply(op_code::mul, {tensor_of({6, 4}), tensor_of({4})}).blocks(2),
    apply(op_code::mul, {tensor_of({5, 1}), tensor_of({1, 4})}),
    apply(op_code::mul, {tensor_of({5}), tensor_of({})}),
    on_leaves({tensor_of({5, 3})}).then(op_code::mul, {0, 0}),
    apply(op_code::scale, {tensor_of({5, 3})}, {}, 0.75),
    apply(op_code::relu, {tensor_of({5, 3})}),
    apply(op_code::tanh, {tensor_of({4, 1})}),
    apply(op_code::gelu_tanh, {tensor_of({5, 3})}),
    apply(op_code::gelu_erf, {tensor_of({6, 2})}).blocks(2),
    apply(op_code::relu_dx, {tensor_of({5, 3}), tensor_of({5, 3})}),
    apply(op_code::tanh_dx, {tensor_of({5, 3}), tensor_of({5, 3})}),
    apply(op_code::gelu_tanh_dx, {tensor_of({5, 3}), tensor_of({5, 3})}),
    apply(op_code::gelu_erf_dx, {tensor_of({5, 3}), tensor_of({5, 3})}),
    apply(op_code::contiguous, {tensor_of({5, 3})}),
    apply(op_code::cast, {tensor_of({5, 3})}),
    apply(op_code::cast, {tensor_of({6, 4})}).blocks(2),
    on_leaves({tensor_of({2, 3, 5})}).then(op_code::permute, {0}, dims({2, 0, 1})).then(op_code::contiguous, {1}),
    apply(op_code::dropout, {tensor_of({5, 3})}, attr(2), 0.4),
    apply(op_code::dropout, {tensor_of({2, 3, 4})}, attr(0), 0.25),
    apply(op_code::clip_factor, {tensor_of({})}),

    // elementwise functions, their adjoints inside; broadcasting; equal elements, where order decides
    apply(op_code::abs, {tensor_of({5, 3})}),
    apply(op_code::sign, {tensor_of({5, 3})}),
    apply(op_code::exp, {tensor_of({5, 3})}),
    apply(op_code::log, {tensor_of({5, 3})}),
    apply(op_code::sqrt, {tensor_of({5, 3})}),
    apply(op_code::sqrt, {tensor_of({5, 3})}, attr(1)),
    apply(op_code::rsqrt, {tensor_of({5, 3})}),
    apply(op_code::reciprocal, {tensor_of({6, 2})}).blocks(2),
    apply(op_code::sigmoid, {tensor_of({5, 3})}),
    apply(op_code::sin, {tensor_of({5, 3})}),
    apply(op_code::cos, {tensor_of({5, 3})}),
    apply(op_code::pow, {tensor_of({5, 3})}, {}, 3),
    apply(op_code::pow, {tensor_of({5, 3})}, {}, 0),
    apply(op_code::clamp_min, {few_values({5, 3}, 3)}, {}, 1),
    apply(op_code::clamp_max, {few_values({5, 3}, 3)}, {}, 1),
    apply(op_code::div, {tensor_of({5, 3}), tensor_of({5, 3})}),
    apply(op_code::div, {tensor_of({6, 4}), tensor_of({4})}).blocks(2),
    apply(op_code::div, {tensor_of({1, 4}), tensor_of({5, 1})}),
    apply(op_code::maximum, {few_values({5, 3}, 3), few_values({5, 3}, 3)}),
    apply(op_code::maximum, {few_values({5, 1}, 3), few_values({4}, 3)}),
    apply(op_code::minimum, {few_values({6, 4}, 3), few_values({4}, 3)}).blocks(2),
    apply(op_code::wins, {few_values({5, 3}, 3), few_values({5, 3}, 3)}),
    apply(op_code::keeps, {few_values({5, 3}, 3), few_values({5, 3}, 3)}),
    apply(op_code::eq, {few_values({5, 3}, 3), few_values({3}, 3)}),
    apply(op_code::ne, {few_values({5, 3}, 3), few_values({5, 3}, 3)}),
    apply(op_code::lt, {few_values({5, 3}, 3), few_values({5, 3}, 3)}),
    apply(op_code::le, {few_values({5, 3}, 3), few_values({5, 3}, 3)}),
    apply(op_code::gt, {few_values({5, 1}, 3), few_values({5, 3}, 3)}),
    apply(op_code::ge, {few_values({5, 3}, 3), few_values({5, 3}, 3)}),
    apply(op_code::where, {indices({5, 3}, 2), tensor_of({5, 3}), tensor_of({5, 3})}),
    apply(op_code::where, {indices({3}, 2), tensor_of({5, 3}), tensor_of({5, 1})}),
    apply(op_code::where, {indices({6, 4}, 2), tensor_of({}), tensor_of({6, 4})}).blocks(2),
    apply(op_code::mask_keep, {tensor_of({5, 3}), indices({5, 3}, 2)}),
    apply(op_code::mask_keep, {tensor_of({3}), indices({5, 1}, 2)}, attr(1)),
    on_leaves({tensor_of({5, 3}), tensor_of({3})})
        .then(op_code::lt, {0, 1})
        .then(op_code::where, {2, 0, 1})
        .where_admitted(),

    // largest, smallest, product: every row, equal elements, zeros; made whole again
    apply(op_code::amax, {few_values({5, 4}, 3)}, attr(1)),
    apply(op_code::amax, {tensor_of({5, 4})}, attr(2)),
    apply(op_code::amax, {few_values({3, 5, 2}, 3)}, attr(5)),
    apply(op_code::amax, {few_values({6, 4}, 4)}, attr(3)).blocks(2),
    apply(op_code::amin, {few_values({5, 4}, 3)}, attr(1)),
    apply(op_code::amin, {tensor_of({3, 5, 2})}, attr(6)),
    apply(op_code::prod, {tensor_of({5, 4})}, attr(1)),
    apply(op_code::prod, {few_values({3, 5, 2}, 3)}, attr(2)),
    apply(op_code::prod, {few_values({5, 4}, 6)}, attr(3)),
    apply(op_code::prod_dx, {tensor_of({1, 4}), few_values({5, 4}, 4)}, attr(1)),
    on_leaves({few_values({1, 4}, 9)})
        .then(op_code::amax, {0}, attr(1))
        .then(op_code::redistribute, {1}, target(replicate_value())),
    on_leaves({tensor_of({5, 4})})
        .then(op_code::amax, {0}, attr(1))
        .then(op_code::redistribute, {1}, target(replicate_value())),
    on_leaves({tensor_of({5, 4})})
        .then(op_code::amin, {0}, attr(3))
        .then(op_code::redistribute, {1}, target(reduced_value())),
    on_leaves({tensor_of({5, 4})})
        .then(op_code::prod, {0}, attr(1))
        .then(op_code::redistribute, {1}, target(shard_value(1))),

    // sums: masks, kept dims, means
    apply(op_code::sum, {tensor_of({5, 3})}, attr(1)),
    apply(op_code::sum, {tensor_of({5, 3})}, attr(2)),
    apply(op_code::sum, {tensor_of({5, 3})}, attr(3)),
    apply(op_code::sum, {tensor_of({3, 5, 2})}, attr(5)),
    apply(op_code::sum, {tensor_of({3, 5, 2})}, attr(5, 1)),
    apply(op_code::sum, {tensor_of({3, 5, 2})}, attr(2, 2)),
    apply(op_code::sum, {tensor_of({5, 4})}, attr(3, 0, 1)),
    apply(op_code::sum, {tensor_of({6, 4})}, attr(2, 2, 1)).blocks(2),
    apply(op_code::sumsq, {tensor_of({5, 3})}, attr(3)),
    apply(op_code::sumsq, {tensor_of({3, 5, 2})}, attr(2)),
    apply(op_code::vector_norm, {tensor_of({5, 3})}, attr(3, 0, 2)),
    apply(op_code::vector_norm, {tensor_of({3, 5, 2})}, attr(2, 0, 1)),
    apply(op_code::vector_norm, {tensor_of({6, 4})}, attr(1, 1, 3)).blocks(2),
    on_leaves({tensor_of({5, 3})})
        .then(op_code::vector_norm, {0}, attr(1, 0, 2))
        .then(op_code::redistribute, {1}, target(replicate_value())),
    on_leaves({tensor_of({3, 5})})
        .then(op_code::vector_norm, {0}, attr(1, 0, 2))
        .then(op_code::redistribute, {1}, target(shard_value(0))),
    apply(op_code::vector_norm_dx, {tensor_of({5}), tensor_of({5, 3}), tensor_of({5})}, attr(2, 0, 2)),

    // along rows
    apply(op_code::softmax, {tensor_of({5, 4})}),
    apply(op_code::softmax, {tensor_of({2, 3, 4})}),
    apply(op_code::softmax, {tensor_of({4})}),
    apply(op_code::softmax, {tensor_of({5, 4})}, attr(1)),
    apply(op_code::softmax, {tensor_of({2, 5, 5})}, attr(1)),
    apply(op_code::softmax, {tensor_of({6, 6})}, attr(1)).blocks(2),
    apply(op_code::softmax_dx, {tensor_of({5, 4}), tensor_of({5, 4})}),
    apply(op_code::norm_stats, {tensor_of({5, 3})}, attr(0), 1e-5),
    apply(op_code::norm_stats, {tensor_of({2, 3, 4})}, attr(1), 1e-5),
    norm(tensor_of({5, 3}), 3, false),
    norm(tensor_of({2, 5, 4}), 4, false),
    norm(tensor_of({5, 3}), 3, true),
    norm(tensor_of({3, 1, 4}), 4, true),
    apply(op_code::norm_dx, {tensor_of({5, 3}), tensor_of({5, 3}), tensor_of({5, 2}), tensor_of({3})}, attr(0, 1)),
    apply(op_code::norm_dx, {tensor_of({5, 3}), tensor_of({5, 3}), tensor_of({5, 2}), tensor_of({3})}, attr(1)),
    apply(op_code::norm_dw, {tensor_of({2, 5, 3}), tensor_of({2, 5, 3}), tensor_of({2, 5, 2})}, attr(0, 1)),
    apply(op_code::lse, {tensor_of({5, 4})}),
    loss(tensor_of({5, 4}), indices({5}, 4)),
    loss(tensor_of({3, 4, 3}), indices({3, 4}, 3)).blocks(2),
    apply(op_code::nll, {tensor_of({5, 4}), tensor_of({5}), indices({5}, 4)}),
    apply(op_code::nll_dx, {tensor_of({5}), tensor_of({5, 4}), tensor_of({5}), indices({5}, 4)}),

    apply(op_code::lse, {tensor_of({2, 3, 4})}),
    apply(op_code::log_softmax, {tensor_of({5, 4})}),
    apply(op_code::log_softmax, {tensor_of({2, 3, 4})}),
    apply(op_code::exp_sum, {tensor_of({5, 4}), tensor_of({5})}),
    apply(op_code::exp_sum, {tensor_of({2, 3, 5}), tensor_of({2, 3})}).blocks(5),
    apply(op_code::nll, {tensor_of({2, 3, 5}), tensor_of({2, 3}), indices({2, 3}, 5)}),
    apply(op_code::nll, {tensor_of({5, 4}), tensor_of({5}), indices({5}, 4)}, attr(1, 2)),
    apply(op_code::nll_dx, {tensor_of({5}), tensor_of({5, 4}), tensor_of({5}), indices({5}, 4)}, attr(1, 2)),
    apply(op_code::topk, {few_values({5, 4}, 3)}, attr(3)),
    apply(op_code::topk, {tensor_of({2, 3, 4})}, attr(2, 1)),
    apply(op_code::take, {tensor_of({5, 4}), indices({5, 2}, 4)}),
    apply(op_code::take_dx, {tensor_of({5, 2}), indices({5, 2}, 4)}, attr(4)),
    on_leaves({few_values({5, 4}, 3)}).then(op_code::topk, {0}, attr(2)).then(op_code::take, {0, 1}).where_admitted(),

    // tables
    apply(op_code::embedding, {tensor_of({7, 3}), indices({5}, 7)}),
    apply(op_code::embedding, {tensor_of({6, 2}), indices({2, 3}, 6)}).blocks(3),
    apply(op_code::embedding, {tensor_of({2, 2}), indices({4}, 2)}),
    apply(op_code::embedding, {tensor_of({4, 4}), indices({3, 4}, 4)}).blocks(2),
    apply(op_code::embedding_dw, {tensor_of({5, 3}), indices({5}, 7)}, attr(7)),
    apply(op_code::embedding_dw, {tensor_of({2, 4, 4}), indices({2, 4}, 3)}, attr(3)).blocks(2),

    // views
    apply(op_code::permute, {tensor_of({5, 3})}, dims({1, 0})),
    apply(op_code::permute, {tensor_of({2, 3, 4})}, dims({2, 0, 1})).blocks(2),
    apply(op_code::reshape, {tensor_of({4, 3, 2})}, to_shape({12, 2})).blocks(2),
    apply(op_code::reshape, {tensor_of({5, 3})}, to_shape({15})),
    apply(op_code::reshape, {tensor_of({15})}, to_shape({5, 3})).blocks(3),
    apply(op_code::reshape, {tensor_of({5, 6})}, to_shape({5, 3, 2})).blocks(2),
    apply(op_code::reshape, {tensor_of({5, 3, 2})}, to_shape({5, 6})),
    apply(op_code::reshape, {tensor_of({6, 4})}, to_shape({24})).blocks(2),
    apply(op_code::reshape, {tensor_of({24})}, to_shape({2, 3, 4})).blocks(4),
    apply(op_code::reshape, {tensor_of({4, 5})}, to_shape({5, 4})),
    apply(op_code::reshape, {tensor_of({4, 1, 3})}, to_shape({4, 3})),
    apply(op_code::reshape, {tensor_of({4, 3})}, to_shape({1, 4, 1, 3, 1})),
    apply(op_code::reshape, {tensor_of({1, 5})}, to_shape({5})),
    apply(op_code::reshape, {tensor_of({12, 3})}, to_shape({4, 9})).blocks(3),
    on_leaves({tensor_of({3, 4, 2})})
        .then(op_code::permute, {0}, dims({1, 0, 2}))
        .then(op_code::contiguous, {1})
        .then(op_code::reshape, {2}, to_shape({4, 6})),
    apply(op_code::wait, {tensor_of({5, 4})}),
    apply(op_code::detach, {tensor_of({5, 4})}),
    apply(op_code::detach, {tensor_of({6, 4})}).blocks(2),
    apply(op_code::slice, {tensor_of({5, 4})}, attr(1, 1, 2)),
    apply(op_code::slice, {tensor_of({5, 4})}, attr(0, 2, 3)).blocks(2),
    on_leaves({tensor_of({5, 4})})
        .then(op_code::permute, {0}, dims({1, 0}))
        .then(op_code::slice, {1}, attr(0, 1, 2))
        .then(op_code::contiguous, {2}),
    apply(op_code::slice, {tensor_of({6, 4})}, attr(0, 0, 5)),
    apply(op_code::slice, {tensor_of({5, 4})}, attr(0, 0, 4)),
    apply(op_code::pad, {tensor_of({5, 4})}, attr(0, 0, 6)),
    apply(op_code::pad, {tensor_of({5, 2})}, attr(1, 1, 4)),
    apply(op_code::pad, {tensor_of({3, 4})}, attr(0, 2, 5)).blocks(2),
    apply(op_code::slice_scatter, {tensor_of({5, 4}), tensor_of({5, 2})}, attr(1, 1, 2)).blocks(5),
    apply(op_code::slice_scatter, {tensor_of({5, 4}), tensor_of({3, 4})}, attr(0, 2, 3)).blocks(2),
    apply(op_code::slice_scatter, {tensor_of({6, 4}), tensor_of({5, 4})}, attr(0, 0, 5)),
    on_leaves({tensor_of({4, 5}), tensor_of({2, 4})})
        .then(op_code::permute, {0}, dims({1, 0}))
        .then(op_code::slice_scatter, {2, 1}, attr(0, 1, 2)),

    // broadcast views, joins
    apply(op_code::broadcast, {tensor_of({1, 4})}, to_shape({3, 4})).blocks(2),
    apply(op_code::broadcast, {tensor_of({2, 1, 3, 1, 2})}, to_shape({1, 2, 1, 2, 2, 3, 1, 2})),
    apply(op_code::reshape, {tensor_of({4, 3, 4})}, to_shape({2, 2, 1, 3, 2, 1, 2, 1})),
    apply(op_code::reshape, {tensor_of({2, 1, 2, 3, 1, 2, 2})}, to_shape({4, 3, 4})).blocks(2),
    apply(op_code::permute, {tensor_of({2, 1, 3, 1, 2, 1, 2, 1})}, dims({7, 2, 0, 1, 6, 5, 3, 4})).blocks(2),
    apply(op_code::broadcast, {tensor_of({5})}, to_shape({2, 3, 5})),
    apply(op_code::broadcast, {tensor_of({4, 1, 2})}, to_shape({4, 3, 2})),
    on_leaves({tensor_of({5, 1})}).then(op_code::permute, {0}, dims({1, 0})).then(op_code::broadcast, {1}, to_shape({2, 5})),
    on_leaves({tensor_of({4, 5})})
        .then(op_code::permute, {0}, dims({1, 0}))
        .then(op_code::reshape, {1}, to_shape({5, 1, 4})),
    apply(op_code::cat, {tensor_of({5, 3}), tensor_of({5, 2})}, attr(1)),
    apply(op_code::cat, {tensor_of({2, 4}), tensor_of({0, 4}), tensor_of({3, 4})}, attr(0)).blocks(2),
    apply(op_code::cat,
          {tensor_of({1, 3, 2}), tensor_of({1, 3, 2}), tensor_of({1, 3, 2}), tensor_of({1, 3, 2}), tensor_of({1, 3, 2})},
          attr(0)),
    on_leaves({tensor_of({5, 3})}).then(op_code::cat, {0, 0}, attr(1)).then(op_code::scale, {1}, {}, 3),

    // by index, with repeated indices
    apply(op_code::gather, {tensor_of({5, 3}), indices({5, 4}, 3)}, attr(1)),
    apply(op_code::gather, {tensor_of({3, 4, 2}), indices({5, 4, 2}, 3)}, attr(0)).blocks(2),
    apply(op_code::gather, {tensor_of({4}), indices({5}, 4)}, attr(0)),
    apply(op_code::scatter_add, {tensor_of({5, 4}), indices({5, 4}, 3)}, attr(1, 3)),
    apply(op_code::scatter_add, {tensor_of({4, 4}), indices({4, 4}, 6)}, attr(0, 6)).blocks(2),
    apply(op_code::index_select, {tensor_of({5, 3}), indices({4}, 3)}, attr(1)),
    apply(op_code::index_select, {tensor_of({3, 4, 2}), indices({5}, 3)}, attr(0)).blocks(2),
    apply(op_code::index_add, {tensor_of({5, 4}), indices({4}, 3)}, attr(1, 3)),
    apply(op_code::index_add, {tensor_of({4, 3}), indices({4}, 6)}, attr(0, 6)).blocks(2),
    apply(op_code::scatter, {tensor_of({5, 3}), indices({5, 4}, 3), tensor_of({5, 4})}, attr(1)),
    apply(op_code::scatter, {tensor_of({3, 4}), indices({2, 4}, 3), tensor_of({2, 4})}, attr(0)).blocks(2),
    apply(op_code::scatter, {tensor_of({5, 3}), indices({5, 2}, 3)}, attr(1), 7),
    apply(op_code::scatter, {tensor_of({5, 3}), indices({5, 2}, 3)}, attr(1, 1)),
    apply(op_code::scatter_dsrc, {tensor_of({5, 3}), indices({5, 4}, 3)}, attr(1)),
    apply(op_code::one_hot, {indices({5}, 3)}, attr(3, static_cast<std::int64_t>(dtype::f32))),
    apply(op_code::one_hot, {indices({2, 4}, 4)}, attr(4, static_cast<std::int64_t>(dtype::f32))).blocks(2),

    // frames and triangles
    apply(op_code::constant_pad, {tensor_of({5, 3})}, pads({0, 0, 1, 2}, true)),
    apply(op_code::constant_pad, {tensor_of({2, 4, 3})}, pads({1, 0, 0, 0, 0, 2}, false), 7).blocks(2),
    apply(op_code::constant_pad, {tensor_of({1, 2, 1, 2, 1, 3})}, pads({0, 0, 1, 0, 0, 0, 0, 0, 0, 1}, true, 1)),
    apply(op_code::triangle, {tensor_of({5, 4})}, attr(0, 0)),
    apply(op_code::triangle, {tensor_of({2, 4, 4})}, attr(-1, 1)).blocks(2),
    apply(op_code::bernoulli, {tensor_of({5, 3})}, attr(1)),

    // every pair of placements
    apply(op_code::redistribute, {tensor_of({5, 4})}, target(replicate_value())).blocks(2),
    apply(op_code::redistribute, {tensor_of({5, 4})}, target(reduced_value())).blocks(2),
    apply(op_code::redistribute, {tensor_of({5, 4})}, target(partial_value())).blocks(2),
    apply(op_code::redistribute, {tensor_of({5, 4})}, target(shard_value(0))).blocks(2),
    apply(op_code::redistribute, {tensor_of({5, 4})}, target(shard_value(1))).blocks(2),
    apply(op_code::redistribute, {tensor_of({5, 6})}, target(shard_value(1, 2))).blocks(3),
    apply(op_code::redistribute, {tensor_of({6, 5})}, target(shard_value(0, 2))).blocks(3),
    on_leaves({tensor_of({5, 3})})
        .then(op_code::redistribute, {0}, target(partial_value(reduction::avg)))
        .then(op_code::redistribute, {1}, target(replicate_value())),
    on_leaves({tensor_of({5, 3})})
        .then(op_code::redistribute, {0}, target(partial_value(reduction::avg)))
        .then(op_code::redistribute, {1}, target(shard_value(0))),
    on_leaves({tensor_of({5, 3})})
        .then(op_code::redistribute, {0}, target(partial_value(reduction::avg)))
        .then(op_code::redistribute, {1}, target(reduced_value())),
};
inline constexpr int case_count = static_cast<int>(sizeof(cases) / sizeof(cases[0]));

// Operations without a proof and why; random fills are the only ones that may join.
struct exemption {
  op_code op;
  const char* reason;
};
inline constexpr exemption unproved[] = {
    {op_code::input, "a leaf: holds what it is given"},
    {op_code::param, "a leaf: holds what it is given"},
    {op_code::state, "a leaf: holds what it is given"},
    {op_code::module_buffer, "a leaf: holds what it is given"},
    {op_code::relabel, "a claim of the user: its law, equal blocks, is checked by verify"},
    {op_code::opaque, "a function of the user: nothing is known of it"},
    {op_code::custom, "the user's own operations: each has a record and a proof of its own"},
    {op_code::getitem, "a result of a custom operation with several, in whose proof it is"},
    {op_code::fused, "written by a pass: verify applies the rules of the operations it is made of"},
    {op_code::norm, "written by a pass: verify applies the rules of the operations it is made of"},
    {op_code::norm_dw_db, "written by a pass: verify applies the rules of the operations it is made of"},
    {op_code::norm_dx_dw, "written by a pass: verify applies the rules of the operations it is made of"},
    {op_code::nll_dx_loss, "written by a pass: verify applies the rules of the operations it is made of"},
    {op_code::room, "written by a pass: storage without a value"},
    {op_code::part, "written by a pass: the buffer as it is"},
    {op_code::pack, "says where its operands lie: checked by verify"},
    {op_code::unpack, "a slot of a pack: checked by verify"},
    {op_code::copy_,
     "writes a value over one of equal extents and placements: checked by verify, gone before anything runs"},
    {op_code::assign, "writes a value over one with equal blocks: checked by verify"},
    {op_code::in_place, "says where its operand lies: checked by verify"},
    {op_code::advance, "counts steps, on every rank alike"},
    {op_code::adam_term, "a part of adam, which is proved, of equal blocks: checked by verify"},
    {op_code::adam_term_with, "a part of adam_with, which is proved, of equal blocks: checked by verify"},
    {op_code::muon, "its direction is of whole matrices, each rank's part of it cut out: dist/module/muon.cpp"},
    {op_code::muon_direction, "a part of muon, of equal blocks: checked by verify"},
    {op_code::adjust_scale, "numbers that all ranks have, out of one that they have summed"},
};

}  // namespace shardwise::laws
