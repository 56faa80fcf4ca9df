// SPDX-License-Identifier: Apache-2.0
// muon: an optimizer whose step of a matrix is its momentum made nearly orthogonal; other parameters are updated by AdamW.
#pragma once

#include <shardwise/graph/builder.hpp>
#include <shardwise/module/optimizers.hpp>
#include <shardwise/operations/infer.hpp>
#include <shardwise/propagation/planner.hpp>
#include <shardwise/vocabulary/param_groups.hpp>

namespace shardwise::inline v0_1 {

// By what a matrix's step is multiplied besides lr, as torch.optim.Muon's adjust_lr_fn: original: sqrt(max(1, rows / columns)) (Jordan);
// match_rms_adamw: 0.2 sqrt(max(rows, columns)) (Liu et al. 2025, arXiv 2502.16982), steps as large as AdamW's, so that one lr serves both.
enum class muon_rate { original, match_rms_adamw };

namespace detail {

// The groups that muon leaves to AdamW, in an error.
template <fixed_string... Names>
struct left_to_adam;

// The root of a number from 1 to 2^62, to the last place of a double: Newton's steps, which from above never rise.
constexpr double root_of(double x) {
  double r = x > 1 ? x : 1;
  for (double next = (r + x / r) / 2; next < r; next = (r + x / r) / 2) r = next;
  return r;
}

// What muon needs of a plan: which numbers its own names of groups have there.
template <class Optimizer, class Names>
struct muon_in_groups : Optimizer {
  static constexpr bool known = Optimizer::adam_groups::template all_in<Names>;
  static_assert(raise<(known ? problem::none : problem::muon_group), typename Optimizer::adam_groups_named, Names>::ok);
  static constexpr bool is_rest(const spec& parameter, std::int64_t group) {
    return parameter.rank != 2 || (group > 0 && Optimizer::adam_groups::find(Names::name(static_cast<int>(group))) > 0);
  }
};

}  // namespace detail

template <fixed_string... Names>
struct fact<detail::left_to_adam<Names...>> : detail::quoted_fact<"for AdamW", Names...> {};

// Muon (Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks"; torch.optim.Muon) of parameters of rank 2:
//   m = momentum m + (1 - momentum) g,  u = momentum m + (1 - momentum) g  (Nesterov's),
//   p = p (1 - lr weight_decay) - lr rate(rows, columns) o,
// where o is u brought near the orthogonal matrix of its singular vectors, by X = u / (|u| + 1e-7) and five times
// A = X X^T, X = 3.4445 X + (-4.7750 A + 2.0315 A A) X (of a tall matrix X^T X, from the other side). All others, and the parameters of the
// plan's groups (param_group) named here, as tables and output layers should be, are updated by AdamW, with beta1, beta2 and eps.
// Law: o is that of the whole matrix. Under any plan u is gathered over the axes that split it, once a step, and each rank computes the
// whole of o and keeps its part; so the numbers of ranks and the plan alter results as the order of gradients' sums does, and replicas
// stay equal. Price: the bytes of such a gather, and the products on every rank: 10 n^2 (2 m + n) multiplications and additions of a
// matrix of sides n <= m, and of memory five matrices at most, one matrix at a time; some fifty nodes of the program for each. Not for
// flat_parameters, in which there are no matrices. State: moment::first; of the others AdamW's.
template <muon_rate Rate = muon_rate::original, fixed_string... AdamGroups>
struct muon {
  static constexpr op_code op = op_code::muon;
  static constexpr int states = 2;  // at most
  static constexpr int flavour = 0;
  static constexpr std::int64_t options = 0;
  static constexpr bool clips = false;
  static constexpr bool matrices_only = false;

  using rest = adamw<>;
  using adam_groups = group_names<AdamGroups...>;
  using adam_groups_named = detail::left_to_adam<AdamGroups...>;
  template <class Optimizer, class Names>
  using in_groups = detail::muon_in_groups<Optimizer, Names>;
  static constexpr int most_nodes = 48 + 4 * max_axes;  // of one matrix

  static constexpr double rate(const spec& s) {
    const double rows = static_cast<double>(s.extent[0]), columns = static_cast<double>(s.extent[1]);
    if (Rate == muon_rate::original) return rows > columns ? detail::root_of(rows / columns) : 1;
    return 0.2 * detail::root_of(rows > columns ? rows : columns);
  }

  // Node `id`, a matrix placed as its parameter is, orthogonalised and placed so again.
  static constexpr int orthogonal(builder& b, int id, int scope) {
    const spec placed = b.specs[b.nodes[id].spec];
    const detail::axis_sequence order = detail::splitting_order(placed);
    for (int k = placed.axes - 1; k >= 0; --k)
      if (placed.place[order.axis[k]].is_shard()) id = moved(b, id, order.axis[k], replicate_value(), scope);
    id = of_whole(b, id, scope);
    for (int k = 0; k < placed.axes; ++k)
      if (placed.place[order.axis[k]].is_shard()) id = moved(b, id, order.axis[k], placed.place[order.axis[k]], scope);
    return id;
  }

 private:
  static constexpr int moved(builder& b, int id, int axis, placement to, int scope) {
    const op_attr a = attributes<redistribute_attributes>(axis, pack(to));
    const outcome o = rules::redistribute_spec(a, b.specs[b.nodes[id].spec]);
    if (o.error && !b.error) b.error = o.error;
    return b.emit(op_code::redistribute, a, 0, b.intern(o.out), scope, id);
  }

  static constexpr int of_whole(builder& b, int id, int scope) {
    constexpr double first = 3.4445, second = -4.7750, third = 2.0315, least = 1e-7;
    const int whole = b.nodes[id].spec;
    spec square = b.specs[whole];
    const bool tall = square.extent[0] > square.extent[1];
    square.extent[0] = square.extent[1] = tall ? square.extent[1] : square.extent[0];
    const int squares = b.intern(contiguous(square)), number = b.intern(scalar_like(square));
    const auto labels = [](int i, int j) { return std::int64_t{i} | (std::int64_t{j} << 4); };
    const auto product = [&](op_attr of, int to, int x, int y, double by = 1) {
      return b.emit(op_code::einsum, of, by, to, scope, x, y);
    };
    const auto scaled = [&](int x, double by) { return b.emit(op_code::scale, {}, by, b.nodes[x].spec, scope, x); };
    const auto sum = [&](int x, int y) { return b.emit(op_code::add, {}, 0, b.nodes[x].spec, scope, x, y); };
    const op_attr plain = attributes<einsum_attributes>(labels(1, 2), labels(2, 3), labels(1, 3), std::int64_t{0});
    const op_attr by_itself = tall
                                  ? attributes<einsum_attributes>(labels(2, 1), labels(2, 3), labels(1, 3), std::int64_t{0})
                                  : attributes<einsum_attributes>(labels(1, 2), labels(3, 2), labels(1, 3), std::int64_t{0});

    int norm = b.emit(op_code::sumsq, attributes<sum_attributes>(std::int64_t{3}), 0, number, scope, id);
    norm = b.emit(op_code::sqrt, attributes<sqrt_attributes>(std::int64_t{0}), 0, number, scope, norm);
    norm = sum(norm, b.emit(op_code::fill, {}, least, number, scope));
    int x = b.emit(op_code::div, {}, 0, whole, scope, id, norm);
    for (int k = 0; k < 5; ++k) {
      const int a = product(by_itself, squares, x, x);
      const int linear = scaled(a, second);
      const int polynomial = sum(linear, product(plain, squares, a, a, third));
      const int turned = tall ? product(plain, whole, x, polynomial) : product(plain, whole, polynomial, x);
      x = sum(scaled(x, first), turned);
    }
    return x;
  }
};

}  // namespace shardwise::inline v0_1
