// SPDX-License-Identifier: Apache-2.0
// standing: where a thread of a rank waits for other ranks. The thread writes it where it goes to sleep; the watch reads it.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::threads {

class barrier;

// What ranks meet for: `name`, static text, along an axis of the mesh or with all ranks; or to compare what `name` says. In a program
// that is node `node` of it.
struct activity {
  static constexpr int all_ranks = -1, comparison = -2;
  const char* name = nullptr;
  int axis = all_ranks, node = -1;

  friend bool operator==(const activity& a, const activity& b) {
    return a.axis == b.axis && (a.name == b.name || (a.name && b.name && std::string_view(a.name) == b.name));
  }
  std::string text() const {
    std::string t = axis == comparison ? "a comparison of " : "";
    t += name ? name : "nothing";
    if (axis >= 0) t += " on axis " + std::to_string(axis) + " of the mesh";
    return t;
  }
};

// Of a rank's own thread, or of its stream's. Price: two stores for each collective, and some where a thread sleeps.
class standing {
 public:
  enum class kind : unsigned char { running, at_gate, awaits_stream, awaits_device };
  // One look at it. The same turn twice: it stood there all the time between.
  struct sight {
    kind how = kind::running;
    const barrier* gate = nullptr;
    unsigned round = 0, turn = 0;
    activity doing = {};
    std::string (*place)(int node, int rank) = nullptr;
    bool idle = false;
  };

  // What the thread does from now on.
  void does(const activity& what) {
    name_.store(what.name, std::memory_order_relaxed);
    axis_.store(what.axis, std::memory_order_relaxed);
    node_.store(what.node, std::memory_order_relaxed);
  }
  // Says where a node of the program that runs now stands in it; null: nobody knows.
  using describe = std::string (*)(int node, int rank);
  void runs(describe f) { place_.store(f, std::memory_order_relaxed); }
  void stands_at(const barrier* gate, unsigned round) {
    gate_ = gate;
    round_ = round;
    begin(kind::at_gate);
  }
  void awaits_stream() { begin(kind::awaits_stream); }
  void awaits_device() { begin(kind::awaits_device); }
  void goes_on() { how_ = kind::running; }

  // Of a stream: calls that it was given, by whoever gives them and before, and calls that it has done.
  void given() { ++given_; }
  void served() { ++served_; }

  sight look() const {
    sight s;
    s.turn = turn_;
    s.how = how_;
    s.gate = gate_;
    s.round = round_;
    s.doing = {name_, axis_, node_};
    s.place = place_;
    s.idle = given_ == served_;
    if (turn_ != s.turn) s.how = kind::running;
    return s;
  }

 private:
  void begin(kind how) {
    ++turn_;
    how_ = how;
  }

  std::atomic<kind> how_{kind::running};
  std::atomic<const barrier*> gate_{nullptr};
  std::atomic<unsigned> round_{0}, turn_{0}, given_{0}, served_{0};
  std::atomic<const char*> name_{nullptr};
  std::atomic<int> axis_{-1}, node_{-1};
  std::atomic<describe> place_{nullptr};
};

}  // namespace shardwise::inline v0_1::threads
