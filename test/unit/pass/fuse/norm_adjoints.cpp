// SPDX-License-Identifier: Apache-2.0
// join_norm_adjoints: layer norm and rms norm have the gradients that their adjoints have one by one, on even, uneven and
// empty shards; statistics that nobody else reads are not stored; what must stay apart does; the verifier knows the rest.
#include <shardwise/graph/text/render.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/analysis/kernels.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::op_code;

template <int Ranks>
struct fibre : sw::axis<Ranks> {};
template <int Ranks>
using mesh = sw::mesh<fibre<Ranks>>;

constexpr int width = 21;

// A residual around each of two norms, so that an addition follows the first one's adjoint.
struct layer_norms {
  constexpr auto operator()(const auto& x, const auto& w, const auto& b) const {
    const auto h = sw::add(x, sw::tanh(sw::layer_norm(x, w, b)));
    return sw::mul(h, sw::layer_norm(h, w, b));
  }
};
struct rms_norms {
  constexpr auto operator()(const auto& x, const auto& w, const auto&) const {
    const auto h = sw::add(x, sw::tanh(sw::rms_norm(x, w)));
    return sw::mul(h, sw::rms_norm(h, w));
  }
};

template <class F, class Wrt, class T, int Ranks, int Rows, class... Passes>
using gradient = sw::gradient_step<
    F, mesh<Ranks>,
    sw::inputs<sw::input_tensor<T, sw::shape<Rows, 2, width>, sw::shard<0>>,
               sw::input_tensor<T, sw::shape<width>, sw::reduced>, sw::input_tensor<T, sw::shape<width>, sw::reduced>>,
    Wrt, sw::pipeline<Passes...>>;

// All outputs as each rank holds them.
template <class Step, class T, int Ranks, int Rows>
std::vector<std::vector<T>> outputs_of() {
  const auto values = [](std::size_t n, unsigned k) {
    std::vector<T> v(n);
    for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<T>((i * 7919U + k * 31U) % 401U) / T(100) - T(2);
    return v;
  };
  std::vector<std::vector<T>> all(Ranks);
  sw::launch<mesh<Ranks>>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> program(rank, sw::executor_checks::poison);
    program.set_input(0, values(std::size_t{Rows} * 2 * width, 1));
    program.set_input(1, values(width, 2));
    for (int i = 0; i < Step::program.node_count; ++i)
      if (Step::program.nodes[i].op == op_code::input && Step::program.nodes[i].a.v[0] == 2)
        program.set_input(2, values(width, 3));
    program.run({});
    auto& mine = all[static_cast<std::size_t>(rank.index())];
    for (int k = 0; k < Step::program.output_count; ++k) {
      const auto block = program.template output<T>(k);
      mine.insert(mine.end(), block.data.begin(), block.data.end());
    }
  });
  return all;
}

template <class Step>
constexpr int count_of(op_code op) {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i) n += Step::program.nodes[i].op == op ? 1 : 0;
  return n;
}

template <class F, class Wrt, class T, int Ranks, int Rows>
double worst() {
  using plain = gradient<F, Wrt, T, Ranks, Rows>;
  using joined = gradient<F, Wrt, T, Ranks, Rows, sw::fuse_kernels, sw::join_norm_adjoints>;
  using alone = gradient<F, Wrt, T, Ranks, Rows, sw::join_norm_adjoints>;
  static_assert(count_of<joined>(op_code::norm_dx_dw) == 2 && count_of<joined>(op_code::norm_dx) == 0);
  static_assert(count_of<joined>(op_code::norm_dw) == 0 && count_of<joined>(op_code::norm_dw_db) == 0);
  constexpr auto before = sw::passes::kernel_calls(gradient<F, Wrt, T, Ranks, Rows, sw::fuse_kernels>::program);
  static_assert(sw::passes::kernel_calls(joined::program).kernels == before.kernels - 2);
  for (int i = 0; i < joined::program.node_count; ++i)  // no statistics are stored
    if (joined::program.nodes[i].op == op_code::norm) CHECK(joined::program.nodes[i].a.v[2] == 0);
  const auto want = outputs_of<plain, T, Ranks, Rows>();
  double most = 0;
  for (const auto& got : {outputs_of<joined, T, Ranks, Rows>(), outputs_of<alone, T, Ranks, Rows>()})
    for (std::size_t r = 0; r < want.size(); ++r) {
      REQUIRE(want[r].size() == got[r].size());
      for (std::size_t i = 0; i < want[r].size(); ++i) {
        const double x = static_cast<double>(want[r][i]),
                     d = std::abs(x - static_cast<double>(got[r][i])) / (1 + std::abs(x));
        most = d >= most || !(d == d) ? d : most;
      }
    }
  return most;
}

using all_three = sw::wrt<0, 1, 2>;
using first_two = sw::wrt<0, 1>;

TEST_CASE("joined norm adjoints: gradients of layer norms") {
  CHECK(worst<layer_norms, all_three, double, 1, 6>() < 1e-12);
  CHECK(worst<layer_norms, all_three, double, 2, 6>() < 1e-12);
  CHECK(worst<layer_norms, all_three, double, 3, 4>() < 1e-12);
  CHECK(worst<layer_norms, all_three, double, 4, 3>() < 1e-12);
  CHECK(worst<layer_norms, all_three, float, 2, 6>() < 1e-4);
}
TEST_CASE("joined norm adjoints: gradients of rms norms") {
  CHECK(worst<rms_norms, first_two, double, 1, 6>() < 1e-12);
  CHECK(worst<rms_norms, first_two, double, 3, 4>() < 1e-12);
}

TEST_CASE("joined norm adjoints: without a gradient of the weight there is nothing to join") {
  using only_x = gradient<layer_norms, sw::wrt<0>, double, 1, 6, sw::fuse_kernels, sw::join_norm_adjoints>;
  static_assert(count_of<only_x>(op_code::norm_dx_dw) == 0 && count_of<only_x>(op_code::norm_dx) == 2);
}

template <int Nodes>
struct source {
  using step = gradient<layer_norms, all_three, double, 2, 6, sw::fuse_kernels>;
  static constexpr const auto& value = step::program;
};
TEST_CASE("joined norm adjoints: constants in stages of any size become what graphs made at run time become") {
  using in = source<0>;
  using graph = sw::graph<200, 200>;
  graph g;
  copy_into(g, in::value);
  REQUIRE(!sw::join_norm_adjoints::apply(g));
  const std::string want = sw::to_text(g);
  CHECK(sw::to_text(sw::join_norm_adjoints::in_stages<in, 1>::value) == want);
  CHECK(sw::to_text(sw::join_norm_adjoints::in_stages<in, 40>::value) == want);
  CHECK(sw::to_text(sw::join_norm_adjoints::in_stages<in, 2000>::value) == want);
  CHECK(!sw::verify(g));
  int tried = 0;
  for (int i = 0; i < g.node_count; ++i) {
    if (g.nodes[i].op != op_code::norm_dx_dw) continue;
    for (int change = 0; change < 5; ++change) {
      if (change == 0 && g.nodes[i].a.v[1] == 0) continue;
      graph broken = g;
      sw::node& n = broken.nodes[i];
      if (change == 0) n.a.v[1] = 0;                         // a buffer of two rows for one
      if (change == 1) --n.inputs;                           // one operand less
      if (change == 2) n.in[2] = n.in[0];                    // a weight of three dims
      if (change == 3) n.in[3] = n.in[0];                    // no buffer
      if (change == 4) broken.nodes[n.in[3]].spec = n.spec;  // a buffer of other extents
      INFO("change " << change << " of node " << i);
      CHECK(sw::verify(broken));
      ++tried;
    }
  }
  CHECK(tried == 9);  // the sum of the second bias has another reader on the way: its buffer has one row
}

// A layer's output goes through a norm to the next layer; data parallel, so that buckets place gradients.
template <class Bound = sw::unbound>
struct normed : sw::module<normed<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<16, 16>, net), (sw::layer_norm_module<16>, norm));
  constexpr auto forward(const auto& x) const { return sw::tanh(norm(net(x))); }
};
inline constexpr int depth = 3;
template <class Bound = sw::unbound>
struct stack : sw::module<stack<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::repeat<depth, normed>, layers));
  constexpr auto forward(const auto& x) const { return layers(x); }
};
template <int Ranks>
struct mean_square {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<12, 16>, sw::on<fibre<Ranks>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    const auto y = sw::cast<float>(m(x));
    return sw::mean(y * y);
  }
};
template <int Ranks, class Pipeline, class... E>
using in_buckets =
    sw::train_step<stack, mean_square<Ranks>, sw::plan<sw::data_parallel<fibre<Ranks>, sw::buckets<25>>, E...>, mesh<Ranks>,
                   sw::clip_norm<sw::adamw<>>, Pipeline>;
template <class Step, int Ranks>
std::vector<double> losses() {
  std::vector<double> all;
  sw::launch<mesh<Ranks>>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> program(rank, sw::executor_checks::poison);
    std::vector<float> x(12 * 16);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i * 7));
    program.initialise(3);
    program.set_input(0, x);
    sw::step_env env;
    env.lr = 0.01;
    env.max_norm = 1;
    for (env.step = 1; env.step <= 4; ++env.step) {
      program.run(env);
      if (const double loss = program.loss(); rank.index() == 0) all.push_back(loss);
    }
  });
  return all;
}
template <int Ranks, class... E>
void check_buckets() {
  using apart = in_buckets<Ranks, sw::pipeline<sw::fuse_kernels>, E...>;
  using joined = in_buckets<Ranks, sw::pipeline<sw::fuse_kernels, sw::join_norm_adjoints>, E...>;
  static_assert(count_of<apart>(op_code::pack) > 0 && count_of<joined>(op_code::pack) == count_of<apart>(op_code::pack));
  static_assert(count_of<apart>(op_code::norm_dx_dw) == 0 && count_of<joined>(op_code::norm_dx_dw) == depth);
  static_assert(count_of<joined>(op_code::norm_dx) == 0 && count_of<joined>(op_code::norm_dw_db) == 0);
  const auto want = losses<apart, Ranks>();
  CHECK(want.back() < want.front());
  CHECK(losses<joined, Ranks>() == want);
}
TEST_CASE("joined norm adjoints: gradients that lie in a bucket are copied into it") {
  check_buckets<2>();
  check_buckets<3>();
  check_buckets<4>();
  check_buckets<2, sw::mixed<sw::bf16>>();
  check_buckets<2, sw::mixed<sw::bf16, sw::reduce_dtype<sw::bf16>>>();
}

}  // namespace
