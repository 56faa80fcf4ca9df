// SPDX-License-Identifier: Apache-2.0
// Device kernels of joins, indexing, paddings, positions and random fills against the host's, on dense, turned and cut
// operands; and products of broadcast operands, which cuBLASLt cannot read in place.
#include "device.hpp"

// Named: nvcc reads CUDA's own headers after the source, and there the names of operations would hide functions.
namespace device_families {

using namespace device_test;
using enum op_code;

std::vector<layout> layouts_of(const extents& e) {
  std::vector<layout> all{dense(e)};
  if (e.size() >= 2) {
    extents turned;
    for (std::size_t d = e.size(); d-- > 0;) turned.push_back(static_cast<std::int64_t>(d));
    all.push_back(stored(e, turned));
    all.push_back(sliced(e, static_cast<int>(e.size()) - 1, 3));
  }
  return all;
}
problem at(problem p, std::int64_t v0, std::int64_t v1 = 0) {
  p.a.v[0] = v0;
  p.a.v[1] = v1;
  return p;
}

TEST_CASE("cat, constant_pad, triangle, arange equal the host's") {
  NEEDS_GPU();
  report r("joins and frames");
  for (const extents& e : {extents{5, 33}, {64, 128}, {3, 0}, {1, 1025}})
    for (const layout& l : layouts_of(e)) {
      for (const int dim : {0, 1}) {
        extents out = e;
        out[static_cast<unsigned>(dim)] *= 3;
        compare<cat>(at(problem{cat, {values(l), values(dense(e)), values(l)}, dense(out)}, dim), r);
      }
      problem p{constant_pad, {values(l)}, dense({e[0] + 1, e[1] + 5})};
      p.a.v[0] = std::int64_t{1} << 32;
      p.a.v[1] = 2 | std::int64_t{3} << 32;
      p.f = 1.5;
      compare<constant_pad>(p, r);
      for (const std::int64_t diagonal : {-2, 0, 3})
        for (const std::int64_t upper : {0, 1}) {
          compare<triangle>(at(problem{triangle, {values(l)}, dense(e)}, diagonal, upper), r);
          compare<triangle>(at(problem{triangle, {values(l)}, shard(dense(e), 0, 7, 100)}, diagonal, upper), r);
        }
    }
  compare<arange>(at(problem{arange, {}, shard(dense({1000}), 0, 500, 4000)}, 3, -2), r);
}

TEST_CASE("gather, scatter, index_select and their adjoints equal the host's, repeated indices too") {
  NEEDS_GPU();
  report r("indexing");
  for (const int dim : {0, 1})
    for (const extents& e : {extents{6, 33}, {40, 9}, {300, 5}})
      for (const layout& l : layouts_of(e)) {
        const auto along = static_cast<unsigned>(dim);
        extents some = e;
        some[along] = 7;
        for (const layout& ids : layouts_of(some)) {
          const operand index = indices(ids, e[along]);
          compare<gather>(at(problem{gather, {values(l), index}, dense(some)}, dim), r);
          compare<scatter>(at(problem{scatter, {values(l), index, values(dense(some))}, dense(e)}, dim), r);
          problem number = at(problem{scatter, {values(l), index}, dense(e)}, dim);
          number.f = 2.5;
          compare<scatter>(number, r);
          compare<scatter_dsrc>(at(problem{scatter_dsrc, {values(l), index}, dense(some)}, dim), r);
        }
        extents sums = e;
        sums[along] = 11;
        compare<scatter_add>(at(problem{scatter_add, {values(l), indices(dense(e), 11)}, dense(sums)}, dim, 11), r);
        compare<index_add>(at(problem{index_add, {values(l), indices(dense({e[along]}), 11)}, dense(sums)}, dim, 11), r);
        compare<index_select>(at(problem{index_select, {values(l), indices(dense({7}), e[along])}, dense(some)}, dim), r);
      }
  compare<one_hot>(at(problem{one_hot, {indices(stored({5, 33}, {1, 0}), 9)}, dense({5, 33, 9})}, 9), r);

  device& d = device::get();
  problem bad = at(problem{gather, {values(dense({4, 5})), indices(dense({4, 3}), 5)}, dense({4, 3})}, 1);
  bad.in[1].index[7] = 5;
  d.clear_fault();
  on_device<float>(bad);
  CHECK(d.fault().node == 7);
  CHECK(d.fault().index == 5);
  CHECK(d.fault().limit == 5);
  d.clear_fault();
}

TEST_CASE("random fills draw the host's numbers, by element and by offset") {
  NEEDS_GPU();
  report r("random fills");
  for (const auto policy : {sw::random_policy::by_element, sw::random_policy::by_offset})
    for (const extents& e : {extents{}, {33}, {5, 33}, {1025, 7}}) {
      const layout out = e.empty() ? dense(e) : shard(dense(e), 0, 3, e[0] + 9);
      const auto drawn = [&](problem p) {
        p.env.seed = 9;
        p.env.step = 4;
        p.env.random = policy;
        p.a.v[0] = 2;
        return p;
      };
      compare<op_code::rand>(drawn(problem{op_code::rand, {}, out}), r);
      compare<randn>(drawn(problem{randn, {}, out}), r);
      for (const layout& l : layouts_of(e)) {
        compare<bernoulli>(drawn(problem{bernoulli, {values(l, 0, 1)}, out}), r);
        problem p = drawn(problem{dropout, {values(l, 1, 2)}, out});
        p.f = 0.25;
        compare<dropout>(p, r);
      }
    }
}

TEST_CASE("products of broadcast operands") {
  NEEDS_GPU();
  report r("broadcast products");
  for (const int still : {0, 1}) {  // the dim along which lhs, or rhs, does not move
    layout x = dense({5, 33}), y = dense({33, 7});
    x.str[still] = 0;
    x.str[1 - still] = 1;
    y.str[still] = 0;
    y.str[1 - still] = 1;
    const sw::op_attr labels{{0x21, 0x32, 0x31, 0, 0, 0}};
    problem p{einsum, {values(x), values(dense({33, 7}))}, dense({5, 7}), labels, 1};
    p.unit = 4;
    compare<einsum>(p, r);
    p.in = {values(dense({5, 33})), values(y)};
    compare<einsum>(p, r);
    p.in = {values(x), values(y)};
    compare<einsum>(p, r);
  }
}

}  // namespace device_families
