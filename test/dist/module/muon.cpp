// SPDX-License-Identifier: Apache-2.0
// Muon against its rule in plain loops over doubles: on 1 to 4 ranks, data-parallel, in shards of parameters (rows and, with tensor
// parallelism, columns) and in shards of states; wide, tall and square matrices; vectors and named groups by AdamW; options; a skipped
// step; eager; checkpoints.
#include <shardwise/shardwise.hpp>

#include <shardwise/io/checkpoint/checkpoint.hpp>
#include <shardwise/module/muon.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/reorder.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>

#include <doctest/doctest.h>

#include <files.hpp>
#include <torch_optimizers.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace {

namespace sw = shardwise;
using matrix = std::vector<double>;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};

constexpr int rows = 10, in = 7, hidden = 5,
              out = 5;  // 5 x 7, 5 x 5 and 12 x 5: wide, square and tall, uneven over 2, 3 and 4 ranks
constexpr int last = 12;
template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<in, hidden>, wide), (sw::linear<hidden, out>, square), (sw::linear<out, last>, tall));
  constexpr auto forward(const auto& x) const { return tall(sw::tanh(square(sw::tanh(wide(x))))); }
};
template <class T, int N>
struct fit {
  using inputs = sw::inputs<sw::input_tensor<T, sw::shape<rows, in>, sw::on<dp<N>, sw::shard<0>>>,
                            sw::input_tensor<T, sw::shape<rows, last>, sw::on<dp<N>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& t) const {
    const auto apart = sw::cast<T>(model(x)) - t;
    return sw::mean(apart * apart);
  }
};
template <class Mesh, class T, int N, class Optimizer, class Pipeline, class... E>
using step_on = sw::train_step<net, fit<T, N>, sw::plan<E...>, Mesh, Optimizer, Pipeline, T>;
template <class T, int N, class Optimizer, class... E>
using step = step_on<sw::mesh<dp<N>>, T, N, Optimizer, sw::pipeline<>, E...>;

const char* const names[] = {"wide.weight", "wide.bias", "square.weight", "square.bias", "tall.weight", "tall.bias"};
constexpr int extents[][2] = {{hidden, in}, {hidden, 1}, {out, hidden}, {out, 1}, {last, out}, {last, 1}};

template <class T>
std::vector<T> numbers(int count, int s, double seed) {
  std::vector<T> v;
  for (int i = 0; i < count; ++i) v.push_back(static_cast<T>(std::sin(1.7 * i + seed + 0.9 * s)));
  return v;
}
sw::step_env env_at(int s) {
  sw::step_env env;
  env.step = s;
  env.lr = 0.02;
  env.momentum = 0.9;
  env.weight_decay = 0.1;
  env.max_norm = 0.5;
  env.clip_value = 0.01;
  return env;
}

// --- the rule ---------------------------------------------------------------------------------------------------------------

// x (r x k) times y (k x c).
matrix product(const matrix& x, const matrix& y, int r, int k, int c) {
  matrix z(static_cast<std::size_t>(r * c), 0.0);
  for (int i = 0; i < r; ++i)
    for (int j = 0; j < c; ++j)
      for (int l = 0; l < k; ++l)
        z[static_cast<std::size_t>(i * c + j)] +=
            x[static_cast<std::size_t>(i * k + l)] * y[static_cast<std::size_t>(l * c + j)];
  return z;
}
matrix turned(const matrix& x, int r, int c) {
  matrix z(x.size());
  for (int i = 0; i < r; ++i)
    for (int j = 0; j < c; ++j) z[static_cast<std::size_t>(j * r + i)] = x[static_cast<std::size_t>(i * c + j)];
  return z;
}
// As Jordan writes it: of a tall matrix the transposed one is iterated.
matrix orthogonal(matrix x, int r, int c) {
  const bool tall = r > c;
  if (tall) x = turned(x, r, c), std::swap(r, c);
  double square = 0;
  for (const double e : x) square += e * e;
  for (double& e : x) e /= std::sqrt(square) + 1e-7;
  for (int k = 0; k < 5; ++k) {
    const matrix a = product(x, turned(x, r, c), r, c, r), aa = product(a, a, r, r, r);
    matrix b(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) b[i] = -4.7750 * a[i] + 2.0315 * aa[i];
    const matrix bx = product(b, x, r, r, c);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] + bx[i];
  }
  return tall ? turned(x, r, c) : x;
}

struct muon_rule {
  bool match = false, maximize = false, clips_values = false, clips_norm = false;
  bool by_adam[6] = {false, true, false, true, false, true};
};
struct state {
  matrix x, m, v;
};

void step_by(const muon_rule& rule, std::vector<state>& all, std::vector<matrix> g, int s, const sw::step_env& env) {
  double square = 0;
  for (const auto& k : g)
    for (const double e : k) square += e * e;
  const double by = rule.clips_norm ? std::min(1.0, env.max_norm / (std::sqrt(square) + 1e-6)) : 1;
  for (std::size_t k = 0; k < all.size(); ++k) {
    state& p = all[k];
    const std::size_t n = p.x.size();
    p.m.resize(n);
    p.v.resize(n);
    for (double& e : g[k]) {
      e *= by;
      if (rule.clips_values) e = std::min(std::max(e, -env.clip_value), env.clip_value);
      if (rule.maximize) e = -e;
    }
    const double shrink = 1 - env.lr * env.weight_decay;
    if (rule.by_adam[k]) {
      for (std::size_t i = 0; i < n; ++i) {
        p.m[i] = env.beta1 * p.m[i] + (1 - env.beta1) * g[k][i];
        p.v[i] = env.beta2 * p.v[i] + (1 - env.beta2) * g[k][i] * g[k][i];
        const double first = 1 - std::pow(env.beta1, s), second = 1 - std::pow(env.beta2, s);
        p.x[i] = p.x[i] * shrink - env.lr / first * p.m[i] / (std::sqrt(p.v[i] / second) + env.eps);
      }
      continue;
    }
    const int r = extents[k][0], c = extents[k][1];
    matrix u(n);
    for (std::size_t i = 0; i < n; ++i) {
      p.m[i] += (g[k][i] - p.m[i]) * (1 - env.momentum);
      u[i] = g[k][i] + (p.m[i] - g[k][i]) * env.momentum;
    }
    u = orthogonal(u, r, c);
    const double rate = rule.match ? 0.2 * std::sqrt(std::max(r, c)) : std::sqrt(std::max(1.0, double(r) / c));
    for (std::size_t i = 0; i < n; ++i) p.x[i] = p.x[i] * shrink - env.lr * rate * u[i];
  }
}

// --- the network and its gradients --------------------------------------------------------------------------------------------

std::vector<matrix> gradients_of(const std::vector<state>& p, int s) {
  const matrix x = numbers<double>(rows * in, s, 0), t = numbers<double>(rows * last, s, 5);
  const auto layer = [&](const matrix& a, int w, bool bends) {
    matrix y = product(a, turned(p[static_cast<std::size_t>(w)].x, extents[w][0], extents[w][1]), rows, extents[w][1],
                       extents[w][0]);
    for (std::size_t i = 0; i < y.size(); ++i) {
      y[i] += p[static_cast<std::size_t>(w) + 1].x[i % static_cast<std::size_t>(extents[w][0])];
      if (bends) y[i] = std::tanh(y[i]);
    }
    return y;
  };
  const matrix a = layer(x, 0, true), b = layer(a, 2, true), y = layer(b, 4, false);
  std::vector<matrix> g(6);
  matrix d(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) d[i] = 2 * (y[i] - t[i]) / (rows * last);
  const matrix* const fed[] = {&x, nullptr, &a, nullptr, &b};
  for (int w = 4; w >= 0; w -= 2) {
    const int r = extents[w][0], c = extents[w][1];
    const auto at = static_cast<std::size_t>(w);
    g[at] = product(turned(d, rows, r), *fed[w], r, rows, c);
    g[at + 1].assign(static_cast<std::size_t>(r), 0.0);
    for (std::size_t i = 0; i < d.size(); ++i) g[at + 1][i % static_cast<std::size_t>(r)] += d[i];
    if (w == 0) break;
    d = product(d, p[at].x, rows, r, c);
    for (std::size_t i = 0; i < d.size(); ++i) d[i] *= 1 - (*fed[w])[i] * (*fed[w])[i];
  }
  return g;
}

void check_near(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    worst = std::max(worst, std::fabs(got[i] - expected[i]) / (1 + std::fabs(expected[i])));
  CHECK(worst <= 1e-10);
}

constexpr int steps = 6;
template <class Executor>
void feed(Executor& run, int s) {
  using T = typename Executor::element;
  run.set_input(0, numbers<T>(rows * in, s, 0));
  run.set_input(1, numbers<T>(rows * last, s, 5));
}

template <class Step>
void check_run(const muon_rule& rule = {}) {
  CAPTURE(Step::mesh_type::size);
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> run(rank, sw::executor_checks::poison);
    run.initialise(7);
    std::vector<state> expected(6);
    for (std::size_t k = 0; k < 6; ++k) expected[k].x = run.full_parameter(names[k]);
    for (int s = 1; s <= steps; ++s) {
      step_by(rule, expected, gradients_of(expected, s), s, env_at(s));
      feed(run, s);
      run.run(env_at(s));
    }
    for (std::size_t k = 0; k < 6; ++k) {
      CAPTURE(names[k]);
      check_near(run.full_parameter(names[k]), expected[k].x);
      check_near(run.full_state(names[k], sw::moment::first), expected[k].m);
      if (rule.by_adam[k]) check_near(run.full_state(names[k], sw::moment::second), expected[k].v);
    }
  });
}
template <class Optimizer, class... E>
void check_ranks(const muon_rule& rule = {}) {
  const auto on = [&]<int N>() {
    check_run<step<double, N, Optimizer, sw::data_parallel<dp<N>>, E...>>(rule);
    check_run<step<double, N, Optimizer, sw::fully_shard<dp<N>>, E...>>(rule);
  };
  on.template operator()<1>();
  on.template operator()<2>();
  on.template operator()<3>();
  on.template operator()<4>();
}

}  // namespace

TEST_CASE("muon: on 1 to 4 ranks, data-parallel and in shards") { check_ranks<sw::muon<>>(); }

TEST_CASE("muon: steps as large as AdamW's, a group by AdamW, options") {
  using all = sw::clip_norm<sw::clip_value<sw::maximize<sw::muon<sw::muon_rate::match_rms_adamw, "output">>>>;
  muon_rule rule{.match = true, .maximize = true, .clips_values = true, .clips_norm = true};
  rule.by_adam[4] = true;
  check_ranks<all, sw::at<"tall", sw::param_group<"output">>>(rule);
}

TEST_CASE("muon: tensor parallel beside shards, states in shards, passes") {
  using both = sw::mesh<dp<2>, tp<2>>;
  using three = sw::mesh<dp<3>, tp<2>>;
  const auto plans = [&]<class Mesh, int N, int K>() {
    check_run<step_on<Mesh, double, N, sw::muon<>, sw::pipeline<>, sw::data_parallel<dp<N>>,
                      sw::at<"wide", sw::colwise<tp<K>>>, sw::at<"square", sw::rowwise<tp<K>>>>>();
    check_run<step_on<Mesh, double, N, sw::muon<>, sw::pipeline<>, sw::fully_shard<dp<N>>,
                      sw::at<"wide", sw::colwise<tp<K>>>, sw::at<"square", sw::rowwise<tp<K>>>>>();
  };
  plans.template operator()<both, 2, 2>();
  plans.template operator()<three, 3, 2>();
  check_run<step<double, 3, sw::muon<>, sw::data_parallel<dp<3>, sw::shard_optimizer_states>>>();
  check_run<step_on<sw::mesh<dp<2>>, double, 2, sw::muon<>, sw::pipeline<sw::fuse_kernels>, sw::data_parallel<dp<2>>>>();
  check_run<step_on<sw::mesh<dp<2>>, double, 2, sw::muon<>,
                    sw::pipeline<sw::comm_fusion_in_place<25>, sw::expedite_comms, sw::reorder_compute_for_overlap<>,
                                 sw::sink_waits, sw::raise_comms>,
                    sw::fully_shard<dp<2>>>>();
  check_run<
      step_on<sw::mesh<dp<2>>, double, 2, sw::muon<>, sw::pipeline<sw::foreach_optimizer>, sw::data_parallel<dp<2>>>>();
}

// --- what the whole matrix costs, replicas, skipped steps, eager tensors, checkpoints ---------------------------------------------

namespace {

using whole = step<double, 3, sw::muon<>, sw::data_parallel<dp<3>>>;
using in_shards = step<double, 3, sw::muon<>, sw::fully_shard<dp<3>>>;
using adam_in_shards = step<double, 3, sw::adamw<>, sw::fully_shard<dp<3>>>;
using adam_whole = step<double, 3, sw::adamw<>, sw::data_parallel<dp<3>>>;

// Where parameters are whole nothing more is sent; else each matrix' direction is gathered, once.
static_assert(whole::comm_bytes<dp<3>> == adam_whole::comm_bytes<dp<3>>);
constexpr std::int64_t matrices_gathered = [] {
  std::int64_t bytes = 0;
  for (const auto& e : {extents[0], extents[2], extents[4]})  // rank 0 has the most rows and sends them to two others
    bytes += 2 * 8 * std::int64_t{(e[0] + 2) / 3} * e[1];
  return bytes;
}();
static_assert(in_shards::comm_bytes<dp<3>, 0> - adam_in_shards::comm_bytes<dp<3>, 0> == matrices_gathered);
// One moment of a matrix, not two.
static_assert(whole::memory::value.persistent_end < adam_whole::memory::value.persistent_end);

template <class Executor>
std::vector<std::vector<double>> held(Executor& run) {
  std::vector<std::vector<double>> all;
  for (const char* name : names) {
    const auto x = run.full_parameter(name), m = run.full_state(name, sw::moment::first);
    all.emplace_back(x.begin(), x.end());
    all.emplace_back(m.begin(), m.end());
  }
  return all;
}

}  // namespace

TEST_CASE("muon: replicas hold the same bits") {
  sw::launch<whole::mesh_type>([](auto& rank) {
    sw::executor<whole> run(rank);
    run.initialise(7);
    for (int s = 1; s <= 4; ++s) {
      feed(run, s);
      run.run(env_at(s));
    }
    for (const char* name : names) {
      const auto own = run.parameter(name);
      CHECK(run.full_parameter(name) == std::vector<double>(own.begin(), own.end()));  // rank 0's, on every rank
    }
  });
}

TEST_CASE("muon: a gradient of zeros moves nothing but by decay, and no NaN comes of it") {
  using still = step<float, 2, sw::muon<>, sw::data_parallel<dp<2>>>;
  sw::launch<still::mesh_type>([](auto& rank) {
    sw::executor<still> run(rank, sw::executor_checks::finite);
    run.initialise(7);
    run.set_parameter("tall.weight", std::vector<float>(last * out, 0.0F));  // nothing reaches the layers below
    const auto before = run.full_parameter("wide.weight");
    feed(run, 1);
    auto env = env_at(1);
    env.weight_decay = 0;
    run.run(env);
    CHECK(run.full_parameter("wide.weight") == before);
  });
}

TEST_CASE("muon: a step that a dynamic loss scale skips leaves no trace") {
  using scaled = step<float, 2, sw::muon<>, sw::mixed<sw::f16>, sw::dynamic_loss_scale<1024>, sw::fully_shard<dp<2>>>;
  using fixed = step<float, 2, sw::muon<>, sw::mixed<sw::f16>, sw::loss_scale<512>, sw::fully_shard<dp<2>>>;
  sw::launch<sw::mesh<dp<2>>>([&](auto& rank) {
    sw::executor<scaled> a(rank);
    sw::executor<fixed> b(rank);
    a.initialise(3);
    b.initialise(3);
    std::vector<float> bad(rows * in, 1.0F);
    bad[4] = std::numeric_limits<float>::infinity();
    a.set_input(0, bad);
    a.set_input(1, std::vector<float>(rows * last, 1.0F));
    a.run(env_at(1));
    CHECK(a.scaler_state().skipped_steps == 1);
    for (int s = 1; s <= 4; ++s) {
      feed(a, s);
      a.run(env_at(s + 1));
      feed(b, s);
      b.run(env_at(s));
    }
    CHECK(held(a) == held(b));
  });
}

TEST_CASE("muon: an eager model's steps have the compiled step's bits") {
  using plan = sw::plan<sw::fully_shard<dp<3>>>;
  sw::launch<in_shards::mesh_type>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<in_shards> run(rank);
    run.initialise(5);
    sw::eager on(rank);
    sw::bind_eager<net, plan, in_shards::mesh_type, double, rank_type> model{};
    sw::initialise(model, on, 5);
    sw::eager_optimizer<sw::muon<>, decltype(model)> optimizer;
    using input = sw::dtensor_of<double, sw::shape<rows, in>, in_shards::mesh_type, sw::on<dp<3>, sw::shard<0>>>;
    using target = sw::dtensor_of<double, sw::shape<rows, last>, in_shards::mesh_type, sw::on<dp<3>, sw::shard<0>>>;
    for (int s = 1; s <= 3; ++s) {
      feed(run, s);
      run.run(env_at(s));
      const auto found = sw::value_and_grad(fit<double, 3>{})(model, input::distribute(on, numbers<double>(rows * in, s, 0)),
                                                              target::distribute(on, numbers<double>(rows * last, s, 5)));
      optimizer.step(model, found.gradients, env_at(s));
    }
    sw::for_each_parameter(model, [&](const std::string& path, auto& p) {
      const auto theirs = run.parameter(path);
      const auto ours = p.to_local().data;
      CHECK_MESSAGE(std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end()), path);
    });
  });
}

TEST_CASE("muon: a checkpoint goes on under another plan") {
  using to = step<double, 2, sw::muon<>, sw::data_parallel<dp<2>>>;
  const test::folder scratch;
  std::vector<std::vector<double>> then, end;
  const auto go_on = [](auto& run) {
    for (int s = 4; s <= 6; ++s) {
      feed(run, s);
      run.run(env_at(s));
    }
    return held(run);
  };
  sw::launch<in_shards::mesh_type>([&](auto& rank) {
    sw::executor<in_shards> run(rank);
    run.initialise(7);
    for (int s = 1; s <= 3; ++s) {
      feed(run, s);
      run.run(env_at(s));
    }
    const auto own = held(run);
    sw::save(run, scratch.path(), {.step = 3});
    const auto later = go_on(run);
    if (rank.index() == 0) then = own, end = later;
  });
  sw::launch<to::mesh_type>([&](auto& rank) {
    sw::executor<to> run(rank);
    CHECK(sw::load(run, scratch.path()).step == 3);
    CHECK(held(run) == then);
    const auto later = go_on(run);
    for (std::size_t k = 0; k < later.size(); ++k) check_near(later[k], end[k]);
  });
}

TEST_CASE("muon reads a momentum, and AdamW's numbers only where there is something for AdamW") {
  sw::launch_fake<sw::mesh<dp<1>>>(0, [](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    using alone = step<double, 1, sw::muon<>, sw::data_parallel<dp<1>>, sw::at<"*.bias", sw::frozen>>;
    sw::executor<alone, rank_type> run(rank);
    run.initialise(1);
    feed(run, 1);
    sw::step_env env;
    env.lr = 0.1;
    CHECK_THROWS_WITH(run.run(env), doctest::Contains("env.momentum is not a number, as it is while nobody has set it; the "
                                                      "optimizer is sgd<true> or muon"));
    env.momentum = 0.9;
    CHECK_NOTHROW(run.run(env));  // no step's number
    sw::executor<step<double, 1, sw::muon<>, sw::data_parallel<dp<1>>>, rank_type> both(rank);
    both.initialise(1);
    feed(both, 1);
    CHECK_THROWS_WITH(both.run(env), doctest::Contains("env.step is 0"));
  });
}
