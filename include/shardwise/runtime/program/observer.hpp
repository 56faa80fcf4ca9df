// SPDX-License-Identifier: Apache-2.0
// call_observer: who is told of a program's nodes while they run.
#pragma once

namespace shardwise::inline v0_1::runtime {

// before(i) comes before node i runs or is issued, of those that run anything, in the program's order, and before(node_count) behind
// the last one. What it throws ends the run as a kernel's exception does.
struct call_observer {
  virtual void before(int node) = 0;

 protected:
  ~call_observer() = default;
};

}  // namespace shardwise::inline v0_1::runtime
