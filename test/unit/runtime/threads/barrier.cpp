// SPDX-License-Identifier: Apache-2.0
// A gate whose parties wait by themselves: rounds end with the last party, and a round that somebody has left never does.
#include <doctest/doctest.h>

#include <shardwise/runtime/threads/barrier.hpp>

using shardwise::threads::barrier;

TEST_CASE("a round is over when the last party has come, round after round") {
  barrier gate;
  gate.reset(3);
  for (int turn = 0; turn < 70000; ++turn) {  // rounds are counted in 15 bits
    const unsigned first = gate.come();
    REQUIRE(!gate.is_over(first));
    const unsigned second = gate.come();
    REQUIRE(second == first);
    REQUIRE(!gate.is_over(first));
    REQUIRE(gate.come() == first);
    REQUIRE(gate.is_over(first));
    REQUIRE(!gate.leave_round(first));  // they have met: nobody can leave any more
  }
}

TEST_CASE("nobody meets in a round that a party has left, and nobody comes any more") {
  barrier gate;
  gate.reset(3);
  const unsigned round = gate.come();
  CHECK(gate.come() == round);
  CHECK(gate.leave_round(round));
  CHECK(gate.come() == barrier::no_round);
  CHECK(!gate.is_over(round));
  CHECK(gate.leave_round(round));  // the other one that has come
}

TEST_CASE("a gate of one party is over at once") {
  barrier gate;
  gate.reset(1);
  CHECK(gate.is_over(gate.come()));
}
