// SPDX-License-Identifier: Apache-2.0
// The next token by its logits: the likeliest, or drawn at a temperature from the k likeliest, under the names that transformers'
// generate has. A function of (logits, options, number of the token) alone, so ranks that hold equal logits choose alike.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <shardwise/support/philox.hpp>

namespace example {

struct sampling {
  double temperature = 1;  // logits are divided by it; 0: the likeliest token, greedy
  std::size_t top_k = 0;   // > 0: of the k likeliest, and those that are equal to the last of them
  std::uint64_t seed = 0;
};

/// Throws std::domain_error where no logit is a number: a model that diverged has nothing to say.
inline int next_token(std::span<const float> logits, const sampling& how, std::uint64_t number) {
  if (logits.empty()) throw std::domain_error("there are no logits to choose a token by.");
  int likeliest = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) throw std::domain_error("the model's logits are not numbers, so no token can be chosen.");
    if (logits[i] > logits[static_cast<std::size_t>(likeliest)]) likeliest = static_cast<int>(i);
  }
  const double top = static_cast<double>(logits[static_cast<std::size_t>(likeliest)]);
  if (how.temperature <= 0 || !std::isfinite(top)) return likeliest;

  float least = -std::numeric_limits<float>::infinity();
  if (how.top_k > 0 && how.top_k < logits.size()) {
    std::vector<float> sorted(logits.begin(), logits.end());
    const auto kth = sorted.begin() + static_cast<std::ptrdiff_t>(how.top_k - 1);
    std::nth_element(sorted.begin(), kth, sorted.end(), std::greater<>());
    least = *kth;
  }
  std::vector<double> weight(logits.size());
  double total = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    weight[i] = logits[i] < least ? 0 : std::exp((static_cast<double>(logits[i]) - top) / how.temperature);
    total += weight[i];
  }
  // a site of its own: batches are drawn at 0
  double left = shardwise::philox_uniform(how.seed, 1, static_cast<std::uint32_t>(number), number >> 32) * total;
  int chosen = likeliest;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (weight[i] == 0) continue;
    chosen = static_cast<int>(i);
    if ((left -= weight[i]) <= 0) break;
  }
  return chosen;
}

}  // namespace example
