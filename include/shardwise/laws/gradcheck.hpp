// SPDX-License-Identifier: Apache-2.0
// gradcheck: a function's gradients against central differences, as torch.autograd.gradcheck. That ranks agree with one device
// is another law: laws/cases.hpp.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <sstream>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include <shardwise/module/function.hpp>
#include <shardwise/runtime/eager/create.hpp>
#include <shardwise/runtime/threads/threads.hpp>
#include <shardwise/support/philox.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

struct gradcheck_axis : axis<1> {};

// The results of F, weighted so that no gradient vanishes by symmetry.
template <class F>
struct weighted_result {
  template <class W, class... X>
  constexpr auto operator()(const W& weight, const X&... x) const {
    return F{}(x...) * weight;
  }
};

}  // namespace detail

// F of double tensors of these shapes returns one tensor. For each element of each operand the gradient of sum(w F(x)), w and x
// drawn from `seed` (normal), is compared with (L(x + h) - L(x - h)) / 2h, h = 1e-5 max(1, |x|). Returns how many were compared. Throws
// std::runtime_error that names operand, element and both numbers where they differ by more than `tolerance` times
// (1 + the larger one), a NaN included. Where F has a bend (relu, maximum) a draw may fall on it: take another seed.
template <class F, class... Shape>
std::int64_t gradcheck(std::uint64_t seed = 1, double tolerance = 1e-6) {
  using mesh_type = mesh<detail::gradcheck_axis>;
  std::int64_t compared = 0;
  launch<mesh_type>([&](auto& rank) {
    eager e(rank);
    using rank_type = std::remove_reference_t<decltype(rank)>;
    std::uint64_t drawn = 0;
    const auto draw = [&](std::int64_t n) {
      std::vector<double> v(static_cast<std::size_t>(n));
      for (double& x : v) {
        // the sum of twelve uniform numbers less their mean: normal enough
        x = -6;
        for (int k = 0; k < 12; ++k) x += philox_uniform(seed, 0, 0, drawn++);
      }
      return v;
    };
    constexpr std::size_t operands = sizeof...(Shape);
    std::vector<double> value[operands] = {draw(numel(spec_of<double, Shape, mesh_type>::value))...};
    const auto evaluate = [&]<std::size_t... K>(std::index_sequence<K...>) {
      return F{}(dtensor<spec_of<double, Shape, mesh_type>::value, mesh_type, rank_type>::distribute(e, value[K])...);
    };
    const auto each = std::make_index_sequence<operands>{};
    using result = decltype(evaluate(each));
    const std::vector<double> weight = draw(numel(result::sp));
    const auto loss = [&] {
      const auto y = evaluate(each).full_tensor();
      double sum = 0;
      const auto block = contiguous(y).to_local();
      for (std::size_t i = 0; i < weight.size(); ++i) sum += block.data[i] * weight[i];
      return sum;
    };
    const auto gradients = [&]<std::size_t... K>(std::index_sequence<K...>) {
      return value_and_grad<detail::weighted_result<F>, static_cast<int>(K + 1)...>(
          result::distribute(e, weight),
          dtensor<spec_of<double, Shape, mesh_type>::value, mesh_type, rank_type>::distribute(e, value[K])...);
    }(each);
    const auto compare = [&](std::size_t operand, const auto& gradient) {
      const auto block = contiguous(gradient.full_tensor());
      const auto g = block.to_local();
      for (std::size_t i = 0; i < value[operand].size(); ++i, ++compared) {
        const double x = value[operand][i], h = 1e-5 * std::max(1.0, std::abs(x));
        value[operand][i] = x + h;
        const double above = loss();
        value[operand][i] = x - h;
        const double below = loss();
        value[operand][i] = x;
        const double difference = (above - below) / (2 * h), given = g.data[i];
        if (std::abs(given - difference) <= tolerance * (1 + std::max(std::abs(given), std::abs(difference)))) continue;
        std::ostringstream text;
        text.precision(12);
        text << "shardwise: gradcheck: the gradient of operand " << operand << " at element " << i << " is " << given
             << ", differences give " << difference << "; correct the adjoint, or the kernel that it is the adjoint of";
        throw std::runtime_error(text.str());
      }
    };
    [&]<std::size_t... K>(std::index_sequence<K...>) { (compare(K, std::get<K + 1>(gradients)), ...); }(each);
  });
  return compared;
}

}  // namespace shardwise::inline v0_1
