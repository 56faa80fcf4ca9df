// SPDX-License-Identifier: Apache-2.0
// recompute: checkpoints keep inputs alone, replays give the same bits wherever regions lie, and memory is what the law says.
#include <shardwise/pass/framework/sequence.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/rematerialise/recompute.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>

#include <doctest/doctest.h>

#include <gpt.hpp>
#include <kept_bytes.hpp>
#include <random_step.hpp>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::op_code;

// --- random graphs, random regions ------------------------------------------------------------------------------------

constexpr int graph_nodes = 40, scopes = 5, graphs = 400;
using roomy = sw::graph<8 * graph_nodes, graph_nodes, 8 * scopes>;

constexpr sw::checkpoint_policy everything = sw::checkpoint::shardwise_checkpoint;
constexpr sw::checkpoint_policy but_products = sw::checkpoint_except<"matmul", "all_reduce">::shardwise_checkpoint;
constexpr sw::checkpoint_policy cheap = sw::checkpoint_only<"relu", "mul", "tanh">::shardwise_checkpoint;

// Regions that lie in each other at random, and nodes in them at random: nothing says that a region's nodes stand together.
template <class Graph>
roomy with_regions(const Graph& g, std::uint64_t seed, bool policies) {
  roomy r;
  sw::copy_into(r, g);
  test::dice roll{seed ^ 0x77, 0};
  sw::builder b = r.edit();
  b.scope_count = 0;
  for (int s = 0; s < scopes; ++s) {
    const int region = s == 0 || roll(6) == 0 ? -1 : roll(2) == 0 ? s - 1 : roll(s);
    const sw::checkpoint_policy* all[] = {&everything, &but_products, &cheap};
    b.scopes[b.scope_count++] = {"m", -1,
                                 -1,  region >= 0 && !b.scopes[region].checkpoint ? -1 : region,
                                 -1,  roll(6) == 0 ? nullptr : all[policies ? roll(3) : 0]};
  }
  r.finish(b);
  r.outputs[0] = r.node_count / 3 + roll(r.node_count / 3);  // what follows it and is not read by it is the backward pass
  for (int i = 0; i < r.node_count; ++i) r.nodes[i].scope = roll(8) == 0 ? -1 : roll(scopes);
  return r;
}

using demand_type = sw::passes::checkpoint_demand<roomy::node_capacity, roomy::scope_capacity>;
constexpr auto all_but_the_first = [](int k) { return k > 0; };

demand_type demand_of(const roomy& g, int bite) {
  demand_type d;
  while (d.some(g, all_but_the_first, sw::stage_work(bite))) {
  }
  return d;
}
roomy replayed(const roomy& g, int bite) {
  const demand_type d = demand_of(g, bite);
  REQUIRE(g.node_count + d.computed <= roomy::node_capacity);
  REQUIRE(g.scope_count + d.scopes <= roomy::scope_capacity);
  sw::passes::replay_state<roomy, roomy, roomy::node_capacity> w;
  w.begin(g);
  while (w.some(g, d, sw::stage_work(bite))) {
  }
  REQUIRE(w.g.node_count == g.node_count + d.computed);
  return w.g;
}

template <class Graph>
bool same_graph(const Graph& a, const Graph& b) {
  bool same = a.node_count == b.node_count && a.scope_count == b.scope_count;
  for (int i = 0; same && i < a.node_count; ++i) {
    same = a.nodes[i].op == b.nodes[i].op && a.nodes[i].spec == b.nodes[i].spec && a.nodes[i].scope == b.nodes[i].scope;
    for (int k = 0; k < a.nodes[i].inputs; ++k) same = same && a.nodes[i].in[k] == b.nodes[i].in[k];
  }
  return same;
}

// Law: what a checkpoint lets go is read by the backward pass only where something outside of the region, or further in, reads it too.
// Returns how many values are no longer read.
int checked_law(const roomy& before, const roomy& after) {
  const demand_type d = demand_of(before, 1000);
  std::vector<int> original;  // of each new node that is no replay
  int let_go = 0;
  std::vector<int> now(static_cast<std::size_t>(before.node_count), -1);
  for (int i = 0, k = 0; i < after.node_count; ++i) {
    const bool again = sw::replay_of(after, i) >= 0;
    original.push_back(again ? -1 : k);
    if (!again) now[static_cast<std::size_t>(k++)] = i;
  }
  for (int v = 0; v < before.node_count; ++v) {
    const int own = d.tree.region_at(before, v);
    if (!d.is_member(before, v) || sw::keeps_value(*before.scopes[own].checkpoint, before, v)) continue;
    bool inside = false, outside = false, read = false;  // who reads it in the backward pass, and whether somebody did
    for (int i = 0; i < before.node_count; ++i)
      for (int k = 0; k < before.nodes[i].inputs; ++k) read = read || (d.is_backward(i) && before.nodes[i].in[k] == v);
    for (int k = 0; k < before.output_count; ++k) outside = outside || before.outputs[k] == v;
    for (int i = 0; i < after.node_count; ++i) {
      const bool again = sw::replay_of(after, i) >= 0;
      const int was = original[static_cast<std::size_t>(i)];
      if (!again && !d.is_backward(was)) continue;
      const int s = after.nodes[i].scope;
      const int region = again ? sw::replay_of(after, i) : s < 0 ? -1 : d.tree.region[s];
      for (int k = 0; k < after.nodes[i].inputs; ++k) {
        if (after.nodes[i].in[k] != now[static_cast<std::size_t>(v)]) continue;
        const int common = d.tree.common(before, region, own);
        (common == d.tree.depth[own] ? inside : outside) = true;
      }
    }
    CHECK((!inside || outside || d.tree.depth[own] > 1));
    let_go += !read || inside || outside ? 0 : 1;
  }
  return let_go;
}

template <int Ranks>
struct fibre : sw::axis<Ranks> {};
template <int Ranks>
using fibres = sw::mesh<fibre<Ranks>>;

template <int Ranks>
void check_bits(bool policies) {
  int computed = 0, let_go = 0, deep = 0;
  for (std::uint64_t seed = 0; seed < graphs; ++seed) {
    const roomy before = with_regions(test::random_graph<graph_nodes>(seed, Ranks), seed, policies);
    const roomy after = replayed(before, 1 << 20);
    const sw::finding f = sw::verify(after);
    REQUIRE_MESSAGE(!f, "seed ", seed, ": ", sw::sentence(f.what), " node ", f.operand);
    CHECK(same_graph(after, replayed(before, 1)));
    if (!policies) let_go += checked_law(before, after);
    computed += after.node_count - before.node_count;
    const demand_type d = demand_of(before, 1000);
    for (int s = 0; s < before.scope_count; ++s) deep += d.tree.depth[s] > 2 ? 1 : 0;
    std::vector<int> wrong(Ranks, 0);
    sw::launch<fibres<Ranks>>([&](auto& rank) {
      sw::eager<std::remove_reference_t<decltype(rank)>> e(rank);
      const auto want = test::run_graph(e, before);
      wrong[static_cast<std::size_t>(rank.index())] = test::run_graph(e, after) == want ? 0 : 1;
    });
    for (const int w : wrong) CHECK_MESSAGE(w == 0, "seed ", seed);
  }
  CHECK(computed > graphs / 5);
  CHECK(deep > graphs / 5);
  if (!policies) CHECK(let_go > graphs / 5);
}

TEST_CASE("recompute: random graphs with regions at random give the same bits") {
  check_bits<1>(false);
  check_bits<2>(false);
  check_bits<2>(true);
  check_bits<3>(true);
}

// Updates stand anywhere: what is read behind the first of them is not computed again.
TEST_CASE("recompute: random steps with updates in between give the same bits") {
  int computed = 0;
  for (std::uint64_t seed = 0; seed < graphs; ++seed) {
    const roomy before = with_regions(test::random_step<2 * graph_nodes, graph_nodes>(seed, 2, 3, false), seed, true);
    roomy after = before;
    sw::pass_sequence<roomy> passes;
    REQUIRE(passes.apply(sw::entry_of<sw::recompute, roomy>(), after).text == "");
    computed += after.node_count - before.node_count;
    std::vector<int> wrong(2, 0);
    sw::launch<fibres<2>>([&](auto& rank) {
      using runner = test::graph_runner<std::remove_reference_t<decltype(rank)>, roomy>;
      runner a(rank, before, runner::workspace_of(before)), b(rank, after, runner::workspace_of(after));
      a.start();
      b.start();
      bool same = true;
      for (int s = 1; s <= 2; ++s) {
        sw::step_env env;
        env.step = s;
        env.lr = 0.1;
        a.feed(s);
        b.feed(s);
        a.run(env);
        b.run(env);
        same = same && a.outputs() == b.outputs() && a.leaves() == b.leaves();
      }
      wrong[static_cast<std::size_t>(rank.index())] = same ? 0 : 1;
    });
    for (const int w : wrong) CHECK_MESSAGE(w == 0, "seed ", seed);
  }
  CHECK(computed > 20);
}

// --- whole steps ------------------------------------------------------------------------------------------------------

template <int N>
struct dp : sw::axis<N> {};
using one = sw::mesh<dp<1>>;
constexpr int rows = 256, width = 16, inside = 64;
constexpr std::int64_t input_bytes = rows * width * 8;

// x + down(gelu(up(x))), with a mask.
template <class Bound = sw::unbound>
struct block : sw::module<block<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<width, inside>, up), (sw::linear<inside, width>, down));
  constexpr auto forward(const auto& x) const { return x + sw::dropout(down(sw::gelu(up(x))), 0.25); }
};
template <int Layers>
struct stacked {
  template <class Bound = sw::unbound>
  struct model : sw::module<model<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::repeat<Layers, block>, layers));
    constexpr auto forward(const auto& x) const { return layers(x); }
  };
  template <class B>
  using of = model<B>;
};
// One block, called again and again.
template <int Calls>
struct shared {
  template <class Bound = sw::unbound>
  struct model : sw::module<model<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (block<>, layer));
    constexpr auto forward(const auto& x) const {
      auto h = layer(x);
      for (int i = 1; i < Calls; ++i) h = layer(h);
      return h;
    }
  };
  template <class B>
  using of = model<B>;
};
// Groups of blocks.
template <int Groups, int Layers>
struct grouped {
  template <class Bound = sw::unbound>
  struct group : sw::module<group<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::repeat<Layers, block>, layers));
    constexpr auto forward(const auto& x) const { return layers(x); }
  };
  template <class B>
  using group_of = group<B>;
  template <class Bound = sw::unbound>
  struct model : sw::module<model<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::repeat<Groups, group_of>, groups));
    constexpr auto forward(const auto& x) const { return groups(x); }
  };
  template <class B>
  using of = model<B>;
};

using squares_inputs = sw::inputs<sw::input_tensor<double, sw::shape<rows, width>, sw::on<dp<1>, sw::replicate>>>;
struct squares {
  using inputs = squares_inputs;
  constexpr auto operator()(const auto& m, const auto& x) const {
    const auto y = m(x);
    return sw::sum(y * y);
  }
};
template <template <class> class Model, class Plan, class Pipeline = sw::pipeline<>>
using step = sw::train_step<Model, squares, Plan, one, sw::sgd<>, Pipeline, double>;

template <class Step>
auto trained(int steps = 2) {
  std::vector<std::vector<double>> all;
  sw::launch<one>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> run(rank, sw::executor_checks::poison);
    run.initialise(3);
    for (int s = 1; s <= steps; ++s) {
      std::vector<double> x(rows * width);
      for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = static_cast<double>((i * 7 + static_cast<std::size_t>(s)) % 11) / 5 - 1;
      run.set_input(0, x);
      sw::step_env env;
      env.seed = 9;
      env.step = s;
      env.lr = 1e-3;
      run.run(env);
      all.push_back({run.loss()});
    }
    for (int i = 0; i < run.parameter_count(); ++i) {
      all.emplace_back(run.parameter_layout(i).numel());
      run.gather_parameter(i, all.back());
    }
  });
  return all;
}

// Nodes that compute something again, of one operation or of all.
template <class Step>
constexpr int again(op_code op = op_code::count) {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i)
    n += sw::replay_of(Step::program, i) >= 0 && (op == op_code::count || Step::program.nodes[i].op == op) ? 1 : 0;
  return n;
}

using none = sw::plan<>;
using each_layer = sw::plan<sw::at<"layers.*", sw::checkpoint>>;

TEST_CASE("recompute: of n equal blocks the backward pass is handed n inputs, and holds the inside of one block") {
  using two = step<stacked<2>::of, each_layer>;
  using five = step<stacked<5>::of, each_layer>;
  using plain_two = step<stacked<2>::of, none>;
  using plain_five = step<stacked<5>::of, none>;
  // the first input is the program's, and the last block's result is squared; and the loss
  static_assert(test::kept_for_backward<two>() == 2 * input_bytes + 8);
  static_assert(test::kept_for_backward<five>() == 5 * input_bytes + 8);
  static_assert(test::kept_for_backward<plain_five>() > 5 * (input_bytes + 2 * rows * inside * 8));
  constexpr std::int64_t parameters = 8 * (2 * width * inside + width + inside);
  static_assert(five::peak_bytes - two::peak_bytes == 3 * (parameters + input_bytes));
  static_assert(plain_five::peak_bytes - plain_two::peak_bytes == 3 * (parameters + input_bytes + 2 * rows * inside * 8));
  static_assert(five::memory_use::value.live() < plain_five::memory_use::value.live());
  CHECK(trained<five>() == trained<plain_five>());
}

TEST_CASE("recompute: a module that is called several times is computed again call by call") {
  using three = step<shared<3>::of, sw::plan<sw::at<"layer", sw::checkpoint>>>;
  using six = step<shared<6>::of, sw::plan<sw::at<"layer", sw::checkpoint>>>;
  using plain = step<shared<6>::of, none>;
  static_assert(test::kept_for_backward<three>() == 3 * input_bytes + 8);
  static_assert(test::kept_for_backward<six>() == 6 * input_bytes + 8);
  static_assert(again<six>() == 2 * again<three>());
  CHECK(trained<six>() == trained<plain>());
  // one region that holds all calls: everything is computed again at once
  using whole = step<shared<6>::of, sw::plan<sw::checkpoint>>;
  static_assert(test::kept_for_backward<whole>() == input_bytes + 8);
  static_assert(whole::peak_bytes > six::peak_bytes);
  CHECK(trained<whole>() == trained<plain>());
}

TEST_CASE("recompute: checkpoints in each other") {
  using model = grouped<3, 3>;
  using plain = step<model::of, none>;
  using outer = step<model::of, sw::plan<sw::at<"groups.*", sw::checkpoint>>>;
  using inner = step<model::of, sw::plan<sw::at<"groups.*.layers.*", sw::checkpoint>>>;
  using both = step<model::of, sw::plan<sw::at<"groups.*", sw::checkpoint>, sw::at<"groups.*.layers.*", sw::checkpoint>>>;
  static_assert(test::kept_for_backward<outer>() == 3 * input_bytes + 8);
  static_assert(test::kept_for_backward<inner>() == 9 * input_bytes + 8);
  static_assert(test::kept_for_backward<both>() == 3 * input_bytes + 8);
  static_assert(both::peak_bytes < outer::peak_bytes && both::peak_bytes < inner::peak_bytes);
  static_assert(outer::peak_bytes < plain::peak_bytes);
  // a block's products are computed once more for its group, but for the last block's, and for itself
  static_assert(again<inner>(op_code::einsum) == 9);
  static_assert(again<outer>(op_code::einsum) == 15);
  static_assert(again<both>(op_code::einsum) == 21);
  const auto want = trained<plain>();
  CHECK(trained<outer>() == want);
  CHECK(trained<inner>() == want);
  CHECK(trained<both>() == want);
}

TEST_CASE("recompute: what a policy names stays") {
  using plain = step<stacked<3>::of, none>;
  using all = step<stacked<3>::of, each_layer>;
  using but_products = step<stacked<3>::of, sw::plan<sw::at<"layers.*", sw::checkpoint_except<"matmul">>>>;
  using gelu_alone = step<stacked<3>::of, sw::plan<sw::at<"layers.*", sw::checkpoint_only<"gelu">>>>;
  static_assert(again<all>(op_code::einsum) == 3 && again<all>(op_code::gelu_tanh) + again<all>(op_code::gelu_erf) == 3);
  static_assert(again<but_products>(op_code::einsum) == 0 && again<but_products>(op_code::add) == 3);
  static_assert(again<gelu_alone>() == 3);
  static_assert(all::peak_bytes < but_products::peak_bytes && but_products::peak_bytes < plain::peak_bytes);
  static_assert(test::kept_for_backward<gelu_alone>() < test::kept_for_backward<plain>());
  const auto want = trained<plain>();
  CHECK(trained<all>() == want);
  CHECK(trained<but_products>() == want);
  CHECK(trained<gelu_alone>() == want);
  // the last entry that names a module holds
  using last =
      step<stacked<3>::of, sw::plan<sw::at<"layers.*", sw::checkpoint>, sw::at<"layers.1", sw::checkpoint_only<"gelu">>>>;
  static_assert(again<last>(op_code::einsum) == 2);
  CHECK(trained<last>() == want);
}

TEST_CASE("recompute: passes of the pipeline leave a replay apart from what it repeats") {
  using plain = step<stacked<3>::of, none>;
  using alone = step<stacked<3>::of, each_layer>;
  using merged = step<stacked<3>::of, each_layer, sw::pipeline<sw::cancel_redistributions, sw::merge_common>>;
  using cut = step<stacked<3>::of, each_layer, sw::pipeline<sw::merge_common, sw::rematerialise<>>>;
  using fused = step<stacked<3>::of, each_layer, sw::pipeline<sw::merge_common, sw::fuse_kernels>>;
  using plain_fused = step<stacked<3>::of, none, sw::pipeline<sw::merge_common, sw::fuse_kernels>>;
  static_assert(again<alone>() > 0 && again<merged>() == again<alone>());
  static_assert(test::kept_for_backward<merged>() == test::kept_for_backward<alone>());
  static_assert(merged::peak_bytes <= alone::peak_bytes);
  static_assert(test::kept_for_backward<cut>() <= test::kept_for_backward<alone>());
  static_assert(fused::peak_bytes < plain_fused::peak_bytes);
  const auto want = trained<plain>();
  CHECK(trained<merged>() == want);
  CHECK(trained<cut>() == want);
  CHECK(trained<fused>() == trained<plain_fused>());
}

// A budget chooses among what checkpoints leave to it: what a policy names stays.
TEST_CASE("recompute: a memory budget keeps what a policy names") {
  using named = sw::at<"layers.*", sw::checkpoint_except<"gelu">>;
  using kept = step<stacked<3>::of, sw::plan<named>, sw::pipeline<sw::rematerialise<0>>>;
  using let_go = step<stacked<3>::of, each_layer, sw::pipeline<sw::rematerialise<0>>>;
  constexpr auto gelus = [](const auto& g) {
    int n = 0;
    for (int i = 0; i < g.node_count; ++i)
      n += g.nodes[i].op == op_code::gelu_tanh || g.nodes[i].op == op_code::gelu_erf ? 1 : 0;
    return n;
  };
  static_assert(gelus(kept::program) == 3 && gelus(let_go::program) > 3);
  static_assert(test::kept_for_backward<let_go>() < test::kept_for_backward<kept>());
  static_assert(test::kept_for_backward<kept>() >= 3 * rows * inside * 8);
  const auto want = trained<step<stacked<3>::of, none>>();
  CHECK(trained<kept>() == want);
  CHECK(trained<let_go>() == want);
}

TEST_CASE("recompute: constants are written as graphs made at run time, in stages of any size") {
  using model = grouped<2, 2>;
  using before = sw::detail::step_graph<
      model::of, squares,
      sw::plan<sw::at<"groups.*", sw::checkpoint>, sw::at<"groups.*.layers.*", sw::checkpoint_except<"matmul">>>, one,
      sw::sgd<>, sw::pipeline<>, double>::written;
  const auto& large = sw::recompute::in_stages<before>::value;
  const auto& small = sw::recompute::in_stages<before, 1>::value;
  CHECK(same_graph(large, small));
  auto at_once = sw::resized<sw::graph_type_of<before>, 400, 200, 100>{};
  sw::copy_into(at_once, before::value);
  CHECK(!sw::recompute::apply(at_once));
  CHECK(at_once.node_count > before::value.node_count);
  CHECK(at_once.node_count == large.node_count);
  for (int i = 0; i < large.node_count; ++i) CHECK(at_once.nodes[i].op == large.nodes[i].op);
  // what has no room says so
  auto full = before::value;
  CHECK(sw::recompute::apply(full).what == sw::problem::graph_full);
}

TEST_CASE("recompute: a program without checkpoints is itself") {
  using without = sw::detail::step_graph<stacked<2>::of, squares, none, one, sw::sgd<>, sw::pipeline<>, double>::written;
  static_assert(&sw::recompute::run<without>::value == &without::value);
  static_assert(std::is_same_v<sw::detail::planned<none, without>::type, without>);
  CHECK(again<step<stacked<2>::of, none>>() == 0);
}

}  // namespace
