// SPDX-License-Identifier: Apache-2.0
// Operations of one's own that are not elementwise: running sums along the last dim, from its beginning and from its end; and what
// a mistake in either looks like.
#pragma once

#include <shardwise/graph/functions/local_map.hpp>
#include <shardwise/operations/row/record.hpp>
#include <shardwise/runtime/host/custom.hpp>
#include <shardwise/vocabulary/axis.hpp>

// x / y: linear in x, whatever y is, and not in y. With the adjoint of twice itself, too.
namespace quotients {

namespace sw = shardwise;

template <int Times>
constexpr void pull(sw::autodiff::pullback& p) {
  const int y = p.n.in[1];
  if (p.wants(0)) p.give_summed(0, p.make(sw::op_code::scale, p.make(sw::op_code::div, p.dy, y), -1, Times));
  if (p.wants(1))
    p.give_summed(1,
                  p.make(sw::op_code::scale, p.make(sw::op_code::mul, p.dy, p.make(sw::op_code::div, p.id, y)), -1, -Times));
}
inline constexpr sw::autodiff::adjoint_rule adjoint = sw::autodiff::pulled<4>(&pull<1>),
                                            doubled_adjoint = sw::autodiff::pulled<4>(&pull<2>);
inline constexpr sw::custom_operation quotient{
    .name = "quotient", .operands = 2, .record = sw::operations::pointwise(sw::linearity::first), .adjoint = &adjoint};
inline constexpr sw::custom_operation doubled{.name = "doubled",
                                              .operands = 2,
                                              .record = sw::operations::pointwise(sw::linearity::first),
                                              .adjoint = &doubled_adjoint};

}  // namespace quotients

namespace sums {

namespace sw = shardwise;

// The last dim stays whole; a sum of partial values is a partial sum.
constexpr sw::rule_rows rows_of(const sw::operation&, const sw::op_attr&, const sw::spec* in, int, const sw::spec&) {
  sw::rule_rows t;
  for (const sw::placement p : {sw::rows::R, sw::rows::U, sw::rows::P}) t.push_back(sw::rows::all(p, p));
  for (int d = 0; d + 1 < in[0].rank; ++d) t.push_back(sw::rows::all(sw::rows::S(d), sw::rows::S(d)));
  return t;
}
constexpr sw::operation record = sw::operations::by_rows(&sw::operations::shape_of_rows, &rows_of,
                                                         &sw::operations::refuse_with<sw::problem::custom_placements>);

// Attribute 0: 1 for sums from the end, which are the adjoint of sums from the beginning, and these of those.
extern const sw::custom_operation running;  // defined below
constexpr void pull_running(sw::autodiff::pullback& p);
inline constexpr sw::autodiff::adjoint_rule running_adjoint = sw::autodiff::pulled<2>(&pull_running);
inline constexpr sw::custom_operation running{
    .name = "running_sum", .operands = 1, .record = record, .adjoint = &running_adjoint};
constexpr void pull_running(sw::autodiff::pullback& p) {
  p.give(0, p.make(running, {{1 - p.n.a.v[0], 0, 0, 0, 0, 0}}, 0, p.dy));
}

template <class T>
constexpr void run(const sw::kernel_arguments<T>& k) {
  const std::int64_t n = k.rank() > 0 ? k.extent(k.rank() - 1) : 1, rows = n > 0 ? k.size() / n : 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    T sum = T(0);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = r * n + (k.attribute(0) != 0 ? n - 1 - i : i);
      sum = sum + k.in(0)[at];
      k.out()[at] = sum;
    }
  }
}

// Mistakes: a row for the last dim, where each rank would begin anew; and an adjoint that sums from the wrong end.
constexpr sw::rule_rows too_many_rows(const sw::operation& o, const sw::op_attr& a, const sw::spec* in, int n,
                                      const sw::spec& out) {
  sw::rule_rows t = rows_of(o, a, in, n, out);
  t.push_back(sw::rows::all(sw::rows::S(in[0].rank - 1), sw::rows::S(in[0].rank - 1)));
  return t;
}
inline constexpr sw::custom_operation wrong_row{
    .name = "wrong_row",
    .operands = 1,
    .record = sw::operations::by_rows(&sw::operations::shape_of_rows, &too_many_rows,
                                      &sw::operations::refuse_with<sw::problem::custom_placements>),
    .adjoint = &sw::autodiff::unknown};
inline constexpr sw::autodiff::adjoint_rule wrong_end = sw::autodiff::pulled<2>(
    [](sw::autodiff::pullback& p) { p.give(0, p.make(running, {{p.n.a.v[0], 0, 0, 0, 0, 0}}, 0, p.dy)); });
inline constexpr sw::custom_operation wrong_adjoint{
    .name = "wrong_adjoint", .operands = 1, .record = record, .adjoint = &wrong_end};

// The same, declared linear in its operand: then a proof shows that the adjoint is not the transpose.
inline constexpr sw::custom_operation wrong_transpose{.name = "wrong_transpose",
                                                      .operands = 1,
                                                      .record =
                                                          [] {
                                                            sw::operation o = record;
                                                            o.linear = sw::linearity::first;
                                                            return o;
                                                          }(),
                                                      .adjoint = &wrong_end};

// Its number times the operand.
inline constexpr sw::custom_operation times{.name = "times",
                                            .operands = 1,
                                            .record = sw::operations::pointwise(sw::linearity::first),
                                            .adjoint = &sw::autodiff::unknown};

}  // namespace sums

template <>
struct shardwise::formula<sums::times> {
  template <class m, class T>
  static constexpr T value(T x, T number) {
    return x * number;
  }
};

#define SHARDWISE_TEST_SUMS(name)                             \
  template <>                                                 \
  struct shardwise::host_kernel<sums::name> {                 \
    template <class T>                                        \
    static constexpr void run(const kernel_arguments<T>& k) { \
      sums::run(k);                                           \
    }                                                         \
  };
SHARDWISE_TEST_SUMS(running)
SHARDWISE_TEST_SUMS(wrong_row)
SHARDWISE_TEST_SUMS(wrong_adjoint)
SHARDWISE_TEST_SUMS(wrong_transpose)
#undef SHARDWISE_TEST_SUMS

// A function of blocks that states where it runs: columns of x weighted by w, rows cut over one axis, columns over the other.
namespace mapped {

namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<3> {};
using mesh = sw::mesh<dp, tp>;
using map = sw::local_map<mesh, sw::out_placements<sw::on<dp, sw::shard<0>>, sw::on<tp, sw::shard<1>>>,
                          sw::in_placements<sw::on<dp, sw::shard<0>>, sw::on<tp, sw::shard<-1>>>,
                          sw::in_placements<sw::on<dp, sw::reduced>, sw::on<tp, sw::shard<0>>>>;
inline constexpr sw::autodiff::adjoint_rule weigh_adjoint = sw::autodiff::pulled<3>([](sw::autodiff::pullback& p) {
  if (p.wants(0)) p.give(0, p.make(sw::op_code::mul, p.dy, p.n.in[1]));
  if (p.wants(1)) p.give_summed(1, p.make(sw::op_code::mul, p.dy, p.n.in[0]));
});
inline constexpr sw::custom_operation weigh{
    .name = "weigh", .operands = 2, .record = map::record, .adjoint = &weigh_adjoint};

// Wrong: sums along the columns, of which a rank sees its own alone.
inline constexpr sw::custom_operation sum_columns{
    .name = "sum_columns", .operands = 2, .record = map::record, .adjoint = &sw::autodiff::unknown};

}  // namespace mapped

template <>
struct shardwise::host_kernel<mapped::weigh> {
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    const std::int64_t n = k.extent(1);
    for (std::int64_t i = 0; i < k.size(); ++i) k.out()[i] = k.in(0)[i] * k.in(1)[i % n];
  }
};
template <>
struct shardwise::host_kernel<mapped::sum_columns> {
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    const std::int64_t n = k.extent(1);
    for (std::int64_t i = 0; i < k.size(); ++i) k.out()[i] = i % n == 0 ? k.in(0)[i] : k.out()[i - 1] + k.in(0)[i];
  }
};
template <>
struct shardwise::formula<quotients::quotient> {
  template <class m, class T>
  static constexpr T value(T x, T y) {
    return x / y;
  }
};
template <>
struct shardwise::formula<quotients::doubled> : shardwise::formula<quotients::quotient> {};
