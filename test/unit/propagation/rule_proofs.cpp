// SPDX-License-Identifier: Apache-2.0
// Counts the proofs of each operation's rule, names those without one, and runs the law where constants would be too
// many.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed"  // kernels ask for vectors, which integers modulo a prime do not fill
#endif

#include <laws/rule_cases.hpp>

#include <shardwise/vocabulary/axis.hpp>

#include <doctest/doctest.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

using namespace shardwise;
using namespace shardwise::laws;

struct two_ranks : axis<2> {};

constexpr int ops = static_cast<int>(op_code::count);

std::string text_of(const program& p, const placing& at, const ranks_of& mesh) {
  std::string s = name_of(p.last().op);
  for (int k = 0; k < p.leaf_count; ++k) {
    s += k ? ", (" : " (";
    for (int d = 0; d < p.leaves[k].rank; ++d) s += (d ? "," : "") + std::to_string(p.leaves[k].extent[d]);
    s += ")";
    for (int a = 0; a < mesh.axes; ++a) {
      const placement& q = at.at[k][a];
      s += q.is_replicate() ? " R" : q.is_reduced() ? " U" : q.is_partial() ? " P" : " S" + std::to_string(q.dim);
      if (q.is_strided()) s += "after" + std::to_string(q.factor);
      if (q.is_shard() && q.block > 1) s += "/" + std::to_string(q.block);
    }
  }
  return s + " on " + std::to_string(mesh.size[0]) + "x" + std::to_string(mesh.size[1]) + " ranks";
}

int run_all(const program& p, int ranks, const reference& one_device) {
  const placings all = placings_of(p, ranks);
  const ranks_of mesh{1, {ranks, 1, 1, 1}};
  for (const placing& at : all) {
    INFO(text_of(p, at, mesh));
    CHECK(static_cast<int>(prove(p, at, mesh, one_device)) == static_cast<int>(failure::none));
  }
  return all.count;
}

template <class Optimizer, class W, class X>
int run_update_on() {
  CHECK(static_cast<int>(prove_update<Optimizer, W, X, 2>()) == 0);
  CHECK(static_cast<int>(prove_update<Optimizer, W, X, 3>()) == 0);
  return 2;
}
template <class Optimizer>
int run_updates() {
  return run_update_on<Optimizer, replicate, replicate>() + run_update_on<Optimizer, reduced, reduced>() +
         run_update_on<Optimizer, reduced, shard<0>>() + run_update_on<Optimizer, shard<0>, shard<2>>() +
         run_update_on<Optimizer, shard<1>, shard<1>>();
}

}  // namespace

TEST_CASE("every operation's rule is proved, or its reason is listed") {
  int rows[ops]{}, adjoints[ops]{}, total = 0;
  for (const program& p : cases) {
    const reference one_device = solve(p);
    REQUIRE(static_cast<int>(one_device.wrong) == static_cast<int>(failure::none));
    for (int ranks : {2, 3}) {
      const int n = run_all(p, ranks, one_device);
      CHECK_MESSAGE(n > 0, name_of(p.last().op));
      rows[static_cast<int>(p.last().op)] += n;
      total += n;
      for (int o = 0; o < ops; ++o) adjoints[o] += one_device.used[o] ? n : 0;
    }
  }
  for (int ranks : {2, 3}) {
    CHECK(static_cast<int>(ranks == 2 ? prove_seed<replicate, 2>() : prove_seed<replicate, 3>()) == 0);
    CHECK(static_cast<int>(ranks == 2 ? prove_seed<reduced, 2>() : prove_seed<reduced, 3>()) == 0);
    CHECK(static_cast<int>(ranks == 2 ? prove_seed<partial<>, 2>() : prove_seed<partial<>, 3>()) == 0);
    rows[static_cast<int>(op_code::fill)] += 3;
  }
  for (const fill_case& c : fills)
    for (int ranks : {2, 3}) {
      CHECK(prove_fills(c, ranks) == 2 + c.shape.rank);
      rows[static_cast<int>(c.op)] += prove_fills(c, ranks);
    }
  rows[static_cast<int>(op_code::sgd)] += run_updates<sgd<>>() + run_updates<sgd<true>>();
  rows[static_cast<int>(op_code::adam)] +=
      run_updates<adam<>>() + run_updates<adamw<true>>() + run_updates<clip_norm<adam<>>>();
  rows[static_cast<int>(op_code::sgd_with)] +=
      run_updates<sgd<true, sgd_form::dampened>>() + run_updates<clip_value<sgd<>>>();
  rows[static_cast<int>(op_code::adam_with)] += run_updates<amsgrad<adam<>>>() + run_updates<maximize<adamw<>>>();
  rows[static_cast<int>(op_code::lion)] += run_updates<clip_norm<lion<>>>();

  std::printf("proved placements, as the last operation of a program and inside an adjoint:\n");
  for (int o = 0; o < ops; ++o) {
    const op_code op = static_cast<op_code>(o);
    const char* reason = nullptr;
    for (const exemption& e : unproved)
      if (e.op == op) reason = e.reason;
    if (reason) std::printf("  %-14s without proof: %s\n", name_of(op), reason);
    else std::printf("  %-14s %4d %4d\n", name_of(op), rows[o], adjoints[o]);
    CHECK_MESSAGE((rows[o] + adjoints[o] > 0) == (reason == nullptr), name_of(op));
    if (op != op_code::expand && !reason)
      CHECK_MESSAGE(rows[o] > 0, name_of(op));  // expand is placed by the sum it is the adjoint of
  }
  std::printf("  total          %4d\n", total);
}

// What the sweep makes of each operation: the proofs above show that those that are pulled give their operands cotangents.
TEST_CASE("every operation is differentiated, constant, or refused by its name") {
  int entries[4]{};
  for (int o = 0; o < ops; ++o) {
    const op_code op = static_cast<op_code>(o);
    INFO(name_of(op));
    const autodiff::adjoint a = autodiff::adjoint_of(op);
    ++entries[static_cast<int>(a)];
    bool any = false;
    for (int k = 0; k < max_inputs; ++k) any = any || autodiff::differentiable(op, k);
    CHECK(any == (a == autodiff::adjoint::pulled || a == autodiff::adjoint::refused));
    if (a != autodiff::adjoint::refused && op != op_code::opaque) continue;  // of which it depends on the user's function
    graph<8, 8> g;
    static constexpr opaque_operation without_adjoint{};
    g.functions[0] = &without_adjoint;
    builder b = g.edit();
    node n = empty_node;
    n.spec = b.intern(spec_of<float, shape<4>, mesh<two_ranks>, replicate>::value);
    n.op = op_code::param;
    b.append(n);
    n.op = op;
    n.inputs = 1;
    n.in[0] = 0;
    b.append(n);
    n.op = op_code::fill;
    n.inputs = 0;
    b.append(n);
    int cotangent[] = {-1, 2, -1};
    const unsigned char needs[] = {1, 1, 0};
    autodiff::tape t;
    t.b = b;
    t.cotangent = cotangent;
    t.needs = needs;
    autodiff::pull(t, 1);
    CHECK(t.b.error.operand == 1);
    CHECK(static_cast<int>(t.b.error.what) ==
          static_cast<int>(op == op_code::opaque ? problem::opaque_gradient : problem::gradient_missing));
    if (op != op_code::opaque) CHECK(t.b.error.have == o);
    CHECK(cotangent[0] == -1);
    CHECK(t.b.node_count == 3);
  }
  CHECK(entries[static_cast<int>(autodiff::adjoint::pulled)] > 50);
}

// Whether a program is legal may depend on how many ranks there are, but one rank, which splits nothing, may do all.
TEST_CASE("what a rule admits on several ranks it admits on an axis of one, alone and beside others") {
  int proved = 0;
  for (const program& p : cases) {
    const reference one_device = solve(p);
    const placings first = placings_of(p, 2);
    for (int ranks : {2, 3, 4, 5})
      for (const placing& at : placings_of(p, ranks)) {
        const ranks_of one{1, {1, 1, 1, 1}};
        INFO(text_of(p, at, one));
        CHECK(static_cast<int>(prove(p, at, one, one_device)) == static_cast<int>(failure::none));
        ++proved;
        for (const placing& a : first) {  // the axis of one splits what another axis splits, too
          const ranks_of mesh{2, {2, 1, 1, 1}};
          const placing both = both_axes(a, at);
          INFO(text_of(p, both, mesh));
          CHECK(static_cast<int>(prove(p, both, mesh, one_device)) == static_cast<int>(failure::none));
        }
      }
  }
  CHECK(proved > 2000);
}

TEST_CASE("rules of two mesh axes combine freely") {
  int proved = 0;
  for (const program& p : cases) {
    const reference one_device = solve(p);
    for (int ranks : {2, 3}) {
      const ranks_of mesh{2, {2, ranks, 1, 1}};
      const placings first = placings_of(p, 2), second = placings_of(p, ranks);
      for (const placing& a : first)
        for (const placing& b : second) {
          const placing at = both_axes(a, b);
          if (!admits(p, at, mesh)) continue;
          INFO(text_of(p, at, mesh));
          CHECK(static_cast<int>(prove(p, at, mesh, one_device)) == static_cast<int>(failure::none));
          ++proved;
        }
    }
  }
  CHECK(proved > 5000);
}

// Where both axes shard one dim of an operand, the first may split it after the second.
TEST_CASE("rules keep the order in which two mesh axes split a dim") {
  int proved = 0;
  bool reached[ops]{};
  for (const program& p : cases) {
    const reference one_device = solve(p);
    for (int ranks : {2, 3}) {
      const ranks_of mesh{2, {2, ranks, 1, 1}};
      const placings first = placings_of(p, 2), second = placings_of(p, ranks);
      for (const placing& a : first)
        for (const placing& b : second) {
          placing at = both_axes(a, b);
          bool strided = false;
          for (int k = 0; k < p.leaf_count; ++k) {
            placement& q = at.at[k][0];
            if (!q.is_shard() || !at.at[k][1].is_shard(q.dim)) continue;
            q = strided_shard_value(q.dim, ranks, q.block);
            strided = true;
          }
          if (!strided || !admits(p, at, mesh)) continue;
          INFO(text_of(p, at, mesh));
          CHECK(static_cast<int>(prove(p, at, mesh, one_device)) == static_cast<int>(failure::none));
          reached[static_cast<int>(p.last().op)] = true;
          ++proved;
        }
    }
  }
  CHECK(proved > 500);
  for (op_code op : {op_code::einsum, op_code::add, op_code::sum, op_code::softmax, op_code::norm_apply, op_code::embedding,
                     op_code::nll, op_code::permute, op_code::reshape, op_code::redistribute, op_code::vector_norm})
    CHECK_MESSAGE(reached[static_cast<int>(op)], name_of(op));
}

TEST_CASE("reshape keeps every rank's elements, for all small shapes, blocks and placements that it admits") {
  std::vector<leaf> shapes[25];
  for (int a = 1; a <= 24; ++a) {
    shapes[a].push_back(tensor_of({a}));
    for (int b = 1; a * b <= 24; ++b) {
      shapes[a * b].push_back(tensor_of({a, b}));
      for (int c = 1; a * b * c <= 24; ++c) shapes[a * b * c].push_back(tensor_of({a, b, c}));
    }
  }
  int proved = 0;
  for (int n : {5, 6, 8, 12, 15, 24})
    for (const leaf& from : shapes[n])
      for (const leaf& to : shapes[n]) {
        const program p = apply(op_code::reshape, {from}, shardwise::pack_extents(to.extent, to.rank));
        const reference one_device = solve(p);
        for (std::int32_t block : {2, 3, 4})
          for (int ranks : {2, 3, 4}) proved += run_all(p.blocks(block), ranks, one_device);
      }
  CHECK(proved > 10000);
}
