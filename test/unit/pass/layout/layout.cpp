// SPDX-License-Identifier: Apache-2.0
// optimize_layout by torch.compile's rule: the rule, branch by branch; what is preferred and what is not; copies that come and go; the same
// bits as without it, in programs and in random graphs on one and two ranks; the same graph from constants in stages of any size.
#include <shardwise/graph/text/render.hpp>
#include <shardwise/pass/framework/sequence.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/layout/layout.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <figures.hpp>
#include <random_graph.hpp>
#include <random_images.hpp>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::layout_decision;
using sw::layout_mode;
using sw::layout_reason;
using sw::op_code;
using sw::placement;
using ruled = sw::optimize_layout<layout_mode::torch>;

// --- the rule of torch.compile ------------------------------------------------------------------------------------------------------------------

constexpr sw::convolution_shape plain{128, 3, 3, 1, 100}, grouped{128, 64, 3, 2, 100}, depthwise{512, 1, 7, 512, 100},
    small{64, 64, 3, 1, 100}, narrowing{65, 130, 3, 1, 100}, narrow_pixel{65, 130, 1, 1, 100},
    small_and_narrow{16, 64, 3, 1, 100};
static_assert(!plain.is_grouped() && !plain.is_small() && !plain.narrows());
static_assert(grouped.is_grouped() && !depthwise.is_grouped() && small.is_small() && narrowing.narrows() &&
              !narrow_pixel.narrows());

template <class... C>
constexpr sw::layout_facts facts(int nodes, bool training, C... convolutions) {
  sw::layout_facts f;
  f.nodes = nodes;
  f.training = training;
  (f.add(convolutions), ...);
  return f;
}
constexpr layout_decision by_rule(sw::layout_facts f) { return sw::decide_layout(layout_mode::torch, f); }
constexpr layout_decision yes(layout_reason why) { return {true, why}; }
constexpr layout_decision no(layout_reason why) { return {false, why}; }

// The factors, and that the first kind counts.
static_assert(facts(1, false, plain).weighted == 100 * 0.823 && facts(1, false, grouped).weighted == 100 * 1.358);
static_assert(facts(1, false, small).weighted == 100 * 0.783 && facts(1, false, narrowing).weighted == 100 * 0.725);
static_assert(facts(1, false, small_and_narrow).weighted == 100 * 0.783);
static_assert(facts(1, false, depthwise).weighted == 100 * 0.823);
static_assert(facts(1, false, sw::convolution_shape{60, 60, 3, 2, 100}).weighted == 100 * 1.358);

// Each test, and that it comes before those behind it.
static_assert(sw::decide_layout(layout_mode::off, facts(1, true, plain)) == no(layout_reason::off));
static_assert(sw::decide_layout(layout_mode::force, facts(1, true)) == yes(layout_reason::forced));
static_assert(by_rule(facts(1000, true)) == no(layout_reason::no_convolution));
static_assert(by_rule([] {
                auto f = facts(300, true, grouped);
                f.library = f.run_time = true;
                return f;
              }()) == yes(layout_reason::library));
static_assert(by_rule([] {
                auto f = facts(300, true, grouped);
                f.run_time = true;
                return f;
              }()) == no(layout_reason::many_nodes));
static_assert(by_rule([] {
                auto f = facts(599, false, plain, plain);
                f.run_time = true;
                return f;
              }()) == no(layout_reason::run_time_size));
static_assert(by_rule(facts(299, false, plain)) == yes(layout_reason::inference));
static_assert(by_rule(facts(299, false, grouped)) == no(layout_reason::inference));
static_assert(by_rule(facts(299, false, grouped, narrowing, narrowing)) == yes(layout_reason::inference));  // 2.808 of 3
static_assert(by_rule(facts(299, false, grouped, grouped, plain, plain, plain)) ==
              no(layout_reason::inference));  // 5.185 of 5
static_assert(by_rule(facts(299, true, small, narrowing, grouped)) == no(layout_reason::grouped));
static_assert(by_rule(facts(299, true, small_and_narrow)) == no(layout_reason::narrowing));
static_assert(by_rule(facts(299, true, small, small)) == no(layout_reason::all_small));
static_assert(by_rule(facts(299, true, small, plain)) == yes(layout_reason::training));
static_assert(by_rule(facts(299, true, plain, depthwise)) == yes(layout_reason::training));

// --- programs ----------------------------------------------------------------------------------------------------------------------

template <int N>
struct dp : sw::axis<N> {};
template <int N>
using mesh = sw::mesh<dp<N>>;
using mesh1 = mesh<1>;

constexpr bool turned(const sw::spec& s) { return sw::is_channels_last(s) && !sw::is_contiguous(s); }
template <class Program>
constexpr int copies(sw::memory_format format) {
  int n = 0;
  constexpr const auto& g = Program::program;
  for (int i = 0; i < g.node_count; ++i)
    n += g.nodes[i].op == op_code::contiguous &&
         sw::attributes_of<sw::contiguous_attributes>(g.nodes[i].a).format == static_cast<int>(format);
  return n;
}
template <class Program>
constexpr int copies_in = copies<Program>(sw::memory_format::channels_last);
template <class Program>
constexpr int copies_back = copies<Program>(sw::memory_format::contiguous);
// Nodes of an operation stored channels-last; of a user's own by name.
template <class Program>
constexpr int turned_nodes(const char* name) {
  int n = 0;
  constexpr const auto& g = Program::program;
  for (int i = 0; i < g.node_count; ++i) n += turned(g.spec_of(i)) && sw::is_same_name(sw::name_of(g, g.nodes[i]), name);
  return n;
}

template <std::int64_t... E>
using in = sw::input_tensor<float, sw::shape<E...>>;
template <class F, class... In>
struct of {
  template <class... P>
  using step = sw::function_step<F, mesh1, sw::inputs<In...>, sw::pipeline<P...>>;
};
template <class F, class Wrt, class... In>
struct gradients_of {
  template <class... P>
  using step = sw::gradient_step<F, mesh1, sw::inputs<In...>, Wrt, sw::pipeline<P...>>;
};

std::vector<float> given(std::int64_t n, int salt) {
  const auto v = figures::some(static_cast<std::size_t>(n), salt);
  return {v.begin(), v.end()};
}
// All outputs, row-major.
template <class Step>
std::vector<std::vector<float>> outputs_of() {
  std::vector<std::vector<float>> r;
  sw::launch<mesh1>([&](auto& rank) {
    sw::executor<Step> e(rank, sw::executor_checks::poison);
    constexpr const auto& g = Step::program;
    for (int i = 0; i < g.node_count; ++i) {
      if (g.nodes[i].op != op_code::input) continue;
      const int k = static_cast<int>(sw::attributes_of<sw::leaf_attributes>(g.nodes[i].a).index);
      const auto values = given(sw::numel(g.spec_of(i)), k);
      std::vector<std::int32_t> ids;
      for (const float v : values) ids.push_back(v > 0 ? 3 : 1);
      if (g.spec_of(i).type == sw::dtype::i32) e.set_input(k, ids);
      else e.set_input(k, values);
    }
    e.run({});
    for (int k = 0; k < g.output_count; ++k) {
      const auto b = e.template output<float>(k);
      std::vector<float> v;
      sw::runtime::each_element(b.layout,
                                [&](std::int64_t at, std::int64_t) { v.push_back(b.data[static_cast<std::size_t>(at)]); });
      r.push_back(v);
    }
  });
  return r;
}
template <class Program, class... P>
void same_bits() {
  CHECK(outputs_of<typename Program::template step<ruled, P...>>() == outputs_of<typename Program::template step<P...>>());
}

// Two convolutions with what lies between: 80 channels.
using options = sw::convolution_options;
struct two {
  constexpr auto operator()(const auto& x, const auto& v, const auto& w, const auto& b) const {
    return sw::conv2d(sw::relu(sw::conv2d<options{.stride = 2}>(x, v, b)), w);
  }
};
using two_in = of<two, in<2, 3, 9, 9>, in<80, 3, 3, 3>, in<80, 80, 3, 3>, in<80>>;
using two_gradients = gradients_of<two, sw::wrt<0, 1, 2, 3>, in<2, 3, 9, 9>, in<80, 3, 3, 3>, in<80, 80, 3, 3>, in<80>>;
using two_on = two_in::step<ruled>;
using two_trained = two_gradients::step<ruled>;
// the image and both weights are copied once, for both passes; the output is stored as it was
static_assert(copies_in<two_on> == 3 && copies_back<two_on> == 0 && turned_nodes<two_on>("conv2d") == 1);
static_assert(turned_nodes<two_on>("relu") == 1 && turned_nodes<two_on>("add") == 1 &&
              sw::is_contiguous(two_on::program.spec_of(two_on::program.outputs[0])));
static_assert(copies_in<two_trained> == 4);  // and the cotangent of the output
static_assert(copies_back<two_trained> == 0 && turned_nodes<two_trained>("conv2d_dx") == 1 &&
              turned_nodes<two_trained>("conv2d_dw") == 0);
static_assert(!sw::verify(two_on::program) && !sw::verify(two_trained::program));

// What needs what it reads as it was traced: views, a product of a reshaped value, rows of logits, and each gets one copy.
struct constrained {
  constexpr auto operator()(const auto& x, const auto& w, const auto& classes) const {
    const auto y = sw::conv2d(x, w);
    const auto rows = sw::view<-1, 5>(y);
    return sw::sum(sw::square(rows)) + sw::sum(sw::cross_entropy_rows(y, classes)) + sw::sum(sw::relu(y));
  }
};
using constrained_in = gradients_of<constrained, sw::wrt<0, 1>, in<2, 3, 7, 7>, in<80, 3, 3, 3>,
                                    sw::input_tensor<std::int32_t, sw::shape<2, 80, 5>>>;
using constrained_on = constrained_in::step<ruled>;
static_assert(turned_nodes<constrained_on>("conv2d") == 1 && copies_back<constrained_on> == 1);
template <class Program>
constexpr bool reads_contiguous(op_code op) {
  constexpr const auto& g = Program::program;
  bool any = false, all = true;
  for (int i = 0; i < g.node_count; ++i)
    if (g.nodes[i].op == op) {
      any = true;
      for (int k = 0; k < g.nodes[i].inputs; ++k) all = all && sw::is_contiguous(g.spec_of(g.nodes[i].in[k]));
    }
  return any && all;
}
static_assert(reads_contiguous<constrained_on>(op_code::nll_dx) && reads_contiguous<constrained_on>(op_code::lse) &&
              reads_contiguous<constrained_on>(op_code::nll) && reads_contiguous<constrained_on>(op_code::reshape));
// Nothing is turned that nothing reads by its strides.
struct viewed {
  constexpr auto operator()(const auto& x, const auto& w) const { return sw::view<-1>(sw::conv2d(x, w)); }
};
using viewed_on = of<viewed, in<2, 3, 7, 7>, in<80, 3, 3, 3>>::step<ruled>;
static_assert(copies_in<viewed_on> == 2 && copies_back<viewed_on> == 0 && turned_nodes<viewed_on>("conv2d") == 0);
// A batched product passes no preference on, and one that is none does.
struct product_before {
  constexpr auto operator()(const auto& x, const auto& m, const auto& w) const {
    return sw::conv2d(sw::relu(sw::matmul(sw::relu(x), m)), w);
  }
};
using batched = of<product_before, in<2, 80, 5, 5>, in<2, 80, 5, 5>, in<80, 80, 3, 3>>::step<ruled>;
using unbatched = of<product_before, in<2, 80, 5, 5>, in<5, 5>, in<80, 80, 3, 3>>::step<ruled>;
static_assert(turned_nodes<batched>("relu") == 1 && turned_nodes<unbatched>("relu") == 2);
// What a collective moves keeps its strides, also where others would read it otherwise.
struct summed {
  constexpr auto operator()(const auto& x, const auto& v, const auto& w) const {
    const auto y = sw::conv2d(x, v);
    return std::tuple{sw::redistribute<dp<2>, sw::replicate>(y), sw::conv2d(sw::relu(sw::neg(y)), w)};
  }
};
template <class... P>
using gathered = sw::function_step<summed, mesh<2>,
                                   sw::inputs<sw::input_tensor<float, sw::shape<2, 3, 7, 7>, sw::on<dp<2>, sw::shard<0>>>,
                                              sw::input_tensor<float, sw::shape<80, 3, 3, 3>, sw::on<dp<2>, sw::reduced>>,
                                              sw::input_tensor<float, sw::shape<80, 80, 3, 3>, sw::on<dp<2>, sw::reduced>>>,
                                   sw::pipeline<P...>>;
static_assert(turned_nodes<gathered<ruled>>("conv2d") == 0 && turned_nodes<gathered<ruled>>("relu") == 1 &&
              copies_in<gathered<ruled>> == 4);  // the image, both weights, and what is moved, for who else reads it
static_assert(reads_contiguous<gathered<ruled>>(op_code::redistribute));
// What lies behind the last convolution stays as it was, and so that convolution writes what it is read as.
struct behind {
  constexpr auto operator()(const auto& x, const auto& w) const {
    const auto y = sw::relu(sw::conv2d(x, w));
    return std::tuple{sw::sum<0>(y), sw::tanh(sw::neg(y))};
  }
};
using behind_on = of<behind, in<2, 3, 7, 7>, in<80, 3, 3, 3>>::step<ruled>;
static_assert(turned_nodes<behind_on>("conv2d") == 0 && turned_nodes<behind_on>("relu") == 0 &&
              turned_nodes<behind_on>("scale") == 0 && copies_in<behind_on> == 2 && copies_back<behind_on> == 0);
// A function of elements reads in one order: what it reads in another is copied once, for it and all others.
struct two_orders {
  constexpr auto operator()(const auto& x, const auto& w, const auto& z) const {
    const auto y = sw::conv2d(x, w);
    return std::tuple{sw::conv2d(sw::relu(y) * z, w), sw::tanh(y), sw::exp(y)};
  }
};
using two_orders_on = of<two_orders, in<2, 80, 9, 9>, in<80, 80, 3, 3>, in<2, 80, 7, 7>>::step<ruled>;
static_assert(turned_nodes<two_orders_on>("mul") == 1 && turned_nodes<two_orders_on>("relu") == 1 &&
              turned_nodes<two_orders_on>("tanh") == 0 && copies_in<two_orders_on> == 3 && copies_back<two_orders_on> == 1);

// Where the rule says no, or there is nothing to do, the program is the very same.
struct small_net {
  constexpr auto operator()(const auto& x, const auto& w) const { return sw::conv2d(x, w); }
};
using small_trained = gradients_of<small_net, sw::wrt<0>, in<2, 3, 7, 7>, in<64, 3, 3, 3>>;
static_assert(copies_in<small_trained::step<ruled>> == 0);
static_assert(small_trained::step<ruled>::program.node_count == small_trained::step<>::program.node_count);
static_assert(copies_in<small_trained::step<sw::optimize_layout<layout_mode::force>>> == 3);
static_assert(copies_in<small_trained::step<sw::optimize_layout<layout_mode::off>>> == 0);

TEST_CASE("optimize_layout: programs give the same bits with it and without") {
  same_bits<two_in>();
  same_bits<two_gradients>();
  same_bits<constrained_in, sw::merge_common>();
  same_bits<of<viewed, in<2, 3, 7, 7>, in<80, 3, 3, 3>>>();
  same_bits<of<behind, in<2, 3, 7, 7>, in<80, 3, 3, 3>>>();
  same_bits<of<two_orders, in<2, 80, 9, 9>, in<80, 80, 3, 3>, in<2, 80, 7, 7>>>();
  same_bits<of<product_before, in<2, 80, 5, 5>, in<5, 5>, in<80, 80, 3, 3>>>();
}
TEST_CASE("optimize_layout: before and behind passes that fuse") {
  // a product's kernel stores row-major, so no fused one may end in what is channels-last
  using fused = of<product_before, in<2, 80, 5, 5>, in<5, 5>, in<80, 80, 3, 3>>;
  same_bits<fused, sw::fuse_kernels>();
  same_bits<two_gradients, sw::fuse_pointwise>();
  CHECK(outputs_of<fused::step<sw::fuse_kernels, ruled>>() == outputs_of<fused::step<sw::fuse_kernels>>());
  CHECK(outputs_of<two_gradients::step<sw::fuse_kernels, ruled>>() == outputs_of<two_gradients::step<sw::fuse_kernels>>());
}
TEST_CASE("optimize_layout: texts of graphs say what is channels-last") {
  const std::string text = sw::to_text(two_on::program);
  CHECK(text.find("%conv2d = conv2d(%contiguous, %contiguous_1) (2, 80, 4, 4) [replicate] channels_last\n") !=
        std::string::npos);
  CHECK(text.find("%conv2d_1 = conv2d(%relu, %contiguous_2) (2, 80, 2, 2) [replicate]\n") != std::string::npos);
}

// Verification takes a channels-last result of kernels that go by strides, and of no other.
struct pixels {
  constexpr auto operator()(const auto& x) const { return sw::relu(x); }
};
struct rows {
  constexpr auto operator()(const auto& x) const { return sw::softmax<3>(x); }
};
template <class F>
bool is_taken_turned() {
  sw::graph<16, 16> g;
  sw::copy_into(g, of<F, in<2, 3, 5, 4>>::template step<>::program);
  sw::node& n = g.nodes[g.outputs[0]];
  sw::spec s = g.specs[n.spec];
  sw::make_channels_last(s);
  n.spec = g.spec_count;
  g.specs[g.spec_count++] = s;
  return !sw::verify(g);
}
TEST_CASE("memory formats: verification takes channels-last results of kernels that go by strides alone") {
  CHECK(is_taken_turned<pixels>());
  CHECK(!is_taken_turned<rows>());
}

// --- random graphs -----------------------------------------------------------------------------------------------------------------

using random_images::graph_nodes;
using random_images::maker;
using large = sw::graph<4 * graph_nodes, 4 * graph_nodes, 1, 8>;

template <int Ranks>
void random_graphs() {
  int moved = 0, in = 0, back = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    large before;
    sw::copy_into(before, maker(seed).finish(Ranks));
    REQUIRE(!sw::verify(before));
    large after = before;
    sw::pass_sequence<large> passes;
    INFO("seed " << seed << "\n" << sw::to_text(before));
    REQUIRE(passes.apply(sw::entry_of<sw::optimize_layout<layout_mode::force>, large>(), after).text == "");
    INFO(sw::to_text(after));
    REQUIRE(!sw::verify(after));
    for (int i = 0; i < after.node_count; ++i) {
      const bool copy = after.nodes[i].op == op_code::contiguous;
      moved += !copy && turned(after.spec_of(i)) ? 1 : 0;
      in += copy && turned(after.spec_of(i)) ? 1 : 0;
      back += copy && !turned(after.spec_of(i)) && turned(after.spec_of(after.nodes[i].in[0])) ? 1 : 0;
    }
    std::vector<int> wrong(Ranks, 0);
    sw::launch<mesh<Ranks>>([&](auto& rank) {
      sw::eager<std::remove_reference_t<decltype(rank)>> e(rank);
      const auto want = test::run_graph<random_images::kernels>(e, before);
      wrong[static_cast<std::size_t>(rank.index())] = test::run_graph<random_images::kernels>(e, after) == want ? 0 : 1;
    });
    for (const int w : wrong) REQUIRE(w == 0);
  }
  CHECK(moved > 200);
  CHECK(in > 150);
  CHECK(back > 8);
}
TEST_CASE("optimize_layout: random graphs of convolutions give the same bits on one rank and on two") {
  random_graphs<1>();
  random_graphs<2>();
}

// --- stages --------------------------------------------------------------------------------------------------------------------------

template <class Program>
struct source {
  static constexpr const auto& value = Program::program;
};
template <class Program, int Nodes>
void in_stages_of() {
  using pass = ruled;
  const auto& staged = pass::template in_stages<source<Program>, Nodes>::value;
  using graph_type = std::remove_cvref_t<decltype(Program::program)>;
  sw::graph<2 * graph_type::node_capacity, 2 * graph_type::spec_capacity, graph_type::scope_capacity,
            graph_type::output_capacity>
      g;
  sw::copy_into(g, Program::program);
  REQUIRE(!pass::apply(g));
  CHECK(sw::to_text(staged) == sw::to_text(g));
}
TEST_CASE("optimize_layout: constants become the graphs that run-time graphs do, in stages of any size") {
  in_stages_of<two_gradients::step<>, 1>();
  in_stages_of<two_gradients::step<>, 7>();
  in_stages_of<two_gradients::step<>, 1000>();
  in_stages_of<constrained_in::step<>, 2>();
  in_stages_of<constrained_in::step<>, 1000>();
}

}  // namespace
