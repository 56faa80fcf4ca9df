// SPDX-License-Identifier: Apache-2.0
// optimize_layout by estimated time: the decision, branch by branch; the estimate is of the graph that the pass would make; a graph that
// gains nothing is returned as it was, one that gains is what force makes of it; what is decided of the models that were measured.
#include <shardwise/graph/text/render.hpp>
#include <shardwise/pass/framework/sequence.hpp>
#include <shardwise/pass/layout/layout.hpp>
#include <shardwise/pass/layout/report.hpp>
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <figures.hpp>
#include <random_graph.hpp>
#include <random_images.hpp>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
namespace rates = sw::layout_rates;
using sw::convolution_kernels;
using sw::convolution_kind;
using sw::layout_mode;
using sw::layout_reason;
using sw::op_code;

template <convolution_kernels Kernels, class Splitter = sw::whole_graph>
using by_time = sw::optimize_layout<layout_mode::automatic, sw::weight_storage::as_declared, Splitter, Kernels>;
using built_in = by_time<convolution_kernels::built_in>;
using onednn = by_time<convolution_kernels::onednn>;
using forced = sw::optimize_layout<layout_mode::force>;
// what a source that links no library gets by default
static_assert(std::is_same_v<built_in, sw::optimize_layout<>> == (sw::linked_convolutions == convolution_kernels::built_in));

// --- the decision ------------------------------------------------------------------------------------------------------------------

constexpr sw::layout_facts facts(double as_it_is, double channels_last, double copies) {
  sw::layout_facts f;
  f.convolutions = 1;
  f.as_it_is = as_it_is;
  f.channels_last = channels_last;
  f.copies = copies;
  return f;
}
template <class Change>
constexpr sw::layout_decision decided(double as_it_is, double channels_last, Change change) {
  sw::layout_facts f = facts(as_it_is, channels_last, 1);
  change(f);
  return sw::decide_layout(layout_mode::automatic, f);
}
constexpr auto unchanged = [](sw::layout_facts&) {};
// A gain of less than the margin is none, copies alone are none.
static_assert(decided(110.1, 100, unchanged) == sw::layout_decision{true, layout_reason::faster});
static_assert(decided(109.9, 100, unchanged) == sw::layout_decision{false, layout_reason::no_gain});
static_assert(decided(0, 0, unchanged) == sw::layout_decision{false, layout_reason::no_gain});
static_assert(decided(100, 200, unchanged) == sw::layout_decision{false, layout_reason::no_gain});
// Both estimates are reported.
static_assert(decided(300, 100, unchanged).time_as_it_is == 300 && decided(300, 100, unchanged).time_channels_last == 100 &&
              decided(300, 100, unchanged).time_of_copies == 1);
// The automatic mode decides by time and by nothing else, also where the other modes' questions would decide otherwise.
static_assert([] {
  sw::layout_facts f = facts(300, 100, 1);
  f.nodes = 10000;
  f.library = f.any_grouped = f.any_narrows = true;
  return sw::decide_layout_by_time(f) == sw::decide_layout(layout_mode::automatic, f) &&
         sw::decide_layout_by_time(f) == sw::layout_decision{true, layout_reason::faster};
}());
// At a smaller size the loss may be up to the tolerance, that included.
constexpr sw::layout_decision at_least(double channels_last) {
  sw::layout_facts f = facts(300, 100, 1);
  f.least_as_it_is = 64;
  f.least_channels_last = channels_last;
  return sw::decide_layout_by_time(f);
}
static_assert(at_least(64 * sw::layout_tolerance).why == layout_reason::faster &&
              at_least(64 * sw::layout_tolerance * 1.001).why == layout_reason::loses_below &&
              at_least(64 * sw::layout_tolerance * 1.001).least_channels_last > at_least(64).least_channels_last);
// Sizes that nobody names are the pass's default.
static_assert(std::is_same_v<sw::optimize_layout<layout_mode::automatic, sw::weight_storage::as_declared, sw::whole_graph,
                                                 sw::linked_convolutions, sw::any_sizes>,
                             sw::optimize_layout<>> &&
              !sw::any_sizes::is_named && sw::expected_sizes<8>::is_named);
// Each test comes before those behind it.
static_assert(decided(300, 100, [](auto& f) {
                f.convolutions = 0;
                f.run_time = true;
                f.measured = false;
              }).why == layout_reason::no_convolution);
// A run-time size is no reason by itself; that a smaller one loses more than the tolerance is.
static_assert(decided(300, 100, [](auto& f) { f.run_time = true; }).channels_last);
static_assert(decided(300, 100, [](auto& f) {
                f.least_as_it_is = 100;
                f.least_channels_last = 109.9;
              }).channels_last);
static_assert(decided(300, 100, [](auto& f) {
                f.least_as_it_is = 100;
                f.least_channels_last = 110.1;
              }) == sw::layout_decision{false, layout_reason::loses_below});
static_assert(decided(100, 300, [](auto& f) {
                f.least_as_it_is = 100;
                f.least_channels_last = 110.1;
              }).why == layout_reason::no_gain);
static_assert(decided(300, 100, [](auto& f) { f.measured = false; }).why == layout_reason::unmeasured);
// A graph of adjoints alone has convolutions; what torch.compile's rule asks beside them is not asked.
static_assert(decided(300, 100, [](auto& f) {
                f.convolutions = 0;
                f.adjoints = 1;
                f.nodes = 1000;
                f.any_grouped = f.all_small = f.training = true;
              }).channels_last);

// --- the table -----------------------------------------------------------------------------------------------------------------------

static_assert(sw::convolution_kind_of(3, 64, 49, 1) == convolution_kind::few_inputs);
static_assert(sw::convolution_kind_of(4, 64, 1, 1) == convolution_kind::few_inputs);
static_assert(sw::convolution_kind_of(5, 64, 1, 1) == convolution_kind::pixels);
static_assert(sw::convolution_kind_of(5, 3, 9, 1) == convolution_kind::windows);
static_assert(sw::convolution_kind_of(1, 1, 49, 64) == convolution_kind::depthwise);
static_assert(sw::convolution_kind_of(1, 2, 9, 64) == convolution_kind::small_groups);
static_assert(sw::convolution_kind_of(8, 8, 1, 2) == convolution_kind::small_groups);
static_assert(sw::convolution_kind_of(8, 9, 1, 2) == convolution_kind::large_groups);
static_assert(sw::passes::log2_of(0) == 0 && sw::passes::log2_of(1) == 0 && sw::passes::log2_of(2) == 1 &&
              sw::passes::log2_of(3) == 1.5 && sw::passes::log2_of(1024) == 10 && sw::passes::log2_of(1536) == 10.5);

namespace found = sw::passes::layout_rates_found;
// All is measured, and every kind has the rows that an estimate is the mean of.
static_assert([] {
  int of_kind[6]{};
  for (int r = 0; r < found::count; ++r) {
    ++of_kind[static_cast<int>(found::all.of[r].kind)];
    for (const std::int64_t s : rates::rows[r].shape)
      if (s < 1) return false;
    for (const auto& kernels : rates::rows[r].picoseconds)
      for (const double p : kernels)
        if (p < 1) return false;
  }
  for (const int n : of_kind)
    if (n < 4) return false;
  return true;
}());

sw::passes::convolution_work work_of(int row) {
  sw::passes::convolution_work w;
  w.kind = found::all.of[row].kind;
  w.at = found::all.of[row].at;
  w.multiplications = 1e6;
  return w;
}
TEST_CASE(
    "layout by time: a convolution that was measured takes nearly what was measured, and twice the work twice the time") {
  int near = 0, all = 0;
  for (int r = 0; r < found::count; ++r)
    for (const auto kernels : {convolution_kernels::built_in, convolution_kernels::onednn})
      for (int c = 0; c < 8; ++c) {
        auto w = work_of(r);
        const auto t = w.nanoseconds(kernels, c, c);
        const double measured = rates::rows[r].picoseconds[static_cast<int>(kernels)][c] * 1e3;
        CHECK(t.first == t.second);
        ++all;
        near += t.first < 1.25 * measured && t.first > measured / 1.25 ? 1 : 0;
        w.multiplications *= 2;
        CHECK(w.nanoseconds(kernels, c, c).first == 2 * t.first);
        // never beyond what rows of the kind have
        double least = 1e300, most = 0;
        for (int o = 0; o < found::count; ++o)
          if (found::all.of[o].kind == w.kind) {
            const double p = rates::rows[o].picoseconds[static_cast<int>(kernels)][c] * 1e3;
            least = p < least ? p : least;
            most = p > most ? p : most;
          }
        CHECK(t.first >= least * (1 - 1e-12));
        CHECK(t.first <= most * (1 + 1e-12));
      }
  CHECK(near * 10 > all * 9);
}
TEST_CASE("layout by time: more elements take longer to copy") {
  CHECK(sw::passes::copy_nanoseconds(0) == 0);
  for (const auto& c : rates::copies)
    CHECK(sw::passes::copy_nanoseconds(c.elements) == doctest::Approx(c.elements * c.nanoseconds));
  double before = 0;
  for (double n = 64; n < 1e9; n *= 1.3) {
    const double t = sw::passes::copy_nanoseconds(n);
    CHECK(t > before);
    before = t;
  }
}

// --- programs ------------------------------------------------------------------------------------------------------------------------

struct line : sw::axis<1> {};
using mesh = sw::mesh<line>;
using options = sw::convolution_options;
template <std::int64_t... E>
using in = sw::input_tensor<float, sw::shape<E...>>;

// The golden case conv_3conv_grouped_dim64, whose gradients of the weights are asked for.
template <int N, int H>
struct three {
  constexpr auto operator()(const auto& x, const auto& a, const auto& b, const auto& c) const {
    return sw::conv2d(sw::conv2d<options{.padding = "same", .groups = 64}>(sw::conv2d<options{.stride = 7}>(x, a), b), c);
  }
  template <class... P>
  using step = sw::gradient_step<three, mesh, sw::inputs<in<N, 3, H, H>, in<64, 3, 7, 7>, in<64, 1, 7, 7>, in<64, 64, 1, 1>>,
                                 sw::wrt<1, 2, 3>, sw::pipeline<P...>>;
};
template <int N, int C, int H, int O, int K, int Stride, int Padding, int Groups, class T = float>
struct one {
  constexpr auto operator()(const auto& x, const auto& w) const {
    return sw::conv2d<options{.stride = Stride, .padding = Padding, .groups = Groups}>(x, w);
  }
  template <class... P>
  using step = sw::gradient_step<
      one, mesh, sw::inputs<sw::input_tensor<T, sw::shape<N, C, H, H>>, sw::input_tensor<T, sw::shape<O, C / Groups, K, K>>>,
      sw::wrt<0, 1>, sw::pipeline<P...>>;
};
template <class Program, class Pass>
constexpr sw::layout_decision of = Pass::decide(Program::template step<>::program);
template <class Program, class Pass>
constexpr bool is_left_alone =
    Program::template step<Pass>::program.node_count == Program::template step<>::program.node_count;

// What bench/results/convolution.md has of these.
static_assert(of<three<2, 16>, built_in>.channels_last && of<three<2, 16>, onednn>.channels_last);
static_assert(of<three<8, 224>, built_in>.channels_last && of<three<8, 224>, onednn>.channels_last);
static_assert(!is_left_alone<three<2, 16>, built_in> && !is_left_alone<three<8, 224>, onednn>);
using pointwise = one<2, 256, 28, 128, 1, 1, 0, 1>;
using strided = one<2, 128, 56, 128, 3, 2, 1, 1>;
using depthwise = one<4, 128, 28, 128, 3, 1, 1, 128>;
static_assert(of<pointwise, built_in> == sw::layout_decision{false, layout_reason::no_gain});
static_assert(of<pointwise, onednn> == sw::layout_decision{false, layout_reason::no_gain});
static_assert(of<strided, onednn> == sw::layout_decision{false, layout_reason::no_gain});
static_assert(of<depthwise, onednn> == sw::layout_decision{false, layout_reason::no_gain});
using blurring = one<8, 64, 32, 64, 7, 1, 3, 64>;
static_assert(of<blurring, built_in> == sw::layout_decision{true, layout_reason::faster});
static_assert(is_left_alone<pointwise, built_in> && is_left_alone<strided, onednn> && is_left_alone<depthwise, onednn> &&
              !is_left_alone<blurring, built_in>);
// oneDNN takes no doubles: the built-in kernels' rates, and twice the time.
using blurring_double = one<8, 64, 32, 64, 7, 1, 3, 64, double>;
static_assert(of<blurring_double, onednn>.channels_last &&
              of<blurring_double, onednn>.time_as_it_is == 2 * of<blurring, built_in>.time_as_it_is &&
              of<blurring_double, onednn>.time_of_copies == 2 * of<blurring, built_in>.time_of_copies);
// A size that is known at run time alone: the estimate at its bound is that of the static program, at 1 that of another one.
template <std::int64_t N, int C, int H, int O, int K, int Groups>
struct batch_of {
  constexpr auto operator()(const auto& x, const auto& w) const {
    return sw::conv2d<options{.padding = K / 2, .groups = Groups}>(x, w);
  }
  template <class... P>
  using step = sw::gradient_step<batch_of, mesh, sw::inputs<in<N, C, H, H>, in<O, C / Groups, K, K>>, sw::wrt<0, 1>,
                                 sw::pipeline<P...>>;
};
template <std::int64_t N>
using blurred = batch_of<N, 64, 32, 64, 7, 64>;
constexpr sw::layout_decision any_batch = of<blurred<sw::dyn<16>>, built_in>;
static_assert(any_batch == sw::layout_decision{true, layout_reason::faster} && any_batch.at == sw::run_sizes(16));
static_assert(any_batch.time_as_it_is == of<blurred<16>, built_in>.time_as_it_is &&
              any_batch.time_channels_last == of<blurred<16>, built_in>.time_channels_last &&
              any_batch.time_of_copies == of<blurred<16>, built_in>.time_of_copies);
static_assert([] {
  const auto& least = any_batch.least_at == sw::run_sizes(1) ? of<blurred<1>, built_in> : of<blurred<4>, built_in>;
  return any_batch.least_as_it_is == least.time_as_it_is && any_batch.least_channels_last == least.time_channels_last;
}());
static_assert(!is_left_alone<blurred<sw::dyn<16>>, built_in>);
// What is expected decides alone, within the bound.
template <std::int64_t... N>
using expecting = sw::optimize_layout<layout_mode::automatic, sw::weight_storage::as_declared, sw::whole_graph,
                                      convolution_kernels::built_in, sw::expected_sizes<N...>>;
static_assert(of<blurred<sw::dyn<16>>, expecting<3>>.time_as_it_is == of<blurred<3>, built_in>.time_as_it_is &&
              of<blurred<sw::dyn<16>>, expecting<3>>.at == sw::run_sizes(3) &&
              of<blurred<sw::dyn<16>>, expecting<3>>.least_as_it_is == 0);
static_assert(!is_left_alone<blurred<sw::dyn<16>>, expecting<3>>);
// A gain at the bound that is a loss at 1 is none: the weights' copies, which take as long for one image as for 64.
template <std::int64_t N>
struct forward_of : batch_of<N, 512, 2, 512, 3, 1> {
  template <class... P>
  using step = sw::function_step<batch_of<N, 512, 2, 512, 3, 1>, mesh, sw::inputs<in<N, 512, 2, 2>, in<512, 512, 3, 3>>,
                                 sw::pipeline<P...>>;
};
constexpr sw::layout_decision of_many = of<forward_of<sw::dyn<64>>, built_in>;
static_assert(of_many == sw::layout_decision{false, layout_reason::loses_below} && of_many.least_at == sw::run_sizes(1) &&
              of<forward_of<64>, built_in>.channels_last && !of<forward_of<1>, built_in>.channels_last);
static_assert(is_left_alone<forward_of<sw::dyn<64>>, built_in> && !is_left_alone<forward_of<sw::dyn<64>>, expecting<64>>);
// A rank's own block counts: sharded over two ranks, half the convolutions and half the image's copies.
struct pair_of : sw::axis<2> {};
struct two_ranks {
  constexpr auto operator()(const auto& x, const auto& w) const {
    return sw::conv2d<options{.padding = 1, .groups = 128}>(x, w);
  }
  template <class... P>
  using step =
      sw::function_step<two_ranks, sw::mesh<pair_of>,
                        sw::inputs<sw::input_tensor<float, sw::shape<8, 128, 28, 28>, sw::on<pair_of, sw::shard<0>>>,
                                   sw::input_tensor<float, sw::shape<128, 1, 3, 3>, sw::on<pair_of, sw::reduced>>>,
                        sw::pipeline<P...>>;
};
struct one_rank {
  constexpr auto operator()(const auto& x, const auto& w) const {
    return sw::conv2d<options{.padding = 1, .groups = 128}>(x, w);
  }
  template <class... P>
  using step = sw::function_step<one_rank, mesh, sw::inputs<in<4, 128, 28, 28>, in<128, 1, 3, 3>>, sw::pipeline<P...>>;
};
static_assert(of<two_ranks, built_in>.time_as_it_is == of<one_rank, built_in>.time_as_it_is &&
              of<two_ranks, built_in>.time_of_copies == of<one_rank, built_in>.time_of_copies);

// Parts are decided one by one: the last convolution alone would be copied in and out for nothing.
template <class Bound = sw::unbound>
struct depthwise_then_pixels : sw::module<depthwise_then_pixels<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<512, 1, 7, 7>, sw::init::zeros>, depthwise),
                    (sw::parameter<sw::shape<512, 512, 1, 1>, sw::init::zeros>, pixels));
  constexpr auto forward(const auto& x) const {
    return sw::conv2d(sw::conv2d<options{.padding = 3, .groups = 512}>(sw::relu(x), depthwise), pixels);
  }
};
struct sum_of_outputs {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<2, 512, 14, 14>, sw::on<line, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::sum(model(x)); }
};
template <class... Passes>
using trained = sw::train_step<depthwise_then_pixels, sum_of_outputs, sw::plan<sw::data_parallel<line>>, mesh, sw::sgd<>,
                               sw::pipeline<Passes...>>;
using in_parts = by_time<convolution_kernels::built_in, sw::ddp_buckets<>>;
constexpr sw::layout_decision first_part = in_parts::decide(trained<>::program, 0),
                              last_part = in_parts::decide(trained<>::program, 1);
static_assert(first_part.channels_last && !last_part.channels_last && last_part.why == layout_reason::no_gain);
static_assert(in_parts::decide(trained<>::program, 2).why == layout_reason::no_convolution);
template <class Graph>
constexpr int turned(const Graph& g) {
  int n = 0;
  for (int i = 0; i < g.node_count; ++i) n += sw::is_channels_last(g.spec_of(i)) && !sw::is_contiguous(g.spec_of(i)) ? 1 : 0;
  return n;
}
static_assert(turned(trained<in_parts>::program) > 0 && !sw::verify(trained<in_parts>::program));

std::vector<float> outputs_of(auto step) {
  using program = typename decltype(step)::type;
  std::vector<float> r;
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<program> e(rank, sw::executor_checks::poison);
    constexpr const auto& g = program::program;
    for (int i = 0; i < g.node_count; ++i) {
      if (g.nodes[i].op != op_code::input) continue;
      const int k = static_cast<int>(sw::attributes_of<sw::leaf_attributes>(g.nodes[i].a).index);
      std::vector<float> v;
      for (const double x : figures::some(static_cast<std::size_t>(sw::numel(g.spec_of(i))), k))
        v.push_back(static_cast<float>(x));
      e.set_input(k, v);
    }
    e.run({});
    for (int k = 0; k < g.output_count; ++k) {
      const auto b = e.template output<float>(k);
      sw::runtime::each_element(b.layout,
                                [&](std::int64_t at, std::int64_t) { r.push_back(b.data[static_cast<std::size_t>(at)]); });
    }
  });
  return r;
}
TEST_CASE("layout by time: what is turned by default gives the same bits") {
  CHECK(outputs_of(std::type_identity<three<2, 16>::step<built_in>>{}) ==
        outputs_of(std::type_identity<three<2, 16>::step<>>{}));
  CHECK(outputs_of(std::type_identity<blurring::step<built_in>>{}) == outputs_of(std::type_identity<blurring::step<>>{}));
}
TEST_CASE("layout by time: the decision says its reason and both estimates") {
  CHECK(sw::to_text(decided(157.26, 47.14, unchanged)) ==
        "channels-last: estimated to be faster, 47.1 us (1.00 us of it copies) in place of 157 us");
  CHECK(
      sw::to_text(decided(1512.4, 1499.6, unchanged)) ==
      "as it is: channels-last is not estimated to be faster by a tenth, 1.50 ms (1.00 us of it copies) in place of 1.51 ms");
  const std::string text = sw::to_text(any_batch);
  CHECK(text.find("channels-last: estimated to be faster, ") == 0);
  CHECK(text.find(" at size 16, ") != std::string::npos);
  CHECK(text.find(any_batch.least_at == sw::run_sizes(1) ? " at size 1" : " at size 4", text.find(" at size 16, ") + 10) !=
        std::string::npos);
  CHECK(sw::detail::sizes_text({}) == "");
  CHECK(sw::detail::sizes_text({-1, 7}) == " at size 7");
  CHECK(sw::detail::sizes_text({4, 512}) == " at sizes 4, 512");
  CHECK(sw::to_text(forced::decide(pointwise::step<>::program)) == "channels-last: forced");
  CHECK(sw::to_text(of<three<2, 16>, built_in>).find("channels-last: estimated to be faster, ") == 0);
  CHECK(sw::detail::time_text(0.004) == "0.00 us");
  CHECK(sw::detail::time_text(9.996) == "10.00 us");
  CHECK(sw::detail::time_text(12345) == "12.3 ms");
}

// --- random graphs ---------------------------------------------------------------------------------------------------------------------

using large = sw::graph<4 * random_images::graph_nodes, 4 * random_images::graph_nodes, 1, 8>;

// What a graph takes as it is stored: convolutions, and copies from one format to the other. No function of elements reads across
// formats.
struct stored_times {
  double convolutions = 0, copies = 0;
  explicit stored_times(const large& g) {
    sw::passes::layout_choice<large::node_capacity> whole;
    sw::passes::layout_plan<large::node_capacity> nothing;
    whole.find<layout_mode::force, sw::whole_graph>(g);
    for (int i = 0; i < large::node_capacity; ++i) nothing.last[i] = nothing.convolves[i] = false;
    sw::passes::layout_times<1> t;
    t.clear();
    t.add_convolutions(g, whole.parts.of, nothing, convolution_kernels::built_in, 0, g.node_count);
    convolutions = t.as_it_is[0];
    const int origin[sw::max_axes]{};
    const auto last = [&](int i) { return sw::is_channels_last(g.spec_of(i)) && !sw::is_contiguous(g.spec_of(i)); };
    for (int i = 0; i < g.node_count; ++i)
      for (int k = 0; k < g.nodes[i].inputs; ++k) {
        const int x = g.nodes[i].in[k];
        if (g.spec_of(x).rank != 4 || g.spec_of(i).rank != 4 || last(x) == last(i) ||
            sw::numel(g.spec_of(x)) != sw::numel(g.spec_of(i)))
          continue;
        if (g.nodes[i].op == op_code::contiguous)
          copies += sw::passes::copy_nanoseconds(static_cast<double>(sw::local_numel(g.spec_of(x), origin)));
        else CHECK(sw::record_of(g, g.nodes[i]).kind != sw::operation_kind::pointwise);
      }
  }
};

template <int Ranks>
void random_graphs() {
  int gained = 0, left = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    large before;
    sw::copy_into(before, random_images::maker(seed, seed % 3 == 0 ? 3 : 64, seed % 3 == 1 ? 64 : 1).finish(Ranks));
    large after = before, turned_anyway = before;
    sw::pass_sequence<large> passes, others;
    INFO("seed " << seed << "\n" << sw::to_text(before));
    REQUIRE(passes.apply(sw::entry_of<built_in, large>(), after).text == "");
    REQUIRE(others.apply(sw::entry_of<forced, large>(), turned_anyway).text == "");
    const sw::layout_decision d = built_in::decide(before);
    REQUIRE(sw::to_text(after) == sw::to_text(d.channels_last ? turned_anyway : before));
    if (d.why == layout_reason::no_convolution) continue;
    REQUIRE(d.channels_last == (d.time_channels_last * sw::layout_margin < d.time_as_it_is));
    (d.channels_last ? gained : left) += 1;
    // the estimate is of the graph that is made
    const stored_times as_it_is(before), then(turned_anyway);
    CHECK(d.time_as_it_is == doctest::Approx(as_it_is.convolutions / 1e3));
    CHECK(d.time_of_copies == doctest::Approx(then.copies / 1e3));
    CHECK(d.time_channels_last == doctest::Approx((then.convolutions + then.copies) / 1e3));
  }
  CHECK(gained > 5);
  CHECK(left > 5);
}
TEST_CASE(
    "layout by time: a random graph is left alone or turned as its estimate says, and that is of the graph that comes of it") {
  random_graphs<1>();
  random_graphs<2>();
}

TEST_CASE("layout by time: nothing is known of own kernels on GPUs") {
  large g;
  sw::copy_into(g, depthwise::step<>::program);
  for (int s = 0; s < g.spec_count; ++s) g.specs[s].device = sw::device_kind::cuda;
  CHECK(built_in::decide(g) == sw::layout_decision{false, layout_reason::unmeasured});
  CHECK(sw::optimize_layout<layout_mode::torch>::decide(g) == sw::layout_decision{true, layout_reason::training});
}
// Which kernels compute on which device: the one that is named, where it does; else what the source is linked with.
constexpr auto host = sw::device_kind::host, cuda = sw::device_kind::cuda;
static_assert(sw::convolutions_on(host, convolution_kernels::built_in) == convolution_kernels::built_in &&
              sw::convolutions_on(cuda, convolution_kernels::built_in) == convolution_kernels::built_in &&
              sw::convolutions_on(host, convolution_kernels::onednn) == convolution_kernels::onednn &&
              sw::convolutions_on(cuda, convolution_kernels::onednn) == sw::linked_device_convolutions &&
              sw::convolutions_on(host, convolution_kernels::cudnn) == sw::linked_host_convolutions &&
              sw::convolutions_on(cuda, convolution_kernels::cudnn_tf32) == convolution_kernels::cudnn_tf32);
static_assert(sw::passes::rates_of_elements(sw::dtype::f32, convolution_kernels::cudnn) == 0 &&
              sw::passes::rates_of_elements(sw::dtype::f32, convolution_kernels::cudnn_tf32) == 1 &&
              sw::passes::rates_of_elements(sw::dtype::bf16, convolution_kernels::cudnn_tf32) == 2 &&
              sw::passes::rates_of_elements(sw::dtype::f16, convolution_kernels::cudnn) == 2);
// cuDNN's table, once it is measured, is as whole as that of hosts.
static_assert(!sw::layout_rates_cudnn::is_measured || [] {
  int of_kind[6]{};
  for (int r = 0; r < found::of_cudnn.count; ++r) {
    ++of_kind[static_cast<int>(found::of_cudnn.of[r].kind)];
    for (const auto& elements : sw::layout_rates_cudnn::rows[r].picoseconds)
      for (const double p : elements)
        if (!(p > 0)) return false;
  }
  for (const int n : of_kind)
    if (n < 4) return false;
  for (const auto& c : sw::layout_rates_cudnn::copies)
    if (!(c.nanoseconds[0] > 0 && c.nanoseconds[1] > 0)) return false;
  return true;
}());
using by_cudnn = by_time<convolution_kernels::cudnn>;
using by_tf32 = by_time<convolution_kernels::cudnn_tf32>;
TEST_CASE("layout by time: programs for GPUs are decided by cuDNN's table, where it is measured") {
  large g;
  sw::copy_into(g, depthwise::step<>::program);
  for (int s = 0; s < g.spec_count; ++s) g.specs[s].device = sw::device_kind::cuda;
  for (const sw::layout_decision& d : {by_cudnn::decide(g), by_tf32::decide(g)}) {
    if (!sw::layout_rates_cudnn::is_measured) {
      CHECK(d == sw::layout_decision{false, layout_reason::unmeasured});
      continue;
    }
    CHECK((d.why == layout_reason::faster || d.why == layout_reason::no_gain));
    CHECK(d.time_as_it_is > 0);
    CHECK(d.time_of_copies > 0);
    CHECK(d.time_channels_last > d.time_of_copies);
  }
  for (int s = 0; s < g.spec_count; ++s) g.specs[s].type = sw::dtype::f64;  // of which nothing is measured
  CHECK(by_cudnn::decide(g) == sw::layout_decision{false, layout_reason::unmeasured});
}
TEST_CASE("layout by rule: where oneDNN computes all of a program, torch.compile turns it") {
  using by_rule =
      sw::optimize_layout<layout_mode::torch, sw::weight_storage::as_declared, sw::whole_graph, convolution_kernels::onednn>;
  CHECK(by_rule::decide(three<2, 16>::step<>::program) == sw::layout_decision{true, layout_reason::library});
  CHECK(by_rule::decide(blurring_double::step<>::program) == sw::layout_decision{false, layout_reason::all_small});
}

// --- stages --------------------------------------------------------------------------------------------------------------------------

template <class Program>
struct source {
  static constexpr const auto& value = Program::program;
};
template <class Pass, class Program, int Nodes>
void in_stages_of() {
  const auto& staged = Pass::template in_stages<source<Program>, Nodes>::value;
  using graph_type = std::remove_cvref_t<decltype(Program::program)>;
  sw::graph<2 * graph_type::node_capacity, 2 * graph_type::spec_capacity, graph_type::scope_capacity,
            graph_type::output_capacity>
      g;
  sw::copy_into(g, Program::program);
  REQUIRE(!Pass::apply(g));
  CHECK(sw::to_text(staged) == sw::to_text(g));
}
TEST_CASE("layout by time: constants become the graphs that run-time graphs do, in stages of any size") {
  in_stages_of<built_in, three<2, 16>::step<>, 1>();
  in_stages_of<built_in, three<2, 16>::step<>, 1000>();
  in_stages_of<built_in, pointwise::step<>, 3>();
  in_stages_of<in_parts, trained<>, 1000>();
}

}  // namespace
