// SPDX-License-Identifier: Apache-2.0
// An expression evaluated in the kernel that it follows gives what the host's kernel and then its expression give, on awkward
// extents and strides; and it is no launch of its own where it need not be.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "device.hpp"

// Named: nvcc reads CUDA's own headers after the source, and there the names of operations would hide functions.
namespace device_epilogues {

using namespace device_test;
using sw::expression;
using sw::no_slot;
using enum op_code;

struct step {
  op_code op;
  int x, y = no_slot, store = 0;
};
template <std::size_t N>
constexpr expression followed_by(int values, int stores, const step (&steps)[N]) {
  expression e = sw::begin_expression(values, stores, true);
  for (const step& s : steps) e.append({s.op, s.x, s.y, s.store, 0});
  return e;
}

constexpr expression plus_one_value = followed_by(2, 0, {{add, 0, 1}});
constexpr expression value_plus = followed_by(2, 0, {{add, 1, 0}});
constexpr expression plus_two_values = followed_by(3, 0, {{add, 0, 1}, {add, 2, 3}});
constexpr expression biased_gelu = followed_by(2, 1, {{add, 0, 1, 1}, {gelu_tanh, 2}});
constexpr expression gelu_adjoint = followed_by(2, 0, {{gelu_tanh_dx, 0, 1}});
constexpr expression biased_relu = followed_by(2, 0, {{add, 0, 1}, {relu, 2}});
constexpr expression only_relu = followed_by(1, 0, {{relu, 0}});
// every slot and two buffers: (r v1 stored) - v2, tanh of it stored, times r
constexpr expression winding = followed_by(3, 2, {{mul, 0, 1, 1}, {sub, 3, 2}, {op_code::tanh, 4, no_slot, 2}, {mul, 5, 0}});

// An operand's layout for a result of extents e: dims of the mask have extent 1, those of `missing` from the left are left
// out, the rest is stored in the order of dims, or backwards.
layout beside(const extents& e, unsigned ones, std::size_t missing, bool backwards) {
  extents own;
  for (std::size_t d = missing; d < e.size(); ++d) own.push_back((ones >> d) & 1U ? 1 : e[d]);
  extents order;
  for (std::size_t d = 0; d < own.size(); ++d)
    order.push_back(static_cast<std::int64_t>(backwards ? own.size() - 1 - d : d));
  return stored(own, order);
}
extents extents_of(const layout& l) { return extents(l.ext, l.ext + l.rank); }

// Appends operands for every value and buffer of E, in the way that number `variant` says.
template <expression E>
problem with_operands(problem p, int variant) {
  const extents e = extents_of(p.out);
  const std::size_t rank = e.size();
  for (int v = 1; v < E.values(); ++v) {
    const int how = (variant + v) % 6;
    const unsigned last = rank > 0 ? 1U << (rank - 1) : 0;
    layout l = how == 0   ? beside(e, 0, 0, false)
               : how == 1 ? beside(e, 0, 0, true)
               : how == 2 ? beside(e, 0, rank > 0 ? rank - 1 : 0, false)
               : how == 3 ? beside(e, last, 0, false)
               : how == 4 ? beside(e, 0, rank > 1 ? 1 : 0, false)
                          : beside(e, 0, rank, false);
    p.in.push_back(values(l));
    p.in.back().shift = static_cast<std::size_t>(variant % 2);
  }
  for (int s = 0; s < E.stores(); ++s) p.in.push_back(values(dense(e)));
  p.followed = static_cast<std::size_t>(E.operands());
  return p;
}

template <op_code Op, expression E>
void variants(const problem& p, report& r) {
  for (int v = 0; v < 6; ++v) compare_followed<Op, E>(with_operands<E>(p, v), r);
}

std::int64_t labels(const char* s) {
  std::int64_t v = 0;
  for (int d = 0; s[d]; ++d) v |= std::int64_t{s[d] - 'a' + 1} << (4 * d);
  return v;
}
problem contraction(const char* x, const char* y, const char* o, const std::vector<std::int64_t>& ext) {
  const auto of = [&](const char* s) {
    extents e;
    for (; *s; ++s) e.push_back(ext[static_cast<unsigned>(*s - 'a')]);
    return e;
  };
  problem p{einsum, {values(dense(of(x))), values(dense(of(y)))}, dense(of(o))};
  p.a = {{labels(x), labels(y), labels(o), 0, 0, 0}};
  p.f = 0.75;
  // The product's size: its rounding is some 1e-6 of that, which functions behind it pass on, however small their results are (tanh
  // of a difference of two products). Operands are uniform on [-2, 2]: a product of two has mean square 16/9.
  double depth = 1;
  for (const char* s = x; *s; ++s)
    if (std::strchr(y, *s) && !std::strchr(o, *s)) depth *= static_cast<double>(ext[static_cast<unsigned>(*s - 'a')]);
  p.unit = p.f * std::sqrt(depth * 16 / 9);
  return p;
}

TEST_CASE("products with expressions equal the host's") {
  NEEDS_GPU();
  report r("product + expression");
  for (const std::int64_t m : {0, 1, 3, 64, 65, 130})
    for (const std::int64_t n : {0, 1, 33, 64, 100})
      for (const std::int64_t k : {0, 1, 16, 17, 300})
        for (const char* x : {"ac", "ca"})
          for (const char* o : {"ab", "ba"}) {
            const problem p = contraction(x, (m + n) % 2 ? "cb" : "bc", o, {m, n, k});
            const int variant = static_cast<int>(m + n + k);
            compare_followed<einsum, biased_gelu>(with_operands<biased_gelu>(p, variant), r);
            compare_followed<einsum, winding>(with_operands<winding>(p, variant + 1), r);
          }
  const std::vector<std::int64_t> e{3, 5, 8, 6, 7, 2}, big{4, 33, 64, 17, 9, 3};
  for (const auto& ext : {e, big}) {
    variants<einsum, plus_one_value>(contraction("abc", "dc", "abd", ext), r);
    variants<einsum, plus_two_values>(contraction("abc", "dc", "abd", ext), r);
    variants<einsum, winding>(contraction("abcd", "abed", "abce", ext), r);      // batches
    variants<einsum, winding>(contraction("abc", "abd", "dc", ext), r);          // the result is turned
    variants<einsum, biased_gelu>(contraction("abcd", "dcef", "abef", ext), r);  // several dims a role
    variants<einsum, biased_relu>(contraction("ab", "ac", "bca", ext), r);
  }
}

// Depth in few tiles is cut among blocks.
TEST_CASE("deep products with expressions equal the host's") {
  NEEDS_GPU();
  report r("deep product");
  for (const auto& e :
       {std::vector<std::int64_t>{64, 64, 5000}, {1, 1, 4099}, {70, 3, 1000}, {200, 130, 2047}, {65, 65, 128}}) {
    variants<einsum, plus_one_value>(contraction("ac", "bc", "ab", e), r);
    variants<einsum, winding>(contraction("ca", "cb", "ab", e), r);
    problem sums = contraction("ca", "cb", "ab", e);  // a weight's gradient with its bias's
    sums.a.v[3] = 1;
    sums.in.push_back(values(dense({e[0]})));
    compare<einsum>(sums, r);
  }
  CHECK(device::get().tickets_are_zero());
}

TEST_CASE("a weight's gradient and the sum beside it equal the host's") {
  NEEDS_GPU();
  report r("product + sum");
  for (const std::int64_t rows : {0, 1, 3, 40})
    for (const std::int64_t time : {1, 7, 33})
      for (const std::int64_t n : {0, 1, 65, 200})
        for (const std::int64_t k : {0, 1, 64, 70}) {
          problem p = contraction("abc", "abd", "cd", {rows, time, n, k});
          p.a.v[3] = 1;
          p.in.push_back(values(dense({n})));
          p.unit = 1;  // a sum of many values may be near zero
          compare<einsum>(p, r);
          p.in[0] = values(sliced({rows, time, n}, 2, 3));
          p.in[1] = values(stored({rows, time, k}, {1, 0, 2}));
          compare<einsum>(p, r);
        }
}

// Attention's products have two batch dims that no single stride joins; one launch all the same.
TEST_CASE("products with batches of two strides equal the host's") {
  NEEDS_GPU();
  report r("batches");
  for (const auto& e :
       {std::vector<std::int64_t>{2, 3, 17, 16, 33}, {4, 4, 64, 32, 65}, {1, 5, 1, 8, 7}, {3, 2, 130, 70, 130}}) {
    // a batch, b heads, c queries, d width, e keys
    problem scores = contraction("acbd", "aebd", "abce", e);
    compare<einsum>(scores, r);
    problem mix = contraction("abce", "aebd", "acbd", e);
    compare<einsum>(mix, r);
    compare<einsum>(contraction("acbd", "abce", "aebd", e), r);
    scores.in[1] = values(sliced({e[0], e[4], e[1], e[3]}, 2, 3));
    scores.shift = 1;
    compare<einsum>(scores, r);
    variants<einsum, winding>(contraction("acbd", "aebd", "abce", e), r);
  }
}

// Beyond what our own product takes: cuBLASLt's epilogues, or the expression behind it.
TEST_CASE("large products with expressions equal the host's") {
  NEEDS_GPU();
  report r("large product");
  const std::vector<std::int64_t> e{608, 500, 450, 2, 304};
  REQUIRE(!cu::detail::small_product(608, 500, 450, 1, 1));
  const problem p = contraction("ac", "bc", "ab", e), turned = contraction("ac", "bc", "ba", e);
  const auto given = [&](const problem& of, std::initializer_list<layout> l, std::size_t shift = 0) {
    problem q = of;
    for (const layout& v : l) {
      q.in.push_back(values(v));
      q.in.back().shift = shift;
    }
    return q;
  };
  const layout whole = dense({608, 500}), bias = dense({500}), column = dense({608, 1}),
               other_way = stored({608, 500}, {1, 0});
  compare_followed<einsum, plus_one_value>(given(p, {bias}), r);
  compare_followed<einsum, plus_one_value>(given(p, {bias}, 1), r);  // not aligned
  compare_followed<einsum, plus_one_value>(given(p, {column}), r);
  compare_followed<einsum, plus_one_value>(given(p, {whole}), r);
  compare_followed<einsum, plus_one_value>(given(p, {whole}, 1), r);
  compare_followed<einsum, plus_one_value>(given(p, {sliced({608, 500}, 1, 12)}), r);
  compare_followed<einsum, plus_one_value>(given(p, {other_way}), r);
  compare_followed<einsum, plus_one_value>(given(p, {dense({})}), r);
  compare_followed<einsum, biased_relu>(given(p, {bias}), r);
  compare_followed<einsum, plus_two_values>(given(p, {bias, whole}), r);
  compare_followed<einsum, plus_two_values>(given(p, {whole, bias}), r);
  compare_followed<einsum, plus_two_values>(given(p, {whole, whole}), r);
  compare_followed<einsum, biased_gelu>(given(p, {bias, whole}), r);
  compare_followed<einsum, plus_one_value>(given(turned, {dense({608})}), r);
  compare_followed<einsum, plus_one_value>(given(turned, {dense({500, 608})}), r);
  compare_followed<einsum, plus_one_value>(given(turned, {dense({500, 1})}), r);
  // rows of two dims, along which a bias repeats but does not step as one
  const problem two = contraction("dec", "bc", "deb", e);
  compare_followed<einsum, plus_one_value>(given(two, {dense({304, 500})}), r);
  compare_followed<einsum, plus_one_value>(given(two, {dense({2, 304, 500})}), r);
  compare_followed<einsum, plus_one_value>(given(two, {bias}), r);
  const problem batch = contraction("dac", "dbc", "dab", e);
  compare_followed<einsum, plus_one_value>(given(batch, {bias}), r);
  problem sums = contraction("ca", "cb", "ab", e);
  sums.a.v[3] = 1;
  sums.in.push_back(values(dense({608})));
  compare<einsum>(sums, r);
}

// The values that TF32 and cuBLASLt's own gelu round to: 10 bits of each factor, and of gelu's tanh.
template <expression E>
void rough(const problem& from, report& r) {
  problem p = from;
  p.op = einsum;
  p.followed = static_cast<std::size_t>(E.operands());
  const outcome h = on_host<einsum, E>(p);
  const outcome d = on_device<float>(p, &cu::run_with<einsum, float, E>);
  double e = difference(d.out, h.out, p.unit);
  for (std::size_t k = 0; k < d.in.size(); ++k) e = std::max(e, difference(d.in[k], h.in[k], p.unit));
  r.most[0] = std::max(r.most[0], e);
  ++r.calls;
  CHECK(e <= 4e-3);
  CHECK(e > 1e-6);  // it was rounded: else nothing that is new here has run
}

TEST_CASE("large products of factors rounded to TF32, with gelu, its adjoint and sums beside them, are near the host's") {
  NEEDS_GPU();
  report r("TF32 product");
  device::get().ctx.plans->set_precision(sw::fp32_precision::tf32);
  const std::vector<std::int64_t> e{608, 512, 456, 2, 304};
  const auto given = [&](const problem& of, std::initializer_list<layout> l, std::size_t shift = 0) {
    problem q = of;
    for (const layout& v : l) {
      q.in.push_back(values(v));
      q.in.back().shift = shift;
    }
    return q;
  };
  const layout whole = dense({608, 512}), bias = dense({512});
  const problem p = contraction("ac", "bc", "ab", e), turned = contraction("ac", "bc", "ba", e);
  rough<biased_gelu>(given(p, {bias, whole}), r);
  rough<biased_gelu>(given(p, {bias, whole}, 1), r);                    // not aligned
  rough<biased_gelu>(given(p, {bias, sliced({608, 512}, 1, 8)}), r);    // gelu's operand with gaps
  rough<biased_gelu>(given(p, {bias, sliced({608, 512}, 1, 5)}), r);    // distances that cuBLASLt refuses
  rough<biased_gelu>(given(p, {bias, stored({608, 512}, {1, 0})}), r);  // stored the other way
  rough<biased_gelu>(given(turned, {dense({608}), dense({512, 608})}), r);
  rough<gelu_adjoint>(given(p, {whole}), r);
  rough<gelu_adjoint>(given(p, {sliced({608, 512}, 1, 8)}), r);
  rough<gelu_adjoint>(given(p, {bias}), r);  // broadcast
  rough<gelu_adjoint>(given(turned, {dense({512, 608})}), r);
  rough<plus_two_values>(given(p, {bias, whole}), r);
  // both ways round: the summed operand is either of cuBLASLt's two
  for (const char* out : {"ab", "ba"}) {
    problem sums = contraction("ca", "cb", out, e);
    sums.op = einsum;
    sums.a.v[3] = 1;
    sums.in.push_back(values(dense({608})));
    sums.unit *= 4;
    const outcome h = on_host<einsum>(sums), d = on_device<float>(sums);
    CHECK(difference(d.out, h.out, sums.unit) <= 4e-3);
    CHECK(difference(d.in[2], h.in[2], sums.unit) <= 4e-3);
  }
  // special values stay what they are
  problem special = given(p, {bias, whole});
  special.in[0].v[5] = std::nan("");
  rough<biased_gelu>(special, r);
  device::get().ctx.plans->set_precision(sw::fp32_precision::ieee);
  compare_followed<einsum, biased_gelu>(given(p, {bias, whole}), r);  // float again
}

TEST_CASE("embeddings with expressions equal the host's") {
  NEEDS_GPU();
  report r("embedding + expression");
  const struct {
    std::int64_t rows, width;
    extents places;
  } cases[] = {{1, 1, {1}}, {5, 3, {7}},     {33, 64, {5, 33}}, {65, 130, {300}},
               {50, 4, {}}, {50, 4, {0, 3}}, {7, 0, {3}},       {90, 48, {4, 50}}};
  for (const auto& c : cases) {
    extents out = c.places;
    out.push_back(c.width);
    const operand where = indices(dense(c.places), c.rows);
    for (const layout& table : {dense({c.rows, c.width}), sliced({c.rows, c.width}, 1, 4)}) {
      const problem p{embedding, {values(table), where}, dense(out)};
      variants<embedding, winding>(p, r);
    }
    problem dw{embedding_dw, {values(dense(out)), where}, dense({c.rows, c.width})};
    dw.a.v[0] = c.rows;
    variants<embedding_dw, winding>(dw, r);
  }
  // a block of a table's rows
  problem part{embedding_dw, {values(dense({5, 33, 8})), indices(dense({5, 33}), 40)}, shard(dense({10, 8}), 0, 3, 40)};
  part.a.v[0] = 40;
  variants<embedding_dw, winding>(part, r);
}

TEST_CASE("norms' adjoints with expressions, and both sums at once, equal the host's") {
  NEEDS_GPU();
  report r("norm + expression");
  for (const extents& e : {extents{7},
                           {5, 1},
                           {5, 33},
                           {3, 1025},
                           {0, 8},
                           {2, 3, 4, 64},
                           {300, 70},
                           {9000, 3},
                           {5000, 48},
                           {300, 768},
                           {40, 1024},
                           {65, 16}})
    for (int rms : {0, 1}) {
      extents stat(e.begin(), e.end() - 1);
      stat.push_back(2);
      const std::int64_t n = e.back();
      const operand stats = values(dense(stat), 0.25, 1), w = values(dense({n}));
      problem dx{norm_dx, {values(dense(e)), values(dense(e)), stats, w}, dense(e)};
      dx.a.v[0] = rms;
      variants<norm_dx, value_plus>(dx, r);
      if (n == 768 || n == 70) variants<norm_dx, winding>(dx, r);
      if (e.size() < 2) continue;
      problem both{norm_dw_db, {values(dense(e)), values(dense(e)), stats, values(dense({n}))}, dense({n})};
      both.a.v[0] = rms;
      compare<norm_dw_db>(both, r);
      both.in[0] = values(sliced(e, static_cast<int>(e.size()) - 1, 3));
      both.in[1] = values(sliced(e, 0, 2));
      compare<norm_dw_db>(both, r);
    }
  CHECK(device::get().tickets_are_zero());
}

TEST_CASE("sums of squares with expressions equal the host's") {
  NEEDS_GPU();
  report r("squares + expression");
  for (const extents& e : {extents{}, {0}, {5}, {1025}, {700, 1025}, {1 << 20}}) {
    problem p{sumsq, {values(dense(e))}, dense({})};
    p.a.v[0] = (std::int64_t{1} << e.size()) - 1;
    variants<sumsq, value_plus>(p, r);
  }
  problem rows{sumsq, {values(dense({33, 64}))}, dense({33})};
  rows.a.v[0] = 2;
  variants<sumsq, value_plus>(rows, r);
}

// Chains of additions, more than one launch holds, large ones among them.
template <class T>
void check_squares(int count, bool adds) {
  device& d = device::get();
  std::vector<call> calls(static_cast<std::size_t>(count));
  std::vector<T> host, squares(static_cast<std::size_t>(count));
  std::vector<std::size_t> at;
  for (int i = 0; i < count; ++i) {
    at.push_back(host.size());
    const std::size_t n = i % 40 == 7 ? 200000 : i % 9 == 4 ? 0 : 1 + static_cast<std::size_t>(i) * 131 % 3000;
    double total = 0;
    for (std::size_t k = 0; k < n; ++k) {
      host.push_back(static_cast<T>(uniform(-1, 1)));
      total += static_cast<double>(host.back()) * static_cast<double>(host.back());
    }
    call& c = calls[static_cast<std::size_t>(i)];
    c.a.v[0] = 1;
    c.inputs = c.all_inputs = 1;
    c.l[0] = dense({static_cast<std::int64_t>(n)});
    c.l[rt::result] = dense({});
    squares[static_cast<std::size_t>(i)] = static_cast<T>(total);
    if (adds && i > 0 && i % 5 != 3) {  // the one before, and that before it
      c.all_inputs = i > 1 && i % 2 == 0 ? 3 : 2;
      for (int k = 1; k < c.all_inputs; ++k) {
        c.l[k] = dense({});
        squares[static_cast<std::size_t>(i)] += squares[static_cast<std::size_t>(i - k)];
      }
    }
  }
  device_bytes x(host.size() * sizeof(T)), out(static_cast<std::size_t>(count) * sizeof(T)), scratch(16 << 20);
  x.upload(host.data());
  T* const results = static_cast<T*>(out.data());
  for (int i = 0; i < count; ++i) {
    call& c = calls[static_cast<std::size_t>(i)];
    c.p[0] = static_cast<T*>(x.data()) + at[static_cast<std::size_t>(i)];
    c.p[rt::result] = results + i;
    for (int k = 1; k < c.all_inputs; ++k) c.p[k] = results + (i - k);
    c.workspace = scratch.data();
  }
  cu::kernel<sumsq>::run_all<T>(calls.data(), calls.size(), d.ctx);
  d.sync();
  std::vector<T> got(static_cast<std::size_t>(count));
  out.download(got.data());
  double most = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(got[i]) - static_cast<double>(squares[i])) /
                              (1 + std::abs(static_cast<double>(squares[i]))));
  CHECK(most <= tolerance<T>);
  CHECK(out.intact());
  CHECK(d.tickets_are_zero());
}
TEST_CASE("sums of squares that go out together add each other's results") {
  NEEDS_GPU();
  for (const int count : {2, 5, 127, 128, 129, 300})
    for (const bool adds : {false, true}) {
      check_squares<float>(count, adds);
      check_squares<double>(count, adds);
    }
}

// --- launches -------------------------------------------------------------------------------------------------------

// A call on memory that nobody has filled: only its launches count.
template <class T, op_code Op, expression E = sw::no_expression>
int kernels_of_problem(problem p) {
  p.op = Op;
  p.followed = E.head != 0 ? static_cast<std::size_t>(E.operands()) : 0;
  call c = p.make_call();
  std::vector<std::unique_ptr<device_bytes>> memory;
  const auto room = [&](std::size_t n) {
    memory.push_back(std::make_unique<device_bytes>(n));
    return memory.back()->data();
  };
  for (std::size_t k = 0; k < p.in.size(); ++k) c.p[k] = room(storage(p.in[k].l) * sizeof(T));
  c.p[rt::result] = room(storage(p.out) * sizeof(T));
  c.workspace = room(64 << 20);
  cu::launcher start = cu::launcher_of<T>(Op);
  if constexpr (E.head != 0) start = &cu::run_with<Op, T, E>;
  start(c, device::get().ctx);  // code is loaded, plans are made
  device::get().sync();
  return kernels_of(start, c);
}

template <class T>
void check_one_launch() {
  const auto biased = [](problem p) {
    p.in.push_back(values(dense({p.out.ext[p.out.rank - 1]})));
    return p;
  };
  const problem linear = contraction("abc", "dc", "abd", {4, 128, 64, 256});
  CHECK(kernels_of_problem<T, einsum, plus_one_value>(biased(linear)) == 1);
  problem gelu = biased(linear);
  gelu.in.push_back(values(linear.out));
  CHECK(kernels_of_problem<T, einsum, biased_gelu>(gelu) == 1);
  problem gradient = contraction("abc", "abd", "cd", {4, 128, 256, 64});
  gradient.a.v[3] = 1;
  gradient.in.push_back(values(dense({256})));
  CHECK(kernels_of_problem<T, einsum>(gradient) == 1);
  CHECK(kernels_of_problem<T, einsum>(contraction("acbd", "aebd", "abce", {4, 4, 128, 32, 128})) == 1);
  problem dx{norm_dx, {}, dense({4, 128, 64})};
  for (const extents& e : {extents{4, 128, 64}, {4, 128, 64}, {4, 128, 2}, {64}, {4, 128, 64}})
    dx.in.push_back(values(dense(e), 0.5, 1));
  CHECK(kernels_of_problem<T, norm_dx, value_plus>(dx) == 1);
  problem both{norm_dw_db, {}, dense({64})};
  for (const extents& e : {extents{40, 128, 64}, {40, 128, 64}, {40, 128, 2}, {64}})
    both.in.push_back(values(dense(e), 0.5, 1));
  CHECK(kernels_of_problem<T, norm_dw_db>(both) == 1);
  problem total{sum, {values(dense({1 << 20}))}, dense({})};
  total.a.v[0] = 1;
  CHECK(kernels_of_problem<T, sum>(total) == 1);
  problem norm{vector_norm, {values(dense({1 << 20}))}, dense({})};
  norm.a = {{1, 0, 2, 0, 0, 0}};
  CHECK(kernels_of_problem<T, vector_norm>(norm) == 1);
}
TEST_CASE("an expression, a second sum, a cut reduction and a second batch dim are no launches of their own") {
  NEEDS_GPU();
  check_one_launch<float>();
  check_one_launch<double>();
}

}  // namespace device_epilogues
