// SPDX-License-Identifier: Apache-2.0
// communicators: the NCCL communicators of one rank, how they are made for a mesh, destroyed, and aborted together.
#pragma once

#include <array>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include <shardwise/runtime/cuda/nccl_error.hpp>
#include <shardwise/runtime/processes/by_nccl.hpp>
#include <shardwise/vocabulary/mesh.hpp>

namespace shardwise::inline v0_1::cuda {

// Communicators block. Non-blocking ones would do what is wanted of a failed peer (return, be polled, be aborted), but
// with them NCCL hands every group to a thread that it starts for it: one thread for each collective of a step, a
// capture that continues in a thread that did not begin it, and a poll before the next call. A blocking call waits for
// peers only while ranks connect, in the first run; afterwards it enqueues. What can hang is then the device, and an
// aborted communicator's kernels end by themselves: so whoever sees a failure aborts, and nobody has to poll.

// The communicators of one rank: that of all ranks that NCCL connects, the mesh or a group of it (processes::nccl_groups), and one for each
// axis of several ranks among them. An axis that is all of them uses theirs. Destroying finalizes first; graphs that captured a collective have to be destroyed before,
// since NCCL waits for them.
class communicators {
 public:
  communicators() = default;
  communicators(communicators&& o) noexcept : world_(std::exchange(o.world_, nullptr)), axis_(std::exchange(o.axis_, {})) {}
  communicators& operator=(communicators&& o) noexcept {
    std::swap(world_, o.world_);
    std::swap(axis_, o.axis_);
    return *this;
  }
  ~communicators() {
    each([](ncclComm_t c) { ncclCommDestroy(c); });
  }

  ncclComm_t& world() { return world_; }
  ncclComm_t& axis(int a) { return axis_[static_cast<unsigned>(a)]; }
  template <class F>
  void each(F&& f) const {
    for (ncclComm_t c : axis_)
      if (c && c != world_) f(c);
    if (world_) f(world_);
  }
  void forget() {
    world_ = nullptr;
    axis_ = {};
  }

 private:
  ncclComm_t world_ = nullptr;
  std::array<ncclComm_t, max_axes> axis_{};
};

// Aborts the communicators of all ranks of this process. Freeing one may wait for the kernels of another that still
// runs, so aborting one after the other hangs. In a group ncclCommAbort only raises the flag that ends a communicator's
// kernels and calls; all are freed at the group's end. Between the two `meanwhile` lets those leave who were stuck.
template <class F>
void abort_all(std::span<communicators* const> all, F&& meanwhile) noexcept {
  ncclGroupStart();
  for (communicators* c : all) c->each([](ncclComm_t x) { ncclCommAbort(x); });
  meanwhile();
  ncclGroupEnd();
  for (communicators* c : all) c->forget();
}

// Completes ranks that hold their group's communicator: one for each axis, by splits that all ranks of the group make in
// one order. `ranks` are those of this process, from `first` on.
template <class Mesh, class By = processes::by_nccl_alone>
void split_axes(std::span<communicators* const> ranks, int first) {
  using groups = processes::nccl_groups<Mesh, By>;
  for (int a = 0; a < Mesh::axes; ++a) {
    const int n = Mesh::sizes[static_cast<unsigned>(a)];
    if (n == 1 || !groups::connects(a)) continue;
    if (n == groups::size) {
      for (communicators* c : ranks) c->axis(a) = c->world();
      continue;
    }
    nccl_group g;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const int r = first + static_cast<int>(i);
      const int number = processes::line_of<Mesh, By>(r, a), place = Mesh::coordinate(r)[static_cast<unsigned>(a)];
      g.keep(ncclCommSplit(ranks[i]->world(), number, place, &ranks[i]->axis(a), nullptr), "ncclCommSplit");
    }
    g.end();
  }
}

}  // namespace shardwise::inline v0_1::cuda
