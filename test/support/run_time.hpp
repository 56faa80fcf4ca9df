// SPDX-License-Identifier: Apache-2.0
// Runs of programs with run-time sizes, bit by bit.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <shardwise/shardwise.hpp>

namespace run_time {

namespace sw = shardwise;

struct two_sizes {
  int batch, length;
};
// All outputs and the gradient, of every rank.
template <class Step, int Outputs>
std::vector<std::uint64_t> all_bits_of(const std::vector<two_sizes>& sizes, int columns, auto&& resize) {
  std::vector<std::vector<std::uint64_t>> of(static_cast<std::size_t>(Step::mesh_type::size));
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step, std::remove_cvref_t<decltype(rank)>> run(rank, sw::executor_checks::poison);
    for (const two_sizes& n : sizes) {
      resize(run, n);
      std::vector<double> x(static_cast<std::size_t>(n.batch * n.length * columns));
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.9 * static_cast<double>(i));
      run.set_input(0, x);
      run.run(sw::step_env{});
      for (int k = 0; k < Outputs; ++k)
        for (const double v : run.template output<double>(k).data)
          of[static_cast<std::size_t>(rank.index())].push_back(std::bit_cast<std::uint64_t>(v));
    }
  });
  std::vector<std::uint64_t> all;
  for (const auto& bits : of) all.insert(all.end(), bits.begin(), bits.end());
  return all;
}
inline constexpr auto as_it_is = [](auto&, const two_sizes&) {};

}  // namespace run_time
