// SPDX-License-Identifier: Apache-2.0
// The buckets of fused gradient reductions: counts that follow from the rule for stacks of linear layers.
#include <shardwise/pass/communication/buckets.hpp>
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>

namespace {

namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

template <int Layers, int Dim>
struct stack {
  template <class Bound = sw::unbound>
  struct block : sw::module<block<Bound>, Bound> {
    using linear = sw::linear<Dim, Dim>;
    SHARDWISE_MEMBERS(Bound, (linear, net));
    constexpr auto forward(const auto& x) const { return sw::relu(net(x)); }
  };
  template <class Bound = sw::unbound>
  struct model : sw::module<model<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::repeat<Layers, block>, layers));
    constexpr auto forward(const auto& x) const { return layers(x); }
  };
};

// The reductions of a step in which layer by layer, from the last one, a weight's gradient and a bias's are summed.
template <int Layers>
constexpr auto reductions(std::int64_t dim, bool weight_first) {
  sw::graph<12 * Layers, 8> g;
  sw::builder b = g.edit();
  for (int k = 0; k < 2 * Layers; ++k) {
    const bool weight = (k % 2 == 0) == weight_first;
    const std::int32_t sizes[] = {2};
    sw::spec s = sw::empty_spec(sw::dtype::f32, 1, sizes, sw::device_kind::host);
    s.rank = weight ? 2 : 1;
    for (int d = 0; d < s.rank; ++d) s.extent[d] = dim;
    sw::make_contiguous(s);
    sw::node n = sw::empty_node;
    n.op = sw::op_code::param;
    n.a.v[0] = k;
    n.spec = b.intern(s);
    const int parameter = b.append(n);
    s.place[0] = sw::partial_value();
    n.op = sw::op_code::input;
    n.spec = b.intern(s);
    const int gradient = b.append(n);
    s.place[0] = sw::replicate_value();
    n = {};
    n.op = sw::op_code::redistribute;
    n.inputs = 1;
    n.in[0] = gradient;
    n.spec = b.intern(s);
    const int sum = b.append(n);
    n = {};
    n.op = sw::op_code::sgd;
    n.inputs = 2;
    n.in[0] = parameter;
    n.in[1] = sum;
    n.spec = b.nodes[parameter].spec;
    b.append(n);
    n = {};  // a reduction that no update waits for
    n.op = sw::op_code::redistribute;
    n.inputs = 1;
    n.in[0] = gradient;
    n.spec = b.intern(s);
    b.append(n);
  }
  g.finish(b);
  return g;
}

template <class Plan>
constexpr bool sizes_are(const Plan& p, std::initializer_list<int> counts) {
  if (p.count != static_cast<int>(counts.size())) return false;
  int k = 0, first = 0;
  for (const int n : counts) {
    if (p.bucket[k].count != n || p.bucket[k].first != first) return false;
    first += n;
    ++k;
  }
  return first == p.items;
}

template <int Layers>
constexpr auto buckets(std::int64_t dim, bool weight_first, std::int64_t cap = 100 * sw::mebibyte) {
  return sw::comm_fusion_buckets(reductions<Layers>(dim, weight_first), 0, cap);
}

// 5 layers of 4096: {w4} {b4 w3 b3 w2} {b2 w1 b1 w0} {b0}, or {b4 w4} {b3 w3 b2 w2} {b1 w1 b0 w0}.
static_assert(sizes_are(buckets<5>(4096, true), {1, 4, 4, 1}));
static_assert(sizes_are(buckets<5>(4096, false), {2, 4, 4}));
static_assert(buckets<5>(4096, true).bucket[0].bytes == 67'108'864);
static_assert(buckets<5>(4096, true).bucket[1].bytes == 2 * 67'108'864 + 2 * 16'384);
static_assert(buckets<5>(4096, true).bucket[3].bytes == 16'384);
// 2 layers of 4096: two, whatever the order.
static_assert(sizes_are(buckets<2>(4096, true), {1, 3}));
static_assert(sizes_are(buckets<2>(4096, false), {2, 2}));
// 2 layers of 100: 80,800 bytes are less than 1 MiB, one remainder.
static_assert(sizes_are(buckets<2>(100, true), {4}));
static_assert(buckets<2>(100, true).bucket[0].bytes == 80'800);
// Buckets are the reductions in order, each in one, and hold what those have.
constexpr bool cover(std::int64_t dim, std::int64_t cap, std::int64_t first) {
  const auto g = reductions<5>(dim, true);
  const auto plan = sw::comm_fusion_buckets(g, 0, cap, first);
  int at = 0;
  for (int k = 0; k < plan.count; ++k) {
    const sw::fusion_bucket& b = plan.bucket[k];
    std::int64_t bytes = 0, before_last = 0;
    if (b.first != at || b.count < 1) return false;
    for (; at < b.first + b.count; ++at) {
      before_last = bytes;
      bytes += sw::numel(g.spec_of(plan.item[at])) * 4;
    }
    const std::int64_t bound = k == 0 ? first : cap;
    if (b.bytes != bytes || before_last >= bound || (k + 1 < plan.count && bytes < bound)) return false;
  }
  return at == plan.items && plan.items == 10;
}
static_assert(cover(100, 40'400, 40'000) && cover(100, 1, 1) && cover(7, 500, 200) && cover(4096, 100 * sw::mebibyte, 1));
// The bound itself closes a bucket; no reduction, no bucket; another axis has none.
static_assert(sizes_are(sw::comm_fusion_buckets(reductions<2>(100, true), 0, 40'400, 40'000), {1, 2, 1}));
static_assert(sw::comm_fusion_buckets(sw::graph<4, 4>{}, 0).count == 0);
static_assert(sw::comm_fusion_buckets(reductions<2>(100, true), 1).count == 0);

template <int Layers, int Dim>
struct stack_task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, Dim>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(m(x)); }
};
template <int Layers, int Dim>
using step =
    sw::train_step<stack<Layers, Dim>::template model, stack_task<Layers, Dim>, sw::plan<sw::data_parallel<dp>>, mesh>;

TEST_CASE("spmd passes: buckets of a training step's gradients") {
  const auto two = sw::comm_fusion_buckets(step<2, 4096>::program, 0);
  CHECK(two.items == 4);
  CHECK(two.count == 2);
  const auto five = sw::comm_fusion_buckets(step<5, 4096>::program, 0);
  CHECK(five.items == 10);
  CHECK(sizes_are(five, {1, 4, 4, 1}));  // weight first
  CHECK(sw::comm_fusion_buckets(step<2, 100>::program, 0).count == 1);
}

}  // namespace
