// SPDX-License-Identifier: Apache-2.0
// weight_average: a moving average of a program's parameters beside them, which another program evaluates.
//
//   sw::weight_average average(run);
//   ... run.run(env); average.update(run, 0.999);            // after each step
//   average.exchange(run);                                   // run has the average, and average the weights
//   judge.copy_parameters(run);
//   average.exchange(run);                                   // and back: training goes on, to the bit
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include <shardwise/runtime/executor/block_access.hpp>

namespace shardwise::inline v0_1 {

// Of an executor's own program, whatever its plan: each rank averages the blocks that it stores, and nothing is sent. They lie in host
// memory, as large as the rank's parameters; buffers and states are not averaged. With executors on GPUs each call copies all blocks.
template <class Executor>
class weight_average {
 public:
  using element = typename Executor::element;

  // The weights as they are. Throws std::logic_error where a parameter has no value.
  explicit weight_average(Executor& run) {
    runtime::block_access::check_parameters("weight_average", run);
    each(run, [&](int node, std::size_t n) {
      runtime::block_access::read(run, node, [&](const element* block) { averages_.emplace_back(block, block + n); });
    });
  }

  // average = decay average + (1 - decay) weights, from the nearer end, as torch.optim.swa_utils' get_ema_multi_avg_fn. With decay n / (n + 1) after n updates
  // it is the mean of all weights so far. Throws std::invalid_argument unless decay is from 0 to 1.
  void update(Executor& run, double decay) {
    if (!(decay >= 0 && decay <= 1))
      throw std::invalid_argument("shardwise: weight_average: the decay is " + std::to_string(decay) +
                                  "; give one from 0, the weights as they are, to 1, the average as it is");
    std::size_t k = 0;
    each(run, [&](int node, std::size_t n) {
      std::vector<element>& average = averages_[k++];
      runtime::block_access::read(run, node, [&](const element* block) {
        const element share = static_cast<element>(1 - decay), rest = static_cast<element>(decay);
        for (std::size_t i = 0; i < n; ++i) {
          const element now = block[i], way = now - average[i];
          average[i] = decay > 0.5 ? average[i] + share * way : now - rest * way;
        }
      });
    });
  }

  // What the executor has as parameters is here afterwards, and the other way about.
  void exchange(Executor& run) {
    std::size_t k = 0;
    each(run, [&](int node, std::size_t n) {
      std::vector<element>& average = averages_[k++];
      std::vector<element> weights;
      runtime::block_access::read(run, node, [&](const element* block) { weights.assign(block, block + n); });
      runtime::block_access::fill(run, node, [&](element* block) {
        for (std::size_t i = 0; i < n; ++i) block[i] = average[i];
      });
      average.swap(weights);
    });
  }

 private:
  // f(node, elements of this rank's block) for each parameter.
  template <class F>
  static void each(Executor& run, const F& f) {
    const auto& g = Executor::image();
    for (int i = 0; i < g.node_count; ++i)
      if (g.nodes[i].op == op_code::param) f(i, static_cast<std::size_t>(run.layout_of(i).numel()));
  }

  std::vector<std::vector<element>> averages_;
};

}  // namespace shardwise::inline v0_1
