// SPDX-License-Identifier: Apache-2.0
// torch.optim's SGD, Adam and AdamW with their options, and Lion, in plain loops over doubles, as their single-tensor code has them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <shardwise/runtime/program/call.hpp>

namespace test {

struct torch_optimizer {
  enum class kind { sgd, adam, lion };
  kind rule = kind::sgd;
  bool momentum = false, nesterov = false, dampened = false;  // SGD
  bool amsgrad = false, decoupled = false;                    // Adam
  bool matrices_only = false, maximize = false, clips_values = false, clips_norm = false;

  struct parameter {
    std::vector<double> x, m, v, largest;
    int rank = 2;
  };
  int steps = 0;
  double nearest_zero = std::numeric_limits<double>::infinity();  // of all numbers whose sign Lion took
  bool clipped = false, largest_used = false;                     // whether the options have had something to do

  void step(std::vector<parameter>& all, std::vector<std::vector<double>> gradients, const shardwise::step_env& env) {
    ++steps;
    if (clips_norm) {
      double square = 0;
      for (const auto& g : gradients)
        for (const double e : g) square += e * e;
      const double by = std::min(1.0, env.max_norm / (std::sqrt(square) + 1e-6));
      for (auto& g : gradients)
        for (double& e : g) e *= by;
    }
    for (std::size_t k = 0; k < all.size(); ++k) {
      parameter& p = all[k];
      p.m.resize(p.x.size());
      p.v.resize(p.x.size());
      p.largest.resize(p.x.size());
      const double decay = matrices_only && p.rank < 2 ? 0 : env.weight_decay;
      for (std::size_t i = 0; i < p.x.size(); ++i) {
        double g = gradients[k][i];
        if (clips_values) {
          clipped = clipped || std::fabs(g) > env.clip_value;
          g = std::min(std::max(g, -env.clip_value), env.clip_value);
        }
        if (maximize) g = -g;
        switch (rule) {
          case kind::sgd: of_sgd(p, i, g, decay, env); break;
          case kind::adam: of_adam(p, i, g, decay, env); break;
          case kind::lion: {
            const double c = env.beta1 * p.m[i] + (1 - env.beta1) * g;
            nearest_zero = std::min(nearest_zero, std::fabs(c));
            p.x[i] *= 1 - env.lr * decay;
            p.x[i] -= env.lr * (c > 0 ? 1 : c < 0 ? -1 : 0);
            p.m[i] = env.beta2 * p.m[i] + (1 - env.beta2) * g;
            break;
          }
        }
      }
    }
  }

 private:
  void of_sgd(parameter& p, std::size_t i, double g, double decay, const shardwise::step_env& env) const {
    g += decay * p.x[i];
    if (momentum) {
      p.m[i] = steps == 1 ? g : env.momentum * p.m[i] + (1 - (dampened ? env.dampening : 0)) * g;
      g = nesterov ? g + env.momentum * p.m[i] : p.m[i];
    }
    p.x[i] -= env.lr * g;
  }
  void of_adam(parameter& p, std::size_t i, double g, double decay, const shardwise::step_env& env) {
    if (decoupled) p.x[i] *= 1 - env.lr * decay;
    else g += decay * p.x[i];
    p.m[i] += (1 - env.beta1) * (g - p.m[i]);
    p.v[i] = env.beta2 * p.v[i] + (1 - env.beta2) * g * g;
    double divides = p.v[i];
    if (amsgrad) {
      largest_used = largest_used || p.largest[i] > p.v[i];
      divides = p.largest[i] = std::max(p.largest[i], p.v[i]);
    }
    const double first = 1 - std::pow(env.beta1, steps), second = 1 - std::pow(env.beta2, steps);
    p.x[i] -= env.lr / first * p.m[i] / (std::sqrt(divides) / std::sqrt(second) + env.eps);
  }
};

}  // namespace test
