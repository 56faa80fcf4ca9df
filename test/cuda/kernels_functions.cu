// SPDX-License-Identifier: Apache-2.0
// Device kernels of elementwise functions, comparisons, reductions other than sums, searches and sharded classes equal
// the host's on the same call, in float and double, on awkward extents and strides.
#include "device.hpp"

namespace {

using namespace device_test;

const extents sizes[] = {{}, {0}, {1}, {33}, {1025}, {4099}, {33, 64}, {7, 0, 3}, {5, 3, 33}, {2, 3, 4, 5, 8}};

// Layouts of one logical shape: dense, stored backwards, sliced from a larger one.
std::vector<layout> layouts(const extents& e) {
  std::vector<layout> v{dense(e)};
  if (e.size() < 2) return v;
  extents back;
  for (std::size_t i = e.size(); i-- > 0;) back.push_back(static_cast<std::int64_t>(i));
  v.push_back(stored(e, back));
  v.push_back(sliced(e, static_cast<int>(e.size()) - 1, 3));
  v.push_back(sliced(e, 0, 2));
  return v;
}

// Few different values, so that many are equal.
operand ties(const layout& l) {
  operand o = values(l);
  for (double& v : o.v) v = std::floor(2 * v) / 2;
  return o;
}

template <op_code Op>
void unary(report& r, double low, double high, double f = 0) {
  for (const extents& e : sizes)
    for (const layout& l : layouts(e)) {
      problem p{Op, {values(l, low, high)}, dense(e)};
      p.f = f;
      compare<Op>(p, r);
    }
}

template <op_code Op>
void binary(report& r) {
  for (const extents& e : sizes) {
    const auto all = layouts(e);
    for (std::size_t i = 0; i < all.size(); ++i)
      compare<Op>(problem{Op, {ties(all[i]), ties(all[all.size() - 1 - i])}, dense(e)}, r);
  }
  const struct {
    extents x, y, o;
  } broadcast[] = {
      {{5, 33}, {33}, {5, 33}}, {{64}, {5, 1}, {5, 64}}, {{5, 64}, {}, {5, 64}}, {{3, 1, 8}, {1, 5, 1}, {3, 5, 8}}};
  for (const auto& c : broadcast) compare<Op>(problem{Op, {ties(dense(c.x)), ties(dense(c.y))}, dense(c.o)}, r);
  problem p{Op, {ties(dense({40})), ties(dense({40}))}, dense({40})};
  for (std::size_t i = 0; i < 40; i += 3) p.in[i % 2].v[i] = std::nan("");
  compare<Op>(p, r);
}

template <op_code Op>
void over_dims(report& r) {
  const struct {
    extents e;
    int mask;
  } cases[] = {
      {{}, 0},           {{5}, 1},       {{0, 5}, 1},   {{5, 0}, 2},       {{(1 << 20) + 3}, 1}, {{1024, 300}, 3},
      {{3000, 33}, 1},   {{5, 9000}, 2}, {{33, 64}, 2}, {{16, 33, 17}, 5}, {{16, 33, 17}, 2},    {{4, 5, 6, 7, 8}, 21},
      {{2, 4000, 16}, 2}};
  for (const auto& c : cases)
    for (const layout& l : layouts(c.e)) {
      extents out = c.e;
      for (int d = 0; d < l.rank; ++d)
        if ((c.mask >> d) & 1) out[static_cast<unsigned>(d)] = 1;
      // factors near 1 keep products of many in range
      problem p{Op, {Op == op_code::prod ? values(l, 0.999, 1.001) : ties(l)}, dense(out)};
      p.a.v[0] = c.mask;
      compare<Op>(p, r);
    }
}

}  // namespace

TEST_CASE("elementwise functions equal the host's") {
  NEEDS_GPU();
  report r("functions");
  unary<op_code::abs>(r, -4, 4);
  unary<op_code::sign>(r, -4, 4);
  unary<op_code::exp>(r, -4, 4);
  unary<op_code::log>(r, 0.1, 4);
  unary<op_code::sqrt>(r, 0, 4);
  unary<op_code::rsqrt>(r, 0.1, 4);
  unary<op_code::reciprocal>(r, 0.1, 4);
  unary<op_code::sigmoid>(r, -9, 9);
  unary<op_code::sin>(r, -9, 9);
  unary<op_code::cos>(r, -9, 9);
  unary<op_code::pow>(r, 0.1, 3, 2.5);
  unary<op_code::clamp_min>(r, -2, 2, 0.25);
  unary<op_code::clamp_max>(r, -2, 2, 0.25);
}

TEST_CASE("functions of two tensors, comparisons and masks equal the host's") {
  NEEDS_GPU();
  report r("pairs");
  binary<op_code::div>(r);
  binary<op_code::maximum>(r);
  binary<op_code::minimum>(r);
  binary<op_code::wins>(r);
  binary<op_code::keeps>(r);
  binary<op_code::eq>(r);
  binary<op_code::ne>(r);
  binary<op_code::lt>(r);
  binary<op_code::le>(r);
  binary<op_code::gt>(r);
  binary<op_code::ge>(r);
  for (const extents& e : sizes)
    for (const layout& l : layouts(e)) {
      compare<op_code::where>(problem{op_code::where, {indices(l, 2), values(dense(e)), values(l)}, dense(e)}, r);
      for (const int zero_where : {0, 1}) {
        problem p{op_code::mask_keep, {values(l), indices(dense(e), 2)}, dense(e)};
        p.a.v[0] = zero_where;
        compare<op_code::mask_keep>(p, r);
      }
    }
  compare<op_code::where>(
      problem{op_code::where, {indices(dense({64}), 2), values(dense({5, 1})), values(dense({}))}, dense({5, 64})}, r);
}

TEST_CASE("largest, smallest, product and its adjoint equal the host's") {
  NEEDS_GPU();
  report r("extremes");
  over_dims<op_code::amax>(r);
  over_dims<op_code::amin>(r);
  over_dims<op_code::prod>(r);
  for (const extents& e : {extents{7}, {5, 33}, {3, 4, 5}})
    for (const layout& l : layouts(e))
      for (int mask = 1; mask < 1 << l.rank; ++mask) {
        extents out = e;
        for (int d = 0; d < l.rank; ++d)
          if ((mask >> d) & 1) out[static_cast<unsigned>(d)] = 1;
        problem p{op_code::prod_dx, {values(dense(out)), ties(l)}, dense(e)};
        p.a.v[0] = mask;
        compare<op_code::prod_dx>(p, r);
      }
}

TEST_CASE("log_softmax, and cross entropy of a shard of the classes with ignored rows, equal the host's") {
  NEEDS_GPU();
  report r("classes");
  for (const extents& e : {extents{5}, {5, 1}, {5, 33}, {3, 1024}, {3, 1025}, {2, 50257}, {0, 8}, {2, 3, 4, 64}})
    for (const layout& l : layouts(e)) {
      const extents rows(e.begin(), e.end() - 1);
      const int last = l.rank - 1;
      const std::int64_t n = e.back(), classes = 3 * n + 5;
      compare<op_code::log_softmax>(problem{op_code::log_softmax, {values(l, -30, 30)}, dense(e)}, r);
      compare<op_code::exp_sum>(problem{op_code::exp_sum, {values(l), values(dense(rows), 2, 3)}, dense(rows)}, r);
      for (const std::int64_t origin : {std::int64_t{0}, n, 2 * n})
        for (const int ignores : {0, 1}) {
          const layout own = shard(l, last, origin, classes);
          operand target = indices(dense(rows), classes);
          for (std::size_t i = 0; ignores && i < target.index.size(); i += 2) target.index[i] = -100;
          problem p{op_code::nll, {values(own), values(dense(rows), 4, 8), target}, dense(rows)};
          p.a = {{ignores, -100, 0, 0, 0, 0}};
          compare<op_code::nll>(p, r);
          problem back{
              op_code::nll_dx, {values(dense(rows)), p.in[0], p.in[1], target}, shard(dense(e), last, origin, classes)};
          back.a = p.a;
          compare<op_code::nll_dx>(back, r);
        }
    }
  // a rank without classes
  problem p{op_code::nll, {values(shard(dense({5, 0}), 1, 8, 8)), values(dense({5})), indices(dense({5}), 8)}, dense({5})};
  compare<op_code::nll>(p, r);
  compare<op_code::exp_sum>(problem{op_code::exp_sum, {p.in[0], p.in[1]}, dense({5})}, r);
}

TEST_CASE("topk, take and its adjoint equal the host's") {
  NEEDS_GPU();
  report r("topk");
  for (const extents& e : {extents{5}, {5, 1}, {5, 33}, {3, 1024}, {3, 1025}, {2, 20000}, {0, 8}, {2, 3, 4, 64}})
    for (const layout& l : layouts(e))
      for (const int smallest : {0, 1}) {
        extents found = e;
        found.back() = std::min<std::int64_t>(e.back(), 5);
        problem p{op_code::topk, {ties(l)}, dense(found)};
        p.a = {{found.back(), smallest, 0, 0, 0, 0}};
        compare<op_code::topk>(p, r);
        const operand where = indices(dense(found), e.back());
        compare<op_code::take>(problem{op_code::take, {values(l), where}, dense(found)}, r);
        compare<op_code::take_dx>(problem{op_code::take_dx, {values(dense(found)), where}, dense(e)}, r);
      }
  problem p{op_code::topk, {ties(dense({2, 40}))}, dense({2, 3})};
  p.a.v[0] = 3;
  for (std::size_t i = 3; i < 40; i += 9) p.in[0].v[i] = std::nan("");
  for (std::size_t i = 40; i < 80; ++i) p.in[0].v[i] = -HUGE_VAL;
  for (const int order : {0, 1, 2}) {  // NaNs first, last, first
    p.a.v[1] = order;
    compare<op_code::topk>(p, r);
  }
  // fewer numbers than are asked for
  for (std::size_t i = 1; i < 80; ++i) p.in[0].v[i] = std::nan("");
  for (const int order : {0, 1, 2}) {
    p.a.v[1] = order;
    compare<op_code::topk>(p, r);
  }
}
