// SPDX-License-Identifier: Apache-2.0
// Passes see through the casts of a mixed step: joined reductions and products are found as they are in a step of floats, and the
// step trains to the bits of the one without passes, on 1, 2 and 4 ranks.
#include <shardwise/shardwise.hpp>

#include <shardwise/pass/analysis/kernels.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <train_text/model.hpp>
#include <type_traits>
#include <vector>

namespace {

namespace sw = shardwise;
namespace tt = train_text;
using sw::op_code;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};

constexpr int layers = 2, steps = 3;
using size = tt::config<4, 16, 32, 2, layers, 64>;
template <int D, int N, class Low, class Optimizer, class... Passes>
using step_with = sw::train_step<tt::gpt_of<size>::gpt, tt::next_byte<size, dp<D>>,
                                 tt::megatron<size, tp<N>, sw::data_parallel<dp<D>>, Low>, sw::mesh<dp<D>, tp<N>>, Optimizer,
                                 sw::pipeline<Passes...>, float>;
template <int D, int N, class Low, class... Passes>
using step = step_with<D, N, Low, sw::clip_norm<sw::adamw<true>>, Passes...>;
using low = sw::mixed<sw::bf16>;
using whole = sw::mixed<float>;  // the same plan, and no cast

template <class Step>
constexpr int of(op_code op) {
  return sw::passes::kernel_calls(Step::program).of[static_cast<int>(op)];
}
// Sums over rows that a weight's gradient computes beside it.
template <class Step>
constexpr int sums_beside_products() {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i) n += sw::keeps_sums(Step::program.nodes[i]) ? 1 : 0;
  return n;
}

// Losses, then all parameters.
template <class Step>
std::vector<float> train(double lr = 0.01) {
  std::vector<float> all;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(rank, sw::executor_checks::poison);
    ex.initialise(5);
    std::vector<float> own;
    for (int s = 1; s <= steps; ++s) {
      std::vector<std::int32_t> ids(size::batch * size::time), next(ids.size());
      for (std::size_t i = 0; i < ids.size(); ++i) {
        ids[i] = static_cast<std::int32_t>((i * 7919U + static_cast<unsigned>(s) * 31U) % size::bytes);
        next[i] = static_cast<std::int32_t>((i * 104729U + static_cast<unsigned>(s)) % size::bytes);
      }
      ex.set_input(0, ids);
      ex.set_input(1, next);
      sw::step_env env;
      env.step = s;
      env.lr = lr;
      env.weight_decay = 0.1;
      env.max_norm = 1;
      ex.run(env);
      own.push_back(ex.loss());
    }
    for (int i = 0; i < ex.parameter_count(); ++i) {
      const auto p = ex.full_parameter(ex.parameter_name(i));
      own.insert(own.end(), p.begin(), p.end());
    }
    if (rank.index() == 0) all = own;
  });
  return all;
}
// How far b is from a, where a has gone from `start`: what has gone wrong of all updates together.
double apart(const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& start) {
  double wrong = a.size() == b.size() ? 0 : INFINITY, all = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]),
                 u = static_cast<double>(a[i]) - static_cast<double>(start[i]);
    wrong += d * d;
    all += u * u;
  }
  return std::sqrt(wrong / all);
}
bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// --- reductions -----------------------------------------------------------------------------------------------------------

template <int D, int N>
void check_reductions() {
  CAPTURE(D);
  CAPTURE(N);
  using plain = step<D, N, low>;
  using fused = step<D, N, low, sw::fuse_kernels>;
  using joined = step<D, N, low, sw::fuse_kernels, sw::join_norm_adjoints>;
  using floats = step<D, N, whole, sw::fuse_kernels, sw::join_norm_adjoints>;
  // a norm's gradients are one kernel; biases' are their weights'; left are the loss and the positions
  static_assert(of<joined>(op_code::norm_dx_dw) == 2 * layers + 1 && of<joined>(op_code::norm_dw) == 0);
  static_assert(of<joined>(op_code::sum) == of<floats>(op_code::sum));
  static_assert(sums_beside_products<joined>() == sums_beside_products<floats>());
  static_assert(of<joined>(op_code::sum) + 6 * layers + 2 * layers <= of<plain>(op_code::sum));
  // casts do not part a launch's members; on one rank, where gradients of two bytes are read as they are, types do
  static_assert(of<joined>(op_code::sumsq) == of<floats>(op_code::sumsq) + (D > 1 ? 0 : 2));
  const std::vector<float> want = train<plain>();
  CHECK(same(train<fused>(), want));
  CHECK(same(train<joined>(), want));
}
TEST_CASE("mixed passes: gradients of biases and norms are found behind their casts, bit for bit") {
  check_reductions<1, 1>();
  check_reductions<2, 1>();
  check_reductions<1, 2>();
  check_reductions<2, 2>();
}

// --- products -------------------------------------------------------------------------------------------------------------

template <int D, int N>
void check_products() {
  CAPTURE(D);
  CAPTURE(N);
  using plain = step<D, N, low>;
  using merged = step<D, N, low, sw::merge_products>;
  using all = step<D, N, low, sw::merge_products, sw::fuse_kernels, sw::join_norm_adjoints>;
  using floats = step<D, N, whole, sw::merge_products, sw::fuse_kernels, sw::join_norm_adjoints>;
  // of q, k and v forward, of their weights' gradients and of what goes back and was added, one is left of each three
  static_assert(of<merged>(op_code::einsum) == of<plain>(op_code::einsum) - 6 * layers);
  static_assert(of<merged>(op_code::add) == of<plain>(op_code::add) - 4 * layers);  // two biases, two sums of what goes back
  static_assert(of<merged>(op_code::sum) == of<plain>(op_code::sum) - 2 * layers);
  static_assert(of<merged>(op_code::cast) ==
                of<plain>(op_code::cast) - 4 * layers);  // three weights' are one, three biases'
  for (const op_code op : {op_code::einsum, op_code::sum, op_code::fused, op_code::norm_dx_dw, op_code::sumsq}) {
    CAPTURE(sw::name_of(op));
    const int by_types = op == op_code::sumsq && D == 1 ? 2 : 0;  // as above
    CHECK(of<all>(op) == of<floats>(op) + by_types);
  }
  CHECK(sums_beside_products<all>() == sums_beside_products<floats>());
  static_assert(merged::traffic.order_hash == plain::traffic.order_hash);
  CHECK(same(train<all>(), train<merged>()));
  // what goes back through q, k and v is added in float and rounded once, not twice; updates by gradients themselves show it
  using sgd = sw::sgd<>;
  const std::vector<float> want = train<step_with<D, N, low, sgd>>(0.5);
  const std::vector<float> got = train<step_with<D, N, low, sgd, sw::merge_products>>(0.5);
  const double far = apart(want, got, train<step_with<D, N, low, sgd>>(0));
  MESSAGE(D << " x " << N << " ranks: updates apart by " << far);
  CHECK(far < 1e-2);
  CHECK(far > 0);
}
TEST_CASE("mixed passes: q, k and v behind the casts of their weights are one product each way") {
  check_products<1, 1>();
  check_products<2, 1>();
  check_products<1, 2>();
  check_products<2, 2>();
}

// In shards the parameters of a layer are gathered together, in two bytes.
template <int D>
void check_shards() {
  CAPTURE(D);
  constexpr auto step_of = []<class... Passes>(sw::pipeline<Passes...>) {
    using task = tt::next_byte<size, dp<D>>;
    using plan = sw::plan<sw::fully_shard<dp<D>>, sw::at<"layers.*", sw::fully_shard<dp<D>>>, low>;
    return std::type_identity<
        sw::train_step<tt::gpt_of<size>::gpt, task, plan, sw::mesh<dp<D>>, sw::sgd<>, sw::pipeline<Passes...>, float>>{};
  };
  using plain = typename decltype(step_of(sw::pipeline<>{}))::type;
  using merged = typename decltype(step_of(sw::pipeline<sw::merge_products>{}))::type;
  using all = typename decltype(step_of(sw::pipeline<sw::merge_products, sw::fuse_kernels, sw::join_norm_adjoints>{}))::type;
  static_assert(of<merged>(op_code::einsum) == of<plain>(op_code::einsum) - 6 * layers);
  static_assert(of<merged>(op_code::add) == of<plain>(op_code::add) - 4 * layers);
  const std::vector<float> want = train<plain>(0.5), got = train<merged>(0.5);
  CHECK(apart(want, got, train<plain>(0)) < 1e-2);
  CHECK(same(train<all>(0.5), got));
}
TEST_CASE("mixed passes: q, k and v in shards are one product each way") {
  check_shards<2>();
  check_shards<4>();
}

}  // namespace
