// SPDX-License-Identifier: Apache-2.0
// Kernels of elements of two bytes on a device: operands are read exactly, all is computed in float, and each result is rounded once.
// Against the host's kernels of double on the same operands: a result may be one unit of its last place off, and no more, which sums in
// the elements' own precision are not.
#include <algorithm>
#include <cmath>

#include "device.hpp"

namespace device_low {

using namespace device_test;
using sw::bf16;
using sw::expression;
using sw::f16;
using sw::no_slot;
using enum op_code;

template <class T>
constexpr double unit_of = std::is_same_v<T, bf16>  ? 1.0 / 256
                           : std::is_same_v<T, f16> ? 1.0 / 2048
                                                    : 1e-6;

template <class T>
void round_to(operand& o) {
  for (double& v : o.v) v = static_cast<double>(static_cast<float>(T(v)));
}
// Operands that are float in the kernel keep their digits.
template <class T>
problem rounded(problem p) {
  const sw::wide_values wide = sw::operation_of(p.op).wide.value;
  for (std::size_t k = 0; k < p.in.size(); ++k)
    if (((wide.operands | p.more_wide) >> k & 1U) == 0) round_to<T>(p.in[k]);
  return p;
}

// Largest error in units of the last place; roundings: how many there may be on the way, each of the size of what is rounded.
double units(const std::vector<double>& a, const std::vector<double>& b, double unit, double size) {
  if (a.size() != b.size()) return HUGE_VAL;
  double square = 0, most = 0;
  for (const double v : b)
    if (std::isfinite(v)) square += v * v;
  const double rms = b.empty() ? 0 : std::sqrt(square / static_cast<double>(b.size()));
  for (std::size_t i = 0; i < a.size(); ++i) {
    if ((std::isnan(a[i]) && std::isnan(b[i])) || a[i] == b[i]) continue;
    const double e = std::fabs(a[i] - b[i]) / (unit * std::fabs(b[i]) + 2e-5 * rms + unit * size);
    if (!(e <= most)) most = std::isnan(e) ? HUGE_VAL : e;
  }
  return most;
}

template <op_code Op, class T, expression E = sw::no_expression>
void check(problem p, double size = 0, double allowed = 1) {
  p.op = Op;
  if constexpr (E.head != 0) p.followed = static_cast<std::size_t>(E.operands());
  p = rounded<T>(p);
  const outcome h = on_host<Op, E>(p);
  cu::launcher start = nullptr;
  if constexpr (E.head != 0) start = &cu::run_with<Op, T, E>;
  const outcome d = on_device<T>(p, start);
  INFO(std::string(sw::name_of(Op)) << ", " << p.out.numel() << " elements, result "
                                    << units(d.out, h.out, unit_of<T>, size));
  CHECK(units(d.out, h.out, unit_of<T>, size) <= allowed);
  for (std::size_t k = 0; k < p.in.size(); ++k)
    if (!p.in[k].integer) CHECK(units(d.in[k], h.in[k], unit_of<T>, size) <= allowed);
}

std::int64_t labels(const char* s) {
  std::int64_t v = 0;
  for (int d = 0; s[d]; ++d) v |= std::int64_t{s[d] - 'a' + 1} << (4 * d);
  return v;
}
problem contraction(const char* x, const char* y, const char* o, const extents& ext) {
  const auto of = [&](const char* s) {
    extents e;
    for (; *s; ++s) e.push_back(ext[static_cast<unsigned>(*s - 'a')]);
    return e;
  };
  problem p{einsum, {values(dense(of(x))), values(dense(of(y)))}, dense(of(o))};
  p.a = {{labels(x), labels(y), labels(o), 0, 0, 0}};
  p.f = 0.75;
  return p;
}

constexpr expression behind(int values, int stores, std::initializer_list<sw::expression_step> steps) {
  expression e = sw::begin_expression(values, stores, true);
  for (const sw::expression_step& s : steps) e.append(s);
  return e;
}
constexpr expression plus = behind(2, 0, {{add, 0, 1}});
constexpr expression biased_gelu = behind(2, 1, {{add, 0, 1, 1}, {gelu_tanh, 2}});
constexpr expression gelu_adjoint = behind(2, 0, {{gelu_tanh_dx, 0, 1}});

template <class T>
void products() {
  for (const std::int64_t m : {0, 1, 3, 65, 200})
    for (const std::int64_t n : {1, 33, 64, 136})
      for (const std::int64_t k : {0, 1, 17, 300})
        for (const char* x : {"ac", "ca"})
          for (const char* o : {"ab", "ba"}) check<einsum, T>(contraction(x, (m + n) % 2 ? "cb" : "bc", o, {m, n, k}));
  check<einsum, T>(contraction("acbd", "aebd", "abce", {2, 3, 17, 16, 33}));  // batches of two strides
  problem apart = contraction("ac", "bc", "ab", {65, 64, 72});
  apart.in[0] = values(sliced({65, 72}, 1, 3));
  apart.in[1].shift = 1;
  check<einsum, T>(apart);
  // small ones are the library's own kernel's, large ones cuBLASLt's; gelu there is of the type's precision
  for (const extents& e : {extents{70, 66, 40}, {608, 512, 456}}) {
    const double size = 1.0 * std::sqrt(static_cast<double>(e[2]));
    const auto given = [&](problem p, std::initializer_list<layout> l) {
      for (const layout& v : l) p.in.push_back(values(v));
      return p;
    };
    const layout whole = dense({e[0], e[1]}), bias = dense({e[1]});
    const problem p = contraction("ac", "bc", "ab", e);
    check<einsum, T, plus>(given(p, {bias}), size, 2);
    check<einsum, T, plus>(given(p, {whole}), size, 2);
    check<einsum, T, biased_gelu>(given(p, {bias, whole}), size, 3);
    check<einsum, T, gelu_adjoint>(given(p, {whole}), size, 3);
    for (const char* out : {"ab", "ba"}) {
      problem sums = contraction("ca", "cb", out, e);
      sums.a.v[3] = 1;
      sums.in.push_back(values(dense({e[0]})));
      check<einsum, T>(sums, size);
    }
    // three at once, as projections of one value are: a bias each, one matrix each, and what their weights' gradients sum beside them
    const extents of_three{e[0], e[1], e[2], 3};
    problem three = contraction("dac", "dbc", "dab", of_three);
    check<einsum, T, plus>(given(three, {dense({3, 1, e[1]})}), size, 2);
    check<einsum, T, plus>(given(three, {dense({1, 1, e[1]})}), size, 2);
    check<einsum, T, plus>(given(three, {dense({3, e[0], e[1]})}), size, 2);
    check<einsum, T, biased_gelu>(given(three, {dense({3, 1, e[1]}), dense({3, e[0], e[1]})}), size, 3);
    layout shared = dense({3, e[0], e[2]});  // one value by three weights
    shared.str[0] = 0;
    three.in[0] = values(shared);
    check<einsum, T, plus>(given(three, {dense({3, 1, e[1]})}), size, 2);
    for (const char* out : {"dab", "dba"}) {
      problem sums = contraction("dca", "dcb", out, of_three);
      sums.a.v[3] = 1;
      sums.in.push_back(values(dense({3, e[0]})));
      check<einsum, T>(sums, size);
    }
  }
}
TEST_CASE("products of elements of two bytes are rounded once") {
  NEEDS_GPU();
  products<bf16>();
  products<f16>();
}

template <class T>
void norms() {
  for (const extents& e : {extents{7},
                           {5, 1},
                           {5, 33},
                           {3, 1032},
                           {3, 4096},
                           {0, 8},
                           {2, 3, 4, 64},
                           {300, 72},
                           {500, 768},
                           {70, 1024},
                           {90, 2048},
                           {20, 8192},
                           {3, 8200}})
    for (int rms : {0, 1})
      for (int gap : {0, 3}) {
        const int last = static_cast<int>(e.size()) - 1;
        const layout x = gap ? sliced(e, last, gap) : dense(e);
        extents stat(e.begin(), e.end() - 1);
        stat.push_back(2);
        const std::int64_t n = e.back();
        problem both{norm, {values(x), values(dense({n})), values(dense({n})), values(dense(stat))}, dense(e)};
        both.a.v[0] = rms;
        both.f = 1e-5;
        {
          auto of = sw::attributes_of<sw::norm_attributes>(both.a);
          of.keeps_statistics = 1;
          both.a = sw::pack_attributes(of);
        }
        both.more_wide = 8U;
        check<norm, T>(both, 1);
        problem statistics{norm_stats, {values(x)}, dense(stat)};
        statistics.a.v[0] = rms;
        statistics.f = 1e-5;
        check<norm_stats, T>(statistics, 1);
        const operand stats = values(dense(stat), 0.25, 1), w = values(dense({n}));
        check<norm_apply, T>(problem{norm_apply, {values(x), stats, w, values(dense({n}))}, dense(e)}, 1);
        problem dx{norm_dx, {values(x), values(dense(e)), stats, w}, dense(e)};
        dx.a.v[0] = rms;
        check<norm_dx, T>(dx, 1);
        dx.in.push_back(values(dense(e)));
        check<norm_dx, T, plus>(dx, 2, 2);
        if (e.size() < 2) continue;
        problem dw{norm_dw, {values(x), values(dense(e)), stats}, dense({n})};
        dw.a.v[0] = rms;
        check<norm_dw, T>(dw, 1);
        problem sums{norm_dw_db, {values(x), values(dense(e)), stats, values(dense({n}))}, dense({n})};
        sums.a.v[0] = rms;
        sums.more_wide = 4U;
        check<norm_dw_db, T>(sums, 1);
        // of one element alone all but a rounding of its gradient / deviation cancels, which is at most 1 / sqrt(epsilon)
        const double cancelled = std::is_same_v<T, float> && n == 1 ? 320 : 2;
        for (const std::int64_t rows : {1, 2}) {  // the weight's gradient, and the bias's below it
          problem joined{norm_dx_dw, {values(x), values(dense(e)), w, values(dense({rows, n}))}, dense(e)};
          joined.a = sw::attributes<sw::norm_attributes>(rms, rows - 1);
          joined.f = 1e-5;
          check<norm_dx_dw, T>(joined, cancelled, 2);
          joined.in.push_back(values(dense(e)));
          check<norm_dx_dw, T, plus>(joined, cancelled, 3);
        }
      }
  CHECK(device::get().tickets_are_zero());
}
TEST_CASE("norms of elements of two bytes keep float statistics and are rounded once") {
  NEEDS_GPU();
  norms<bf16>();
  norms<f16>();
  norms<float>();  // the same kernels, at their own precision
  norms<double>();
}

template <class T>
void losses() {
  for (const extents& e : {extents{5, 1}, {3, 7}, {4, 33}, {2, 3, 1024}, {9, 5000}, {3, 50304}, {0, 8}})
    for (int gap : {0, 5}) {
      const int last = static_cast<int>(e.size()) - 1;
      const layout x = gap ? sliced(e, last, gap) : dense(e);
      const extents rows(e.begin(), e.end() - 1);
      check<lse, T>(problem{lse, {values(x, -9, 9)}, dense(rows)}, 1);
      const operand target = indices(dense(rows), e.back());
      check<nll, T>(problem{nll, {values(x), values(dense(rows), 3, 5), target}, dense(rows)}, 1);
      check<nll_dx, T>(problem{nll_dx, {values(dense(rows)), values(x), values(dense(rows), 3, 5), target}, dense(e)}, 0.01);
      check<nll_dx_loss, T>(problem{nll_dx_loss, {values(dense(rows)), values(x), target, values(dense(rows))}, dense(e)},
                            0.01,
                            sizeof(T) == 2 ? 1 : 500);  // float: what cancels in a row's loss
    }
  // an infinity and a NaN among the logits
  problem p{lse, {values(dense({4, 64}))}, dense({4})};
  p.in[0].v[3] = -HUGE_VAL;
  p.in[0].v[70] = HUGE_VAL;
  p.in[0].v[140] = std::nan("");
  for (int i = 192; i < 256; ++i) p.in[0].v[static_cast<std::size_t>(i)] = -HUGE_VAL;
  check<lse, T>(p, 1);
}
TEST_CASE("losses over logits of two bytes are float, their gradients rounded once") {
  NEEDS_GPU();
  losses<bf16>();
  losses<f16>();
  losses<float>();
}

template <class T>
void others() {
  for (const extents& e : {extents{}, {0}, {5}, {1025}, {70, 33}, {3, 5, 64}}) {
    check<add, T>(problem{add, {values(dense(e)), values(dense(e))}, dense(e)}, 0.01);
    check<mul, T>(problem{mul, {values(dense(e)), values(dense({}))}, dense(e)}, 0.01);
    check<gelu_tanh, T>(problem{gelu_tanh, {values(dense(e))}, dense(e)}, 0.05);
    check<op_code::exp, T>(problem{op_code::exp, {values(dense(e))}, dense(e)}, 0.01);
    problem total{sum, {values(dense(e))}, dense({})};
    total.a.v[0] = (std::int64_t{1} << e.size()) - 1;
    check<sum, T>(total, 1);
    if (e.size() < 2) continue;
    problem columns{sum, {values(dense(e))}, dense({e.back()})};
    columns.a.v[0] = (std::int64_t{1} << (e.size() - 1)) - 1;
    check<sum, T>(columns, 1);
    check<softmax, T>(problem{softmax, {values(dense(e))}, dense(e)}, 0.01);
    check<softmax_dx, T>(problem{softmax_dx, {values(dense(e)), values(dense(e), 0, 1)}, dense(e)}, 1);
  }
  const operand where = indices(dense({5, 40}), 33);
  check<embedding, T>(problem{embedding, {values(dense({33, 48})), where}, dense({5, 40, 48})});
  problem dw{embedding_dw, {values(dense({5, 40, 48})), where}, dense({33, 48})};
  dw.a.v[0] = 33;
  check<embedding_dw, T>(dw, 1);
}
TEST_CASE("elementwise functions, sums, softmax and tables of elements of two bytes are rounded once") {
  NEEDS_GPU();
  others<bf16>();
  others<f16>();
}

}  // namespace device_low
