// SPDX-License-Identifier: Apache-2.0
// What PyTorch's suite of the layout optimisation asks, test by test: writes in place, sizes known at run time.
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
  static_assert(step::dyn_bound == 16);
  static_assert([] {
    constexpr int origin[sw::max_axes]{};
    for (int i = 0; i < g.node_count; ++i) {
      const sw::spec& s = g.spec_of(i);
      if (s.rank != 2) continue;
      if (sw::is_dyn(s, 0) || !sw::is_dyn(s, 1)) return false;
      for (const int n : {4, 8, 16}) {
        const auto l = sw::runtime::local_layout(s, origin, n);
        if (l.ext[0] != 2 || l.ext[1] != n || l.str[0] != n || l.str[1] != 1) return false;
      }
    }
    return g.spec_of(g.outputs[0]).rank == 2 && g.spec_of(g.outputs[1]).rank == 2;
  }());
  waves_at<step>({4, 8, 16});
}

}  // namespace
