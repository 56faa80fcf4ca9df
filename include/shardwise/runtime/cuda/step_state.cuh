// SPDX-License-Identifier: Apache-2.0
// step_state: what a step's kernels are given beside blocks: streams, the run's numbers, room for a bad index, tickets, products'
// plans.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <shardwise/operations/leaf/host.hpp>
#include <shardwise/runtime/cuda/device/env.cuh>
#include <shardwise/runtime/cuda/matmul_plans.cuh>
#include <shardwise/runtime/cuda/resources.hpp>
#include <shardwise/runtime/program/lowered.hpp>
#include <shardwise/runtime/program/schedule.hpp>

namespace shardwise::inline v0_1::cuda {

// A rank's own; what it queues goes to the compute stream. Each of `groups` groups of parameters has numbers of its own; what is
// no update reads those of group 0.
class step_state {
 public:
  explicit step_state(std::int32_t multiprocessors, int groups = 1)
      : env_(static_cast<std::size_t>(groups) * sizeof(device_env)),
        fault_(sizeof(index_fault)),
        tickets_(runtime::stream_count * ticket_bytes),
        seen_fault_(sizeof(index_fault)) {
    for (std::size_t s = 0; s < runtime::stream_count; ++s) {
      context_[s].stream = stream_[s].get();
      context_[s].env = env_of_group(0);
      context_[s].fault = reinterpret_cast<index_fault*>(fault_.data());
      context_[s].lt = lt_.get();
      context_[s].plans = &plans_;
      context_[s].tickets = reinterpret_cast<std::uint32_t*>(tickets_.data() + s * ticket_bytes);
      context_[s].multiprocessors = multiprocessors;
    }
    last_.resize(static_cast<std::size_t>(groups));
    check(cudaMemsetAsync(tickets_.data(), 0, runtime::stream_count * ticket_bytes, compute()), "cudaMemsetAsync");
  }

  cudaStream_t compute() const { return stream_[runtime::compute_stream].get(); }
  cudaStream_t communication() const { return stream_[runtime::communication_stream].get(); }
  context& of_stream(int s) { return context_[static_cast<std::size_t>(s)]; }

  const device_env* env_of_group(int group) const { return reinterpret_cast<const device_env*>(env_.data()) + group; }

  // The run's numbers, a group after the other, stored where they are not those of the run before.
  void set(const step_env* envs) {
    for (std::size_t k = 0; k < last_.size(); ++k) {
      if (known_ && std::memcmp(envs + k, &last_[k], sizeof(step_env)) == 0) continue;
      store(k, envs[k]);
      std::memcpy(&last_[k], envs + k, sizeof(step_env));
    }
    known_ = true;
  }
  // Numbers of a run that nobody has asked for, and no bad index.
  void clear() {
    for (std::size_t k = 0; k < last_.size(); ++k) store(k, last_[k]);
    clear_fault();
  }

  // Waits until all that is queued is done; throws where a kernel met an index outside its table, or a number that is no
  // probability. Rank: that of a device.
  template <class Program, class Rank>
  void synchronize(const Program& program, Rank& rank) {
    auto* const seen = static_cast<index_fault*>(seen_fault_.host());
    check(cudaMemcpyAsync(seen, fault_.data(), sizeof *seen, cudaMemcpyDeviceToHost, compute()), "cudaMemcpyAsync");
    rank.synchronize(compute());
    if (seen->node < 0) return;
    const index_fault found = *seen;
    clear_fault();
    const std::string place = " (" + runtime::place_of(program, found.node, rank.index()) + ")";
    if (found.limits == 2) throw std::domain_error(host::not_a_probability(std::bit_cast<double>(found.index)) + place);
    throw std::out_of_range("shardwise: index " + std::to_string(found.index) + " is outside 0.." +
                            std::to_string(found.limit - 1) + "; " + runtime::index_remedy(program.nodes[found.node].op) +
                            place);
  }

 private:
  void store(std::size_t group, const step_env& env) {
    set_env(env, reinterpret_cast<device_env*>(env_.data()) + group, compute());
  }

  static constexpr std::size_t ticket_bytes = ticket_count * sizeof(std::uint32_t);

  // All bits set: node -1.
  void clear_fault() { check(cudaMemsetAsync(fault_.data(), 0xFF, sizeof(index_fault), compute()), "cudaMemsetAsync"); }

  device_memory env_, fault_, tickets_;
  pinned_memory seen_fault_;
  std::array<stream, runtime::stream_count> stream_{stream(0), stream(-5)};
  lt_handle lt_;
  matmul_plans plans_;
  std::array<context, runtime::stream_count> context_{};
  std::vector<step_env> last_;
  bool known_ = false;
};

}  // namespace shardwise::inline v0_1::cuda
