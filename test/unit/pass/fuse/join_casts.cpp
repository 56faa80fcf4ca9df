// SPDX-License-Identifier: Apache-2.0
// join_casts: which casts stand side by side and which stay where they were; what that does to launches, memory and bits; and the
// same graph from constants in stages of any size as at run time.
#include <shardwise/shardwise.hpp>

#include <shardwise/module/function.hpp>
#include <shardwise/pass/analysis/kernels.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/join_casts.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::bf16;
using sw::mixed;
using sw::op_code;

template <int N>
struct dp : sw::axis<N> {};

template <class Bound = sw::unbound>
struct layer : sw::module<layer<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<32, 32>, net));
  constexpr auto forward(const auto& x) const { return sw::tanh(net(x)); }
};
template <class Bound = sw::unbound>
struct layers : sw::module<layers<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::repeat<3, layer>, items));
  constexpr auto forward(const auto& x) const { return items(x); }
};
inline constexpr int matrices = 3, vectors = 3;
inline constexpr int moved = matrices - 1 + vectors;  // the first matrix is not read in the backward pass
template <int N>
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<128, 32>, sw::on<dp<N>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    const auto y = sw::cast<float>(m(x));
    return sw::mean(y * y);
  }
};
template <int N, class Pipeline, class... E>
using step = sw::train_step<layers, task<N>, sw::plan<E...>, sw::mesh<dp<N>>, sw::clip_norm<sw::adamw<>>, Pipeline>;
template <class Pipeline, class... E>
using plain = step<2, Pipeline, sw::data_parallel<dp<2>>, mixed<bf16>, E...>;
using none = sw::pipeline<>;
using joined = sw::pipeline<sw::join_casts>;

// How many casts of parameters stand in the longest row, and how many there are.
struct rows {
  int longest = 0, all = 0;
};
template <class Step>
constexpr rows rows_of() {
  rows r;
  int row = 0;
  const auto& g = Step::program;
  for (int i = 0; i < g.node_count; ++i) {
    row = sw::passes::joins_casts(g, g.nodes[i]) ? row + 1 : 0;
    r.all += row > 0 ? 1 : 0;
    r.longest = row > r.longest ? row : r.longest;
  }
  return r;
}
template <class Step>
constexpr int launches = sw::passes::kernel_calls(Step::program).of[static_cast<int>(op_code::cast)];

// A bias is cast where it is added. What is moved is one launch.
static_assert(rows_of<plain<none>>().all == matrices + vectors && rows_of<plain<none>>().longest == 1);
static_assert(rows_of<plain<joined>>().longest == moved);
static_assert(launches<plain<none>> - launches<plain<joined>> == moved - 1);
// Fused, the first bias is cast right behind the first matrix, which joins the launch where it stands.
static_assert(rows_of<plain<sw::pipeline<sw::fuse_kernels, sw::join_casts>>>().longest == matrices + vectors);
// At the last cast all were there before, too; placement may cost a copy.
static_assert(plain<joined>::peak_bytes <= plain<none>::peak_bytes + 2 * 32 * 32);

// What a forward pass alone needs one after the other stays so: vectors move, matrices do not.
template <class Pipeline, class... E>
using forward = sw::forward_step<layers, task<2>, sw::plan<sw::data_parallel<dp<2>>, E...>, sw::mesh<dp<2>>, Pipeline>;
static_assert(rows_of<forward<joined, mixed<bf16>>>().all == matrices + vectors);
static_assert(rows_of<forward<joined, mixed<bf16>>>().longest == vectors);
static_assert(forward<joined, mixed<bf16>>::peak_bytes <= forward<none, mixed<bf16>>::peak_bytes + vectors * 64);

// Shards that are gathered: each group's are side by side as it is, and stay in front of their gathers.
template <class Pipeline>
using shards = step<2, Pipeline, sw::fully_shard<dp<2>>, sw::at<"items.*", sw::fully_shard<dp<2>>>, mixed<bf16>>;
static_assert(rows_of<shards<none>>().longest == 2 && rows_of<shards<joined>>().longest == 2);
static_assert(launches<shards<none>> == launches<shards<joined>>);
static_assert(shards<joined>::peak_bytes == shards<none>::peak_bytes);

// Casts that a checkpoint repeats stay in the backward pass, and what was cast for the forward pass alone stays there.
template <class Bound = sw::unbound>
struct casting_layer : sw::module<casting_layer<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<32, 32>, sw::init::uniform_fan<32>>, weight),
                    (sw::parameter<sw::shape<32>, sw::init::uniform_fan<32>>, bias));
  constexpr auto forward(const auto& x) const {
    return sw::tanh(sw::linear_product(sw::cast<bf16>(x), sw::cast<bf16>(weight)) + sw::cast<bf16>(bias));
  }
};
template <class Bound = sw::unbound>
struct casting_layers : sw::module<casting_layers<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::repeat<3, casting_layer>, items));
  constexpr auto forward(const auto& x) const { return items(x); }
};
template <class Pipeline>
using repeated =
    sw::train_step<casting_layers, task<1>, sw::plan<sw::data_parallel<dp<1>>, sw::at<"items.*", sw::checkpoint>>,
                   sw::mesh<dp<1>>, sw::adamw<>, Pipeline>;
static_assert(rows_of<repeated<joined>>().all > matrices + vectors && rows_of<repeated<joined>>().longest == vectors);

// Casts of what is not a parameter go out one by one: what they read may be overwritten by a neighbour.
struct two_inputs {
  using x = sw::input_tensor<float, sw::shape<4, 4>>;
  using inputs = sw::inputs<x, x>;
  constexpr auto operator()(const auto& a, const auto& b) const {
    return sw::sum(sw::cast<float>(sw::cast<bf16>(a) * sw::cast<bf16>(b)));
  }
};
static_assert(launches<sw::function_step<two_inputs, sw::mesh<dp<1>>, two_inputs::inputs>> == 3);

// Nothing to do without casts of parameters, or with one.
static_assert(forward<joined>::program.node_count == forward<none>::program.node_count);

// Gradients in buckets are cast side by side in front of their bucket; each bucket's casts are one launch.
template <class... Passes>
using in_buckets = step<2, sw::pipeline<Passes...>, sw::data_parallel<dp<2>, sw::buckets<25>>, mixed<bf16>>;
constexpr int gradients = matrices + vectors;
template <class Step>
constexpr int buckets_sent = [] {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i) n += Step::program.nodes[i].op == op_code::pack ? 1 : 0;
  return n;
}();
static_assert(buckets_sent<in_buckets<>> >= 1);
static_assert(launches<in_buckets<>> - launches<in_buckets<sw::join_casts>> == moved - 1 + gradients - 1);
static_assert([] {  // all of them with one bucket's packs right behind
  const auto& g = in_buckets<sw::join_casts>::program;
  int n = 0;
  for (int i = 0; i < g.node_count; ++i) n += sw::passes::bucket_of_cast(g, i) >= 0 ? 1 : 0;
  return n;
}() == gradients);
static_assert(in_buckets<sw::join_casts>::total_comm_bytes() == in_buckets<>::total_comm_bytes());
static_assert(in_buckets<sw::join_casts>::peak_bytes <= in_buckets<>::peak_bytes + 2 * 3 * 33 * 32 + 2 * 32 * 32);

// --- bits -----------------------------------------------------------------------------------------------------------------

template <class Pipeline>
using alone = step<1, Pipeline, sw::data_parallel<dp<1>>, mixed<bf16>>;
template <class Step>
std::vector<float> trained() {
  std::vector<float> all;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> ex(rank, sw::executor_checks::poison);
    ex.initialise(3);
    std::vector<float> x(128 * 32), own;
    for (int s = 1; s <= 3; ++s) {
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(std::sin(static_cast<double>(i) + s));
      ex.set_input(0, x);
      sw::step_env env;
      env.step = s;
      env.lr = 0.02;
      env.max_norm = 0.01;
      ex.run(env);
      own.push_back(ex.loss());
    }
    for (int i = 0; i < ex.parameter_count(); ++i)
      for (const float v : ex.full_parameter(ex.parameter_name(i))) own.push_back(v);
    if (rank.index() == 0) all = own;
  });
  return all;
}
TEST_CASE("join_casts keeps every bit, on one rank and two, whole, in buckets, checkpointed and in shards") {
  CHECK(trained<alone<joined>>() == trained<alone<none>>());
  CHECK(trained<plain<joined>>() == trained<plain<none>>());
  CHECK(trained<shards<joined>>() == trained<shards<none>>());
  CHECK(trained<in_buckets<sw::join_casts>>() == trained<in_buckets<>>());
  using again = sw::at<"items.*", sw::checkpoint>;
  CHECK(trained<plain<joined, again>>() == trained<plain<none, again>>());
  CHECK(trained<plain<joined>>() != trained<step<2, none, sw::data_parallel<dp<2>>>>());
}

// --- constants --------------------------------------------------------------------------------------------------------------

template <class Step>
struct program {
  static constexpr const auto& value = Step::program;
};
template <class A, class B>
bool same(const A& a, const B& b) {
  if (a.node_count != b.node_count || a.output_count != b.output_count) return false;
  for (int i = 0; i < a.node_count; ++i) {
    const sw::node &x = a.nodes[i], &y = b.nodes[i];
    if (x.op != y.op || x.inputs != y.inputs || x.scope != y.scope || !(a.spec_of(i) == b.spec_of(i))) return false;
    for (int k = 0; k < x.inputs; ++k)
      if (x.in[k] != y.in[k]) return false;
  }
  for (int k = 0; k < a.output_count; ++k)
    if (a.outputs[k] != b.outputs[k]) return false;
  return true;
}
template <class Source>
void check_stages() {
  using source = Source;
  const auto& whole = sw::join_casts::in_stages<source>::value;
  CHECK(same(sw::join_casts::in_stages<source, 16>::value, whole));
  CHECK(same(sw::join_casts::in_stages<source, 100>::value, whole));
  const auto g = std::make_unique<
      sw::graph<source::value.node_count + 8, source::value.spec_count + 8, sw::graph_type_of<source>::scope_capacity>>();
  sw::copy_into(*g, source::value);
  CHECK(!sw::join_casts::apply(*g));
  CHECK(same(*g, whole));
  CHECK(!sw::verify(*g));
}
TEST_CASE("join_casts: the same in stages of any size, and at run time") { check_stages<program<plain<none>>>(); }

}  // namespace
