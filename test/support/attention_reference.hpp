// SPDX-License-Identifier: Apache-2.0
// Attention in plain loops over doubles, with every option; and as a composition of products, masks and a softmax, which has
// gradients.
#pragma once

#include <cmath>
#include <shardwise/shardwise.hpp>
#include <vector>

namespace attention_reference {

namespace sw = shardwise;

// Extents in the order (batch, heads of q, heads of k, queries, keys, size, size of values).
struct sizes {
  int b = 1, h = 1, g = 1, tq = 1, tk = 1, d = 1, dv = 1;
};
// What is broadcast is given whole: (b, h, tq, tk), or nothing.
struct further {
  std::vector<double> bias{};
  std::vector<int> seen{};  // 0: hidden
};

// out (b, h, tq, dv), from q (b, h, tq, d), k (b, g, tk, d), v (b, g, tk, dv).
inline std::vector<double> attended(const sizes& s, bool causal, int window, double scale, const std::vector<double>& q,
                                    const std::vector<double>& k, const std::vector<double>& v, const further& f = {}) {
  const auto at = [](int a, int b, int c, int e, int nb, int nc, int ne) {
    return static_cast<std::size_t>(((a * nb + b) * nc + c) * ne + e);
  };
  std::vector<double> out(static_cast<std::size_t>(s.b * s.h * s.tq * s.dv));
  for (int b = 0; b < s.b; ++b)
    for (int h = 0; h < s.h; ++h)
      for (int i = 0; i < s.tq; ++i) {
        const int kh = h / (s.h / s.g);
        std::vector<double> e(static_cast<std::size_t>(s.tk));
        double top = -INFINITY, total = 0;
        for (int j = 0; j < s.tk; ++j) {
          double x = 0;
          for (int c = 0; c < s.d; ++c) x += q[at(b, h, i, c, s.h, s.tq, s.d)] * k[at(b, kh, j, c, s.g, s.tk, s.d)];
          x *= scale;
          if (!f.bias.empty()) x += f.bias[at(b, h, i, j, s.h, s.tq, s.tk)];
          bool sees = (!causal || j <= i) && (window == 0 || (j <= i && j > i - window));
          if (!f.seen.empty()) sees = sees && f.seen[at(b, h, i, j, s.h, s.tq, s.tk)] != 0;
          e[static_cast<std::size_t>(j)] = sees ? x : -INFINITY;
          top = std::max(top, e[static_cast<std::size_t>(j)]);
        }
        if (top == -INFINITY) continue;
        for (double& x : e) total += x = std::exp(x - top);
        for (int j = 0; j < s.tk; ++j)
          for (int c = 0; c < s.dv; ++c)
            if (e[static_cast<std::size_t>(j)] != 0)
              out[at(b, h, i, c, s.h, s.tq, s.dv)] +=
                  e[static_cast<std::size_t>(j)] / total * v[at(b, kh, j, c, s.g, s.tk, s.dv)];
      }
  return out;
}

// (b, t, h, d) of (b, h, t, d), and back.
inline std::vector<double> turned(const std::vector<double>& x, int b, int h, int t, int d) {
  std::vector<double> y(x.size());
  for (int i = 0; i < b; ++i)
    for (int j = 0; j < h; ++j)
      for (int k = 0; k < t; ++k)
        for (int c = 0; c < d; ++c)
          y[static_cast<std::size_t>(((i * t + k) * h + j) * d + c)] =
              x[static_cast<std::size_t>(((i * h + j) * t + k) * d + c)];
  return y;
}

// std::sqrt is no constant of clang's.
constexpr double inverse_root(double n) {
  double root = n;
  for (int i = 0; i < 60; ++i) root = 0.5 * (root + n / root);
  return 1 / root;
}
// Queries, keys and values (batch, heads, time, size), as they were before attention was one operation.
template <bool Causal>
struct composed {
  template <class Q, class K, class V>
  constexpr auto operator()(const Q& q, const K& k, const V& v) const {
    const auto scores = sw::matmul(q, sw::transpose<2, 3>(k)) * inverse_root(static_cast<double>(Q::sp.extent[3]));
    if constexpr (Causal) return sw::matmul(sw::causal_softmax(scores), v);
    else return sw::matmul(sw::softmax(scores), v);
  }
};

}  // namespace attention_reference
