// SPDX-License-Identifier: Apache-2.0
// Users' own operations with several results, and max and min along a dim, which are made so: eager, compiled and implicit they
// give what plain loops give, wherever the operand is, whichever results are read, and under passes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <custom_results.hpp>
#include <limits>
#include <results_run.hpp>
#include <shardwise/graph/text/render.hpp>
#include <shardwise/laws/gradcheck.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/partial_lower.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/shardwise.hpp>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using namespace test::results;

template <class X>
void add_values(std::vector<double>& all, const X& x) {
  const auto whole = sw::contiguous(x.full_tensor());
  for (const auto v : whole.to_local().data) all.push_back(static_cast<double>(v));
}

// All three results, of (rows, 5).
struct three {
  constexpr auto operator()(const auto& x) const { return sw::call<described::lines>(x); }
};
// One number that depends on results 0 and 1, or on one of them.
template <bool First, bool Second>
struct one {
  constexpr auto operator()(const auto& x) const {
    const auto [e, s, where] = sw::call<described::lines>(x);
    if constexpr (First && Second) return sw::sum(sw::sum<1>(e * e) * s);
    else if constexpr (First) return sw::sum(e * e);
    else return sw::sum(s * s);
  }
};
// The result that nobody reads elsewhere is read by the adjoint.
template <bool First, bool Second>
struct written_out {
  constexpr auto operator()(const auto& x) const {
    const auto e = sw::exp(x);
    const auto s = sw::sum<1>(x);
    if constexpr (First && Second) return sw::sum(sw::sum<1>(e * e) * s);
    else if constexpr (First) return sw::sum(e * e);
    else return sw::sum(s * s);
  }
};

constexpr std::size_t rows = 7, width = 5;
std::vector<double> in_loops(const std::vector<double>& x) {
  std::vector<double> e, s, where;
  for (std::size_t r = 0; r < rows; ++r) {
    double sum = 0;
    std::size_t best = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const double v = x[r * width + i];
      e.push_back(std::exp(v));
      sum += v;
      if (v > x[r * width + best]) best = i;
    }
    s.push_back(sum);
    where.push_back(static_cast<double>(best));
  }
  e.insert(e.end(), s.begin(), s.end());
  e.insert(e.end(), where.begin(), where.end());
  return e;
}

template <int N, class Placement>
using lines_of = sw::dtensor_of<double, sw::shape<rows, width>, mesh<1, N>, sw::on<tp<N>, Placement>>;

template <class F, int N, class Placement>
std::vector<double> eagerly() {
  std::vector<double> all;
  sw::launch<mesh<1, N>>([&](auto& rank) {
    sw::eager e(rank);
    std::vector<double> here;
    std::apply([&](const auto&... t) { (add_values(here, t), ...); },
               F{}(lines_of<N, Placement>::distribute(e, some(rows * width, 0))));
    if (rank.index() == 0) all = here;
  });
  return all;
}
template <class F, int N, class Placement>
std::vector<double> gradient() {
  std::vector<double> all;
  sw::launch<mesh<1, N>>([&](auto& rank) {
    sw::eager e(rank);
    std::vector<double> here;
    std::apply([&](const auto&... t) { (add_values(here, t), ...); },
               sw::value_and_grad<F, 0>(lines_of<N, Placement>::distribute(e, some(rows * width, 0))));
    if (rank.index() == 0) all = here;
  });
  return all;
}
TEST_CASE("several results: eager values are those of plain loops, wherever the operand is, with empty blocks") {
  const std::vector<double> want = in_loops(some(rows * width, 0));
  CHECK(apart(want, eagerly<three, 1, sw::replicate>()) < 1e-14);
  CHECK(apart(want, eagerly<three, 2, sw::shard<0>>()) < 1e-14);
  CHECK(apart(want, eagerly<three, 3, sw::shard<0>>()) < 1e-14);
  CHECK(apart(want, eagerly<three, 4, sw::reduced>()) < 1e-14);
  CHECK(apart(want, eagerly<three, 6, sw::shard<0>>()) < 1e-14);  // 2, 2, 2, 1 and no rows
  CHECK(apart(want, eagerly<sw::implicitly<three>, 3, sw::shard<1>>()) < 1e-14);
  CHECK(apart(want, eagerly<sw::implicitly<three>, 2, sw::partial<>>()) < 1e-13);
}

template <bool First, bool Second>
void check_gradients() {
  const std::vector<double> want = gradient<written_out<First, Second>, 1, sw::replicate>();
  CHECK(want.size() == 1 + rows * width);
  CHECK(apart(want, gradient<one<First, Second>, 1, sw::replicate>()) < 1e-12);
  CHECK(apart(want, gradient<one<First, Second>, 4, sw::shard<0>>()) < 1e-12);
  CHECK(apart(want, gradient<sw::implicitly<one<First, Second>>, 3, sw::shard<1>>()) < 1e-12);
}

TEST_CASE("several results: gradients are those of the formula written out, whichever results they flow through") {
  check_gradients<true, true>();
  check_gradients<true, false>();
  check_gradients<false, true>();
  CHECK(sw::gradcheck<one<true, true>, sw::shape<3, 4>>() == 12);
  CHECK(sw::gradcheck<one<true, false>, sw::shape<3, 4>>() == 12);
  CHECK(sw::gradcheck<one<false, true>, sw::shape<3, 4>>() == 12);
}

// --- a train step ------------------------------------------------------------------------------------------------------------

struct apart_rows {
  constexpr auto operator()(const auto& h) const {
    const auto [e, s, where] = sw::call<described::lines>(sw::scale(h, 0.1));
    return sw::tanh(e) + sw::unsqueeze<1>(s);  // `where` is read by nobody
  }
};
struct apart_written {
  constexpr auto operator()(const auto& h) const {
    const auto x = sw::scale(h, 0.1);
    return sw::tanh(sw::exp(x)) + sw::unsqueeze<1>(sw::sum<1>(x));
  }
};
template <class F>
struct net {
  template <class Bound = sw::unbound>
  struct model : sw::module<model<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::linear<6, 8>, up), (sw::linear<8, 4>, down));
    constexpr auto forward(const auto& x) const { return down(F{}(up(x))); }
  };
};
template <class F, int D, class Pipeline = sw::pipeline<>>
using step = sw::train_step<net<F>::template model, task<dp<D>>, sw::plan<sw::data_parallel<dp<D>>>, mesh<D, 1>, sw::adam<>,
                            Pipeline, double>;

TEST_CASE("several results: a train step is the one with the formula written out, on every mesh and under passes") {
  const std::vector<double> want = train<step<apart_written, 1>>();
  CHECK(want.front() > want.back());
  CHECK(apart(want, train<step<apart_rows, 1>>()) < 1e-12);
  CHECK(apart(want, train<step<apart_rows, 2>>()) < 1e-12);
  CHECK(apart(want, train<step<apart_rows, 3>>()) < 1e-12);
  using simple = sw::pipeline<sw::cancel_redistributions, sw::merge_common, sw::rematerialise<>, sw::fuse_kernels>;
  CHECK(apart(want, train<step<apart_rows, 2, simple>>()) < 1e-12);
  using all_again = sw::pipeline<sw::merge_common, sw::rematerialise<0>, sw::partial_lower<sw::core_operations, 2>>;
  CHECK(apart(want, train<step<apart_rows, 4, all_again>>()) < 1e-12);
  using moving = sw::pipeline<sw::comm_fusion_in_place<>, sw::expedite_comms, sw::reorder_compute_for_overlap<>,
                              sw::sink_waits, sw::raise_comms>;
  CHECK(apart(want, train<step<apart_rows, 2, moving>>()) < 1e-12);
}

TEST_CASE("several results: a result that nobody reads has no node, and one that the adjoint alone reads has one") {
  const auto& g = step<apart_rows, 2>::program;
  int items = 0;
  for (int i = 0; i < g.node_count; ++i)
    if (g.nodes[i].op == sw::op_code::getitem) {
      ++items;
      CHECK(g.nodes[i].a.v[0] < 2);
    }
  CHECK(items == 2);
  const std::string text = sw::to_text(g);
  CHECK(text.find("%getitem = getitem(%lines, 0) ") != std::string::npos);
  CHECK(text.find("%getitem_1 = getitem(%lines, 1) ") != std::string::npos);
  CHECK(sw::find_node(g, "getitem_1") > 0);
  CHECK(sw::find_node(g, "getitem_2") == -1);
  using sums = sw::gradient_step<one<false, true>, mesh<1, 1>, sw::inputs<sw::input_tensor<double, sw::shape<rows, width>>>,
                                 sw::wrt<0>>;
  CHECK(sw::find_node(sums::program, "getitem") > 0);
  CHECK(sw::find_node(sums::program, "getitem_1") == -1);
}

// --- extremes ------------------------------------------------------------------------------------------------------------------

template <bool Largest, int Dim>
struct extreme {
  constexpr auto operator()(const auto& x) const {
    if constexpr (Largest) {
      const auto r = sw::max<Dim>(x);
      return std::tuple{r.values, r.indices};
    } else {
      const auto r = sw::min<Dim>(x, sw::keepdim);
      return std::tuple{r.values, r.indices};
    }
  }
};
template <bool Largest, int Dim>
std::vector<double> extreme_in_loops(const std::vector<double>& x) {
  std::vector<double> values, indices;
  for (std::size_t o = 0; o < (Dim == 0 ? width : rows); ++o) {
    const auto at = [&](std::size_t i) { return Dim == 0 ? x[i * width + o] : x[o * width + i]; };
    std::size_t best = 0;
    for (std::size_t i = 1; i < (Dim == 0 ? rows : width); ++i)
      if (!std::isnan(at(best)) && (std::isnan(at(i)) || (Largest ? at(i) > at(best) : at(i) < at(best)))) best = i;
    values.push_back(at(best));
    indices.push_back(static_cast<double>(best));
  }
  values.insert(values.end(), indices.begin(), indices.end());
  return values;
}
struct squared_max {
  constexpr auto operator()(const auto& x) const {
    const auto values = sw::max<-1>(x).values;
    return sw::sum(values * values);
  }
};

TEST_CASE("max, min along a dim: values, positions and gradients") {
  const std::vector<double> x = some(rows * width, 0);
  CHECK(apart(extreme_in_loops<true, 1>(x), eagerly<extreme<true, 1>, 3, sw::shard<0>>()) == 0);
  CHECK(apart(extreme_in_loops<true, 0>(x), eagerly<extreme<true, 0>, 4, sw::shard<1>>()) == 0);
  CHECK(apart(extreme_in_loops<false, 1>(x), eagerly<extreme<false, -1>, 2, sw::reduced>()) == 0);
  CHECK(apart(extreme_in_loops<false, 0>(x), eagerly<extreme<false, 0>, 1, sw::replicate>()) == 0);
  CHECK(apart(extreme_in_loops<true, 1>(x), eagerly<sw::implicitly<extreme<true, 1>>, 3, sw::shard<1>>()) == 0);
  CHECK(sw::gradcheck<squared_max, sw::shape<3, 4>>() == 12);
  CHECK(sw::gradcheck<squared_max, sw::shape<2, 3, 4>>() == 24);
}

TEST_CASE("max, min along a dim: of equals the first, a NaN wins, integers too") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  sw::launch<mesh<1, 2>>([&](auto& rank) {
    sw::eager e(rank);
    using type = sw::dtensor_of<double, sw::shape<4, 3>, mesh<1, 2>, sw::on<tp<2>, sw::shard<0>>>;
    const auto t = type::distribute(e, std::vector<double>{2, 7, 7, nan, 9, nan, -inf, -inf, -inf, 1, nan, inf});
    std::vector<double> v, w;
    add_values(v, sw::max<1>(t).indices);
    add_values(w, sw::min<1>(t).indices);
    if (v != std::vector<double>{1, 0, 0, 1} || w != std::vector<double>{0, 0, 0, 1})
      throw std::runtime_error("other positions");
    std::vector<double> values;
    add_values(values, sw::max<1>(t).values);
    if (values[0] != 7 || !std::isnan(values[1]) || values[2] != -inf || !std::isnan(values[3]))
      throw std::runtime_error("other values");
    using whole = sw::dtensor_of<std::int32_t, sw::shape<2, 3>, mesh<1, 2>>;
    std::vector<double> both;
    const auto r = sw::max<1>(whole::distribute(e, std::vector<std::int32_t>{3, 5, 5, -1, -2, -1}));
    add_values(both, r.values);
    add_values(both, r.indices);
    if (both != std::vector<double>{5, -1, 1, 0}) throw std::runtime_error("other integers");
  });
}

}  // namespace
