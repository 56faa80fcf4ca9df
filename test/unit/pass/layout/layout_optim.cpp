// SPDX-License-Identifier: Apache-2.0
// What PyTorch's suite of the layout optimisation asks, test by test, at its sizes: parts of a model that data parallelism splits, outputs
// that keep their strides, gradients, writes in place, sizes known at run time, the loss that needs contiguous rows.
#include <shardwise/pass/layout/layout.hpp>
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <figures.hpp>

#include <cmath>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::op_code;

struct line : sw::axis<1> {};
using mesh = sw::mesh<line>;

template <class Graph>
constexpr int count_of(const Graph& g, op_code op) {
  int n = 0;
  for (int i = 0; i < g.node_count; ++i) n += g.nodes[i].op == op ? 1 : 0;
  return n;
}
// What the last write of an input in a program is of, -1: nothing writes any.
template <class Graph>
constexpr int copied_back(const Graph& g) {
  int from = -1;
  for (int i = 0; i < g.node_count; ++i)
    if (g.nodes[i].op == op_code::assign && g.nodes[g.nodes[i].in[0]].op == op_code::input) from = g.nodes[i].in[1];
  return from;
}
template <class Graph>
constexpr bool has_extents(const Graph& g, int output, std::initializer_list<std::int64_t> extents) {
  const sw::spec& s = g.spec_of(g.outputs[output]);
  int d = 0;
  bool same = s.rank == static_cast<int>(extents.size());
  for (const std::int64_t e : extents) same = same && s.extent[d++] == e;
  return same;
}
template <class Graph>
constexpr bool has_strides(const Graph& g, int output, std::initializer_list<std::int64_t> strides) {
  const sw::spec& s = g.spec_of(g.outputs[output]);
  int d = 0;
  bool same = s.rank == static_cast<int>(strides.size());
  for (const std::int64_t e : strides) same = same && s.stride[d++] == e;
  return same;
}

// --- writes in place -----------------------------------------------------------------------------------------------------------

struct mutate_view {
  constexpr auto operator()(const auto& x) const {
    const auto y = sw::view<3, 2>(x);
    return sw::mul_(y, 2);
  }
};
struct mutate_base {
  constexpr auto operator()(const auto& x) const {
    const auto y = sw::view<3, 2>(x);
    sw::mul_(x, 2);
    return y;
  }
};
using ones_of_six = sw::inputs<sw::input_tensor<float, sw::shape<2, 3>>>;

// The input's and the output's elements behind a run on ones; what the same function does to an eager tensor.
template <class F>
void on_ones(std::vector<float>& input, std::vector<float>& output, std::vector<float>& eager_input,
             std::vector<float>& eager_output) {
  const std::vector<float> ones(6, 1.0F);
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<sw::function_step<F, mesh, ones_of_six>> run(rank, sw::executor_checks::poison);
    run.set_input(0, ones);
    run.run({});
    for (const float v : run.output()) output.push_back(v);
    for (const float v : run.template input<float>(0)) input.push_back(v);
    sw::eager e(rank);
    auto x = sw::dtensor_of<float, sw::shape<2, 3>, mesh>::distribute(e, ones);
    const auto y = F{}(x);
    for (const float v : x.to_local().data) eager_input.push_back(v);
    for (const float v : y.to_local().data) eager_output.push_back(v);
  });
}

TEST_CASE("layout: test_mutate_view") {
  constexpr const auto& g = sw::function_step<mutate_view, mesh, ones_of_six>::program;
  // pure but for one copy back into the input, behind all else
  static_assert(!sw::has_mutation(g) && count_of(g, op_code::assign) == 1);
  static_assert(copied_back(g) >= 0 && g.nodes[copied_back(g)].op == op_code::reshape);
  static_assert(has_extents(g, 0, {3, 2}) && has_strides(g, 0, {2, 1}));
  std::vector<float> in, out, eager_in, eager_out;
  on_ones<mutate_view>(in, out, eager_in, eager_out);
  CHECK(in == std::vector<float>(6, 2.0F));
  CHECK(out == in);
  CHECK(eager_in == in);
  CHECK(eager_out == in);
}

TEST_CASE("layout: test_mutate_base") {
  constexpr const auto& g = sw::function_step<mutate_base, mesh, ones_of_six>::program;
  static_assert(!sw::has_mutation(g) && count_of(g, op_code::assign) == 1 && copied_back(g) >= 0);
  // the output is the view of the base as it is then
  constexpr int view = g.outputs[0];
  static_assert(g.nodes[view].op == op_code::reshape && g.nodes[g.nodes[view].in[0]].op == op_code::assign);
  static_assert(has_extents(g, 0, {3, 2}) && has_strides(g, 0, {2, 1}));
  std::vector<float> in, out, eager_in, eager_out;
  on_ones<mutate_base>(in, out, eager_in, eager_out);
  CHECK(in == std::vector<float>(6, 2.0F));
  CHECK(out == in);
  CHECK(eager_in == in);
  CHECK(eager_out == in);
}

// --- models of convolutions ----------------------------------------------------------------------------------------------------------

using options = sw::convolution_options;
using on = sw::optimize_layout<sw::layout_mode::torch>;  // the rule that the suite asks about
using in_parts = sw::optimize_layout<sw::layout_mode::torch, sw::weight_storage::as_declared, sw::ddp_buckets<>>;
using frozen = sw::optimize_layout<sw::layout_mode::torch, sw::weight_storage::frozen>;

constexpr bool turned(const sw::spec& s) { return sw::is_channels_last(s) && !sw::is_contiguous(s); }
// The program's k-th convolution.
template <class Graph>
constexpr int convolution(const Graph& g, int k) {
  for (int i = 0; i < g.node_count; ++i)
    if (sw::passes::convolving_of(g, g.nodes[i]) == sw::passes::convolving::forward && k-- == 0) return i;
  return -1;
}
// Whether it reads its image and its weight channels-last.
template <class Graph>
constexpr bool reads_turned(const Graph& g, int k) {
  const sw::node& n = g.nodes[convolution(g, k)];
  return turned(g.spec_of(n.in[0])) && turned(g.spec_of(n.in[1]));
}
constexpr bool strides_are(const sw::spec& s, std::initializer_list<std::int64_t> strides) {
  int d = 0;
  bool same = s.rank == static_cast<int>(strides.size());
  for (const std::int64_t e : strides) same = same && s.stride[d++] == e;
  return same;
}
// How data parallelism splits a program, and what is decided of each part.
template <class Step>
constexpr auto parts_of() {
  sw::passes::layout_choice<std::remove_cvref_t<decltype(Step::program)>::node_capacity> c;
  c.template find<sw::layout_mode::torch, sw::ddp_buckets<>>(Step::program);
  return c;
}
template <class Step>
constexpr sw::layout_decision decided(int part) {
  return sw::decide_layout(sw::layout_mode::torch,
                           sw::passes::layout_facts_of(Step::program, parts_of<Step>().parts.of, part));
}
template <class T>
std::vector<T> given(std::size_t n, double salt, double scale) {
  std::vector<T> v;
  for (const double x : figures::some(n, salt)) v.push_back(static_cast<T>(scale * x));
  return v;
}
template <class T, class E>
std::vector<T> as(const std::vector<E>& v) {
  return std::vector<T>(v.begin(), v.end());
}
// Row-major.
template <class T>
std::vector<T> values_of(const sw::local_block<T>& b) {
  std::vector<T> v;
  sw::runtime::each_element(b.layout,
                            [&](std::int64_t at, std::int64_t) { v.push_back(b.data[static_cast<std::size_t>(at)]); });
  return v;
}

template <class Bound = sw::unbound>
struct two_convolutions : sw::module<two_convolutions<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<512, 3, 3, 3>, sw::init::zeros>, first),
                    (sw::parameter<sw::shape<512, 512, 3, 3>, sw::init::zeros>, second));
  constexpr auto forward(const auto& x) const {
    return sw::conv2d<options{.stride = 2}>(sw::conv2d<options{.stride = 2}>(x, first), second);
  }
};
template <class Bound = sw::unbound>
struct three_convolutions : sw::module<three_convolutions<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<512, 3, 7, 7>, sw::init::zeros>, patches),
                    (sw::parameter<sw::shape<512, 1, 7, 7>, sw::init::zeros>, depthwise),
                    (sw::parameter<sw::shape<512, 512, 1, 1>, sw::init::zeros>, pixels));
  constexpr auto forward(const auto& x) const {
    return sw::conv2d(
        sw::conv2d<options{.padding = 3, .groups = 512}>(sw::conv2d<options{.stride = 7}>(x, patches), depthwise), pixels);
  }
};
template <class T>
struct sum_of_outputs {
  using inputs = sw::inputs<sw::input_tensor<T, sw::shape<2, 3, 16, 16>, sw::on<line, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const {
    const auto y = model(x);
    return sw::outputs(sw::named<"loss">(sw::sum(y)), sw::named<"y">(y));
  }
};
template <template <class> class Model, class... Passes>
using trained = sw::train_step<Model, sum_of_outputs<float>, sw::plan<sw::data_parallel<line>>, mesh, sw::sgd<>,
                               sw::pipeline<Passes...>>;

template <class T>
std::vector<T> whole_parameter(auto& run, int index, std::size_t size) {
  std::vector<T> w(size);
  run.gather_parameter(index, w);
  return w;
}
// One step from the weights given: the model's output, and the parameters behind the step.
template <class Step, class T>
std::vector<std::vector<T>> one_step(const std::vector<T>& x, const std::vector<std::vector<T>>& weights) {
  std::vector<std::vector<T>> r;
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<Step> run(rank, sw::executor_checks::poison);
    for (std::size_t k = 0; k < weights.size(); ++k) run.set_parameter(static_cast<int>(k), weights[k]);
    run.set_input(0, x);
    sw::step_env env;
    env.step = 1;
    env.lr = 0.5;
    run.run(env);
    r.push_back(values_of(run.template output<T>(1)));
    for (std::size_t k = 0; k < weights.size(); ++k)
      r.push_back(whole_parameter<T>(run, static_cast<int>(k), weights[k].size()));
  });
  return r;
}
// As torch's check against a reference of more digits: no further from it than twice as far as the eager result, or by rounding.
void close_as(const std::vector<float>& got, const std::vector<float>& eager, const std::vector<double>& exact) {
  REQUIRE(got.size() == exact.size());
  REQUIRE(eager.size() == exact.size());
  double mine = 0, other = 0, size = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    mine += (got[i] - exact[i]) * (got[i] - exact[i]);
    other += (eager[i] - exact[i]) * (eager[i] - exact[i]);
    size += exact[i] * exact[i];
  }
  CHECK(size > 0);
  CHECK(std::sqrt(mine / size) <= 2 * std::sqrt(other / size) + 1e-7);
}

// Split where data parallelism splits it, against the whole program without the pass, eager tensors, and those of double.
template <template <class> class Model, class F>
void in_parts_as_eager(const std::vector<std::vector<float>>& weights) {
  const auto x = given<float>(2 * 3 * 256, 0, 1);
  const auto split = one_step<trained<Model, in_parts>>(x, weights);
  const auto plain = one_step<trained<Model>>(x, weights);
  for (std::size_t k = 1; k < plain.size(); ++k) {
    CHECK(figures::apart(as<double>(split[k]), as<double>(weights[k - 1])) > 0);
    CHECK(figures::apart(as<double>(split[k]), as<double>(plain[k])) < 1e-4);
  }
  sw::launch<mesh>([&](auto& rank) {
    sw::eager e(rank);
    std::vector<std::vector<double>> exact;
    for (const auto& w : weights) exact.push_back(as<double>(w));
    close_as(split[0], values_of(F::template of<float>(e, x, weights).to_local()),
             values_of(F::template of<double>(e, as<double>(x), exact).to_local()));
  });
}
template <class T, std::int64_t... E>
using eager_of = sw::dtensor_of<T, sw::shape<E...>, mesh>;
struct two_eager {
  template <class T>
  static auto of(auto& e, const std::vector<T>& x, const std::vector<std::vector<T>>& w) {
    return sw::conv2d<options{.stride = 2}>(sw::conv2d<options{.stride = 2}>(eager_of<T, 2, 3, 16, 16>::distribute(e, x),
                                                                             eager_of<T, 512, 3, 3, 3>::distribute(e, w[0])),
                                            eager_of<T, 512, 512, 3, 3>::distribute(e, w[1]));
  }
};
struct three_eager {
  template <class T>
  static auto of(auto& e, const std::vector<T>& x, const std::vector<std::vector<T>>& w) {
    return sw::conv2d(sw::conv2d<options{.padding = 3, .groups = 512}>(
                          sw::conv2d<options{.stride = 7}>(eager_of<T, 2, 3, 16, 16>::distribute(e, x),
                                                           eager_of<T, 512, 3, 7, 7>::distribute(e, w[0])),
                          eager_of<T, 512, 1, 7, 7>::distribute(e, w[1])),
                      eager_of<T, 512, 512, 1, 1>::distribute(e, w[2]));
  }
};

TEST_CASE("layout: test_2conv_with_graph_break") {
  using plain = trained<two_convolutions>;
  using split = trained<two_convolutions, in_parts>;
  constexpr const auto& g = plain::program;
  static_assert(sw::numel(plain::program.spec_of(g.nodes[convolution(g, 0)].in[1])) * 4 == 55'296);
  static_assert(sw::numel(plain::program.spec_of(g.nodes[convolution(g, 1)].in[1])) * 4 == 9'437'184);
  // the second convolution alone fills the first bucket
  static_assert(parts_of<plain>().parts.count == 2);
  static_assert(parts_of<plain>().parts.of[convolution(g, 0)] == 0 && parts_of<plain>().parts.of[convolution(g, 1)] == 1);
  static_assert(decided<plain>(0) == sw::layout_decision{true, sw::layout_reason::training});
  static_assert(decided<plain>(1) == sw::layout_decision{true, sw::layout_reason::training});
  // within a part channels-last; what goes from one to the other, and the output, as the trace has it
  constexpr const auto& h = split::program;
  static_assert(reads_turned(h, 0) && reads_turned(h, 1));
  static_assert(strides_are(h.spec_of(convolution(h, 0)), {25088, 49, 7, 1}) &&
                strides_are(h.spec_of(h.outputs[1]), {4608, 9, 3, 1}));
  static_assert(count_of(h, op_code::contiguous) > count_of(g, op_code::contiguous) && !sw::verify(h));
  in_parts_as_eager<two_convolutions, two_eager>({given<float>(512 * 27, 1, 0.1), given<float>(512 * 4608, 2, 0.02)});
}

TEST_CASE("layout: test_3conv_with_graph_break") {
  using plain = trained<three_convolutions>;
  using split = trained<three_convolutions, in_parts>;
  constexpr const auto& g = plain::program;
  // 1,048,576 bytes of the last convolution fill the bucket
  static_assert(parts_of<plain>().parts.count == 2 && parts_of<plain>().parts.of[convolution(g, 0)] == 0);
  static_assert(parts_of<plain>().parts.of[convolution(g, 1)] == 0 && parts_of<plain>().parts.of[convolution(g, 2)] == 1);
  // of the depthwise one every group has one channel: it is not grouped
  static_assert(decided<plain>(0) == sw::layout_decision{true, sw::layout_reason::training});
  static_assert(decided<plain>(1) == sw::layout_decision{true, sw::layout_reason::training});
  constexpr const auto& h = split::program;
  static_assert(reads_turned(h, 0) && reads_turned(h, 1) && reads_turned(h, 2));
  static_assert(turned(h.spec_of(convolution(h, 0))) && strides_are(h.spec_of(convolution(h, 1)), {2048, 4, 2, 1}));
  static_assert(strides_are(h.spec_of(h.outputs[1]), {2048, 4, 2, 1}) && !sw::verify(h));
  in_parts_as_eager<three_convolutions, three_eager>(
      {given<float>(512 * 147, 1, 0.1), given<float>(512 * 49, 2, 0.1), given<float>(512 * 512, 3, 0.05)});
}

// --- outputs keep their strides ------------------------------------------------------------------------------------------------------

struct convolved {
  constexpr auto operator()(const auto& x, const auto& w, const auto& b) const {
    return sw::conv2d<options{.padding = 1}>(x, w, b);
  }
};
using to_128 = sw::inputs<sw::input_tensor<float, sw::shape<2, 3, 5, 5>>, sw::input_tensor<float, sw::shape<128, 3, 3, 3>>,
                          sw::input_tensor<float, sw::shape<128>>>;
// Whether a tensor may be seen as (5, -1).
constexpr bool has_view(const sw::spec& s) {
  const std::int64_t extents[] = {5, sw::numel(s) / 5};
  return !sw::infer(op_code::reshape, sw::pack_extents(extents, 2), &s, 1).error;
}
TEST_CASE("layout: test_keep_output_layout_infer") {
  using step = sw::function_step<convolved, mesh, to_128, sw::pipeline<on>>;
  constexpr const auto& g = step::program;
  static_assert(sw::decide_layout(sw::layout_mode::torch,
                                  sw::passes::layout_facts_of(sw::function_step<convolved, mesh, to_128>::program)) ==
                sw::layout_decision{true, sw::layout_reason::inference});
  static_assert(reads_turned(g, 0));  // it is computed channels-last
  constexpr sw::spec out = g.spec_of(g.outputs[0]);
  static_assert(strides_are(out, {3200, 25, 5, 1}) && has_view(out));
  constexpr sw::spec last = sw::in_format(out, sw::memory_format::channels_last);
  static_assert(strides_are(last, {3200, 1, 640, 128}) && !has_view(last));
  const auto x = given<float>(150, 0, 1), w = given<float>(128 * 27, 1, 1), b = given<float>(128, 2, 1);
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<step> run(rank, sw::executor_checks::poison);
    run.set_input(0, x);
    run.set_input(1, w);
    run.set_input(2, b);
    run.run({});
    sw::eager e(rank);
    const auto y = convolved{}(eager_of<float, 2, 3, 5, 5>::distribute(e, x),
                               eager_of<float, 128, 3, 3, 3>::distribute(e, w), eager_of<float, 128>::distribute(e, b));
    static_assert(std::remove_cvref_t<decltype(y)>::sp == out);
    CHECK(run.output<float>(0).layout.str[1] == 25);
    CHECK(values_of(run.output<float>(0)) == values_of(sw::view<5, -1>(y).to_local()));
  });
}

template <class Bound = sw::unbound>
struct one_convolution : sw::module<one_convolution<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<128, 3, 3, 3>, sw::init::normal<1, 10>>, weight),
                    (sw::parameter<sw::shape<128>, sw::init::normal<1, 10>>, bias));
  constexpr auto forward(const auto& x) const { return sw::conv2d<options{.padding = 1}>(x, weight, bias); }
};
struct output_of {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<2, 3, 5, 5>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return model(x); }
};
template <class... Passes>
using evaluated = sw::forward_step<one_convolution, output_of, sw::plan<>, mesh, sw::pipeline<Passes...>>;
TEST_CASE("layout: test_keep_output_layout_with_freezing") {
  using step = evaluated<frozen>;
  constexpr const auto& g = step::program;
  constexpr sw::spec out = g.spec_of(g.outputs[0]);
  static_assert(strides_are(out, {3200, 25, 5, 1}) && has_view(out));
  // the weight lies channels-last where it is kept, so that the image alone is copied in a run
  static_assert(reads_turned(g, 0) && g.nodes[g.nodes[convolution(g, 0)].in[1]].op == op_code::param);
  static_assert(count_of(g, op_code::contiguous) == 1 && count_of(evaluated<on>::program, op_code::contiguous) == 2);
  const auto x = given<float>(150, 0, 1), w = given<float>(128 * 27, 1, 1);
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<step> run(rank, sw::executor_checks::poison);
    sw::executor<evaluated<>> plain(rank, sw::executor_checks::poison);
    run.set_input(0, x);
    plain.set_input(0, x);
    const auto same = [&] {
      run.run({});
      plain.run({});
      CHECK(values_of(run.template output<float>(0)) == values_of(plain.template output<float>(0)));
      CHECK(whole_parameter<float>(run, 0, w.size()) == whole_parameter<float>(plain, 0, w.size()));
    };
    // what is drawn, given and copied from another program has the same values, whichever way it lies
    run.initialise(3);
    plain.initialise(3);
    same();
    run.set_parameter(0, w);
    plain.set_parameter(0, w);
    same();
    CHECK(whole_parameter<float>(run, 0, w.size()) == w);
    plain.initialise(4);
    run.copy_parameters(plain);
    same();
    run.set_parameter(0, w);
    plain.copy_parameters(run);
    same();
    CHECK(whole_parameter<float>(plain, 0, w.size()) == w);
  });
}

// --- gradients -----------------------------------------------------------------------------------------------------------------------

struct two_of {
  constexpr auto operator()(const auto& x, const auto& v, const auto& w) const {
    return sw::conv2d<options{.stride = 2}>(sw::conv2d<options{.stride = 2}>(x, v), w);
  }
};
TEST_CASE("layout: test_training_acc") {
  using in = sw::inputs<sw::input_tensor<float, sw::shape<2, 3, 16, 16>>, sw::input_tensor<float, sw::shape<512, 3, 3, 3>>,
                        sw::input_tensor<float, sw::shape<512, 512, 3, 3>>>;
  using step = sw::gradient_step<two_of, mesh, in, sw::wrt<1, 2>, sw::pipeline<on>>;
  constexpr const auto& g = step::program;
  static_assert(reads_turned(g, 0) && reads_turned(g, 1) && turned(g.spec_of(convolution(g, 0))));
  // a gradient is stored as its parameter is
  static_assert(strides_are(g.spec_of(g.outputs[1]), {27, 9, 3, 1}) &&
                strides_are(g.spec_of(g.outputs[2]), {4608, 9, 3, 1}));
  const auto x = given<float>(1536, 0, 1), v = given<float>(512 * 27, 1, 0.1), w = given<float>(512 * 4608, 2, 0.02);
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<step> run(rank, sw::executor_checks::poison);
    run.set_input(0, x);
    run.set_input(1, v);
    run.set_input(2, w);
    run.run({});
    sw::eager e(rank);
    const auto [y, dv, dw] = sw::value_and_grad<two_of, 1, 2>(eager_of<float, 2, 3, 16, 16>::distribute(e, x),
                                                              eager_of<float, 512, 3, 3, 3>::distribute(e, v),
                                                              eager_of<float, 512, 512, 3, 3>::distribute(e, w));
    const auto near = [](const std::vector<float>& a, const std::vector<float>& b) {
      double most = 0;
      for (const float f : b) most = std::abs(f) > most ? std::abs(f) : most;
      CHECK(most > 0);
      CHECK(figures::apart(as<double>(a), as<double>(b)) <= 1e-5 * most);
    };
    near(values_of(run.template output<float>(0)), values_of(y.to_local()));
    near(values_of(run.template output<float>(1)), values_of(dv.to_local()));
    near(values_of(run.template output<float>(2)), values_of(dw.to_local()));
  });
}

// --- writes in place of what a convolution gives -----------------------------------------------------------------------------------

struct mutate_base_of_convolution {
  constexpr auto operator()(const auto& x, const auto& w) const {
    const auto out = sw::conv2d<options{.stride = 2}>(x, w);
    const auto y = sw::view<-1>(out);
    sw::mul_(out, 2);
    return y;
  }
};
struct mutate_view_of_convolution {
  constexpr auto operator()(const auto& x, const auto& w) const {
    const auto out = sw::conv2d<options{.stride = 2}>(x, w);
    const auto y = sw::view<-1>(out);
    sw::mul_(y, 2);
    return out;
  }
};
using to_512 =
    sw::inputs<sw::input_tensor<float, sw::shape<2, 3, 16, 16>>, sw::input_tensor<float, sw::shape<512, 3, 3, 3>>>;
template <class F>
using written = sw::gradient_step<F, mesh, to_512, sw::wrt<1>, sw::pipeline<on>>;
// The program's output and gradient against the eager tensors that are really written, and their gradient.
template <class F>
void written_as_eager() {
  const auto x = given<float>(1536, 0, 1), w = given<float>(512 * 27, 1, 0.1);
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<written<F>> run(rank, sw::executor_checks::poison);
    run.set_input(0, x);
    run.set_input(1, w);
    run.run({});
    sw::eager e(rank);
    const auto image = eager_of<float, 2, 3, 16, 16>::distribute(e, x);
    const auto weight = eager_of<float, 512, 3, 3, 3>::distribute(e, w);
    const auto got = values_of(run.template output<float>(0));
    CHECK(got == values_of(F{}(image, weight).to_local()));
    CHECK(got == values_of((sw::conv2d<options{.stride = 2}>(image, weight) * 2.0).to_local()));
    const auto [y, dw] = sw::value_and_grad<F, 1>(image, weight);
    CHECK(got == values_of(y.to_local()));
    CHECK(figures::apart(as<double>(values_of(run.template output<float>(1))), as<double>(values_of(dw.to_local()))) < 1e-3);
  });
}
TEST_CASE("layout: test_mutate_base_for_conv_output") {
  constexpr const auto& g = written<mutate_base_of_convolution>::program;
  static_assert(!sw::has_mutation(g) && count_of(g, op_code::assign) == 0 && reads_turned(g, 0));
  static_assert(has_extents(g, 0, {2 * 512 * 49}) && has_strides(g, 0, {1}));
  written_as_eager<mutate_base_of_convolution>();
}
TEST_CASE("layout: test_mutate_view_for_conv_output") {
  constexpr const auto& g = written<mutate_view_of_convolution>::program;
  static_assert(!sw::has_mutation(g) && count_of(g, op_code::assign) == 0 && reads_turned(g, 0));
  static_assert(has_extents(g, 0, {2, 512, 7, 7}) && has_strides(g, 0, {25088, 49, 7, 1}));
  written_as_eager<mutate_view_of_convolution>();
}

// --- the loss that needs contiguous rows -----------------------------------------------------------------------------------------------

template <int Batch>
struct labelled {
  constexpr auto operator()(const auto& x, const auto& w, const auto& b, const auto& classes, const auto& bias,
                            const auto& target) const {
    const auto y = sw::conv2d<options{.padding = 1}>(x, w, b);  // (batch, 111, 144, 39)
    const auto logits = sw::linear_product(sw::reshape<Batch, 144, 111 * 39>(y), classes) + bias;
    return sw::cross_entropy(sw::transpose<1, 2>(sw::reshape<Batch, 111, 144>(logits)), target);
  }
};
template <int Batch>
using labelled_inputs =
    sw::inputs<sw::input_tensor<float, sw::shape<Batch, 1, 144, 39>>, sw::input_tensor<float, sw::shape<111, 1, 3, 3>>,
               sw::input_tensor<float, sw::shape<111>>, sw::input_tensor<float, sw::shape<111, 4329>>,
               sw::input_tensor<float, sw::shape<111>>, sw::input_tensor<std::int32_t, sw::shape<Batch, 144>>>;
template <int Batch, class... Passes>
using labelled_step =
    sw::gradient_step<labelled<Batch>, mesh, labelled_inputs<Batch>, sw::wrt<1, 2, 3, 4>, sw::pipeline<Passes...>>;

template <class Graph>
constexpr int first_of(const Graph& g, op_code op) {
  int i = 0;
  while (i < g.node_count && g.nodes[i].op != op) ++i;
  return i;
}
TEST_CASE("layout: test_nll_loss_backward") {
  // at the sizes of the suite: channels-last is chosen, the loss's backward pass and the reshape get rows as they were traced
  using full = labelled_step<48, on>;
  constexpr const auto& g = full::program;
  static_assert(sw::decide_layout(sw::layout_mode::torch, sw::passes::layout_facts_of(labelled_step<48>::program)) ==
                sw::layout_decision{true, sw::layout_reason::training});
  static_assert(reads_turned(g, 0));
  constexpr int nll_dx = first_of(g, op_code::nll_dx), reshape = first_of(g, op_code::reshape);
  static_assert(nll_dx < g.node_count && sw::passes::layout_need_of(g, nll_dx, 1) == sw::passes::layout_need::copy);
  static_assert([] {
    bool all = true;
    for (const int i : {first_of(g, op_code::lse), first_of(g, op_code::nll), nll_dx, reshape})
      for (int k = 0; k < g.nodes[i].inputs; ++k) all = all && !turned(g.spec_of(g.nodes[i].in[k]));
    return all;
  }());
  // two of the 48 sequences: the loss with the pass, evaluated twice, and without
  constexpr int batch = 2;
  const auto run_of = [&]<class Step>(std::type_identity<Step>) {
    std::vector<std::vector<float>> r;
    sw::launch<mesh>([&](auto& rank) {
      sw::executor<Step> run(rank, sw::executor_checks::poison);
      run.set_input(0, given<float>(batch * 144 * 39, 0, 1));
      run.set_input(1, given<float>(111 * 9, 1, 0.3));
      run.set_input(2, given<float>(111, 2, 0.3));
      run.set_input(3, given<float>(111 * 4329, 3, 0.02));
      run.set_input(4, given<float>(111, 4, 0.3));
      std::vector<std::int32_t> target;
      for (int i = 0; i < batch * 144; ++i) target.push_back(i * 7 % 111);
      run.set_input(5, target);
      for (int round = 0; round < 2; ++round) {
        run.run({});
        for (int k = 0; k < 5; ++k) r.push_back(values_of(run.template output<float>(k)));
      }
    });
    return r;
  };
  const auto with = run_of(std::type_identity<labelled_step<batch, on>>{});
  const auto without = run_of(std::type_identity<labelled_step<batch>>{});
  for (std::size_t k = 0; k < 5; ++k) {
    CHECK(with[k] == with[k + 5]);
    CHECK(figures::apart(as<double>(with[k]), as<double>(without[k])) < 1e-5);
  }
  CHECK(with[0][0] > 0.1F);
}

// --- sizes known at run time -------------------------------------------------------------------------------------------------

struct sin_and_cos {
  constexpr auto operator()(const auto& a, const auto& b) const { return sw::sin(a) + sw::cos(b); }
};
template <std::int64_t Size, class... Passes>
using waves =
    sw::gradient_step<sin_and_cos, mesh,
                      sw::inputs<sw::input_tensor<double, sw::shape<2, Size>>, sw::input_tensor<double, sw::shape<2, Size>>>,
                      sw::wrt<0>, sw::pipeline<Passes...>>;

template <class Step>
void waves_at(const std::vector<int>& sizes) {
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<Step> run(rank, sw::executor_checks::poison);
    for (const int n : sizes) {
      run.resize(n);
      const auto a = figures::some(2 * n, n), b = figures::some(2 * n, n + 1);
      run.set_input(0, a);
      run.set_input(1, b);
      run.run({});
      const auto y = run.template output<double>(0), da = run.template output<double>(1);
      REQUIRE(y.data.size() == a.size());
      REQUIRE(da.data.size() == a.size());
      for (std::size_t i = 0; i < a.size(); ++i) {
        CHECK(std::abs(y.data[i] - (std::sin(a[i]) + std::cos(b[i]))) < 1e-15);
        CHECK(std::abs(da.data[i] - std::cos(a[i])) < 1e-15);
      }
    }
  });
}

TEST_CASE("layout: test_dynamic_shape_specialization") {
  using step = waves<sw::dyn<16>>;
  constexpr const auto& g = step::program;
  // the size is a symbol in every tensor of the program, whose type no size is part of; strides are expressions in it
  static_assert(step::dyn_bound == sw::dyn_bounds{{16}});
  static_assert([] {
    constexpr int origin[sw::max_axes]{};
    for (int i = 0; i < g.node_count; ++i) {
      const sw::spec& s = g.spec_of(i);
      if (s.rank != 2) continue;
      if (sw::is_dyn(s, 0) || !sw::is_dyn(s, 1)) return false;
      for (const int n : {4, 8, 16}) {
        const auto l = sw::runtime::local_layout(s, origin, sw::run_sizes(n));
        if (l.ext[0] != 2 || l.ext[1] != n || l.str[0] != n || l.str[1] != 1) return false;
      }
    }
    return g.spec_of(g.outputs[0]).rank == 2 && g.spec_of(g.outputs[1]).rank == 2;
  }());
  waves_at<step>({4, 8, 16});
  // and so it is behind the pass, which says no where a convolution's size is one
  using behind = waves<sw::dyn<16>, on>;
  static_assert(behind::dyn_bound == sw::dyn_bounds{{16}} && behind::program.node_count == g.node_count &&
                sw::is_dyn(behind::program.spec_of(behind::program.outputs[0]), 1));
  waves_at<behind>({4, 8, 16});
  using images = sw::function_step<mutate_view_of_convolution, mesh,
                                   sw::inputs<sw::input_tensor<float, sw::shape<sw::dyn<16>, 3, 16, 16>>,
                                              sw::input_tensor<float, sw::shape<512, 3, 3, 3>>>>;
  static_assert(sw::decide_layout(sw::layout_mode::torch, sw::passes::layout_facts_of(images::program)) ==
                sw::layout_decision{false, sw::layout_reason::run_time_size});
}

}  // namespace
