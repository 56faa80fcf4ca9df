// SPDX-License-Identifier: Apache-2.0
// Optimizers against their formulas, written out: SGD with momentum, Adam, AdamW, weight decay, global-norm clipping.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include <shardwise/module/hana.hpp>
#include <shardwise/shardwise.hpp>

namespace {

namespace sw = shardwise;

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;

template <class Bound = sw::unbound>
struct pair : sw::module<pair<Bound>, Bound> {
  using matrix_type = sw::parameter<sw::shape<2, 3>, sw::init::normal<1, 1>, sw::child<Bound, 0>>;
  using vector_type = sw::parameter<sw::shape<4>, sw::init::normal<1, 1>, sw::child<Bound, 1>>;
  BOOST_HANA_DEFINE_STRUCT(pair, (matrix_type, matrix), (vector_type, vector));
  constexpr auto forward(const auto& g, const auto& h) const { return sw::sum(matrix * g) + sw::sum(vector * h); }
};

// The gradients are the inputs themselves.
struct task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<2, 3>>, sw::input_tensor<double, sw::shape<4>>>;
  constexpr auto operator()(const auto& model, const auto& g, const auto& h) const { return model(g, h); }
};

double gradient_at(int step, std::size_t i) { return std::sin(0.7 * static_cast<double>(i) + 1.3 * step); }

// update(parameter, gradient, m, v, step) is the reference for one element.
template <class Optimizer, class Update>
void check(sw::step_env env, Update update, double clip_at = 0) {
  using step = sw::train_step<pair, task, sw::plan<>, mesh, Optimizer, sw::pipeline<>, double>;
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<step, sw::thread_rank<mesh>> run(rank);
    run.initialise(11);
    std::vector<double> p(run.parameter(0).begin(), run.parameter(0).end());
    p.insert(p.end(), run.parameter(1).begin(), run.parameter(1).end());
    std::vector<double> m(p.size()), v(p.size());
    for (int s = 1; s <= 4; ++s) {
      std::vector<double> g(p.size());
      double square = 0;
      for (std::size_t i = 0; i < g.size(); ++i) square += (g[i] = gradient_at(s, i)) * g[i];
      run.set_input(0, std::vector<double>(g.begin(), g.begin() + 6));
      run.set_input(1, std::vector<double>(g.begin() + 6, g.end()));
      env.step = s;
      run.run(env);
      const double factor = clip_at > 0 ? std::min(1.0, clip_at / (std::sqrt(square) + 1e-6)) : 1;
      for (std::size_t i = 0; i < p.size(); ++i) update(p[i], g[i] * factor, m[i], v[i], s, i < 6);
    }
    for (std::size_t i = 0; i < p.size(); ++i)
      CHECK((i < 6 ? run.parameter(0)[i] : run.parameter(1)[i - 6]) == doctest::Approx(p[i]).epsilon(1e-13));
  });
}

constexpr double lr = 0.05, b1 = 0.8, b2 = 0.95, eps = 1e-7, decay = 0.1;

sw::step_env environment() {
  sw::step_env env;
  env.lr = lr;
  env.beta1 = b1;
  env.beta2 = b2;
  env.eps = eps;
  return env;
}

void adam_reference(double& p, double g, double& m, double& v, int s) {
  m = b1 * m + (1 - b1) * g;
  v = b2 * v + (1 - b2) * g * g;
  p -= lr * (m / (1 - std::pow(b1, s))) / (std::sqrt(v / (1 - std::pow(b2, s))) + eps);
}

}  // namespace

TEST_CASE("sgd: plain, and with weight decay added to the gradient") {
  check<sw::sgd<>>(environment(), [](double& p, double g, double&, double&, int, bool) { p -= lr * g; });
  auto env = environment();
  env.weight_decay = decay;
  check<sw::sgd<>>(env, [](double& p, double g, double&, double&, int, bool) { p -= lr * (g + decay * p); });
}

TEST_CASE("sgd: momentum buffer") {
  auto env = environment();
  env.momentum = 0.9;
  check<sw::sgd<true>>(env, [](double& p, double g, double& m, double&, int, bool) { p -= lr * (m = 0.9 * m + g); });
}

TEST_CASE("sgd: Nesterov's momentum, with decay") {
  auto env = environment();
  env.momentum = 0.9;
  env.weight_decay = decay;
  check<sw::sgd<true, sw::sgd_form::nesterov>>(env, [](double& p, double g, double& m, double&, int, bool) {
    const double d = g + decay * p;
    m = 0.9 * m + d;
    p -= lr * (d + 0.9 * m);
  });
}

TEST_CASE("adam: bias-corrected moments, eps outside the root") {
  check<sw::adam<>>(environment(),
                    [](double& p, double g, double& m, double& v, int s, bool) { adam_reference(p, g, m, v, s); });
}

TEST_CASE("adamw: decoupled decay of all parameters, or of matrices only") {
  auto env = environment();
  env.weight_decay = decay;
  check<sw::adamw<>>(env, [](double& p, double g, double& m, double& v, int s, bool) {
    p *= 1 - lr * decay;
    adam_reference(p, g, m, v, s);
  });
  check<sw::adamw<true>>(env, [](double& p, double g, double& m, double& v, int s, bool matrix) {
    if (matrix) p *= 1 - lr * decay;
    adam_reference(p, g, m, v, s);
  });
}

TEST_CASE("clip_norm: all gradients are scaled by one factor when their global norm exceeds max_norm") {
  auto env = environment();
  env.max_norm = 0.5;
  check<sw::clip_norm<sw::sgd<>>>(env, [](double& p, double g, double&, double&, int, bool) { p -= lr * g; }, 0.5);
  env.max_norm = 100;
  check<sw::clip_norm<sw::sgd<>>>(env, [](double& p, double g, double&, double&, int, bool) { p -= lr * g; }, 100);
}
