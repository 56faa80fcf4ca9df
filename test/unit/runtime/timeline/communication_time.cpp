// SPDX-License-Identifier: Apache-2.0
// How much of a step's collectives lies under its kernels, of timelines made by hand.
#include <doctest/doctest.h>

#include <shardwise/runtime/timeline/communication_time.hpp>

namespace {

namespace sw = shardwise;
using sw::call_kind;
using sw::event_kind;

struct recorded {
  sw::timeline line{2};
  int as = 0;

  // Calls 0 and 1 compute, 2 and 3 communicate, 4 copies.
  recorded() {
    sw::timeline_program p;
    p.most_events = 8;
    p.calls.resize(5);
    p.calls[2].kind = p.calls[3].kind = call_kind::communication;
    p.calls[4].kind = call_kind::copy;
    as = line.add({0, 2, "threads", "0"}, p);
    line.begin(as, 1);
  }
  recorded& put(event_kind kind, std::size_t call, std::int64_t begin, std::int64_t end) {
    line.next(kind, call, call > 1 ? 1 : 0).time = {begin, end};
    return *this;
  }
  recorded& call(std::size_t call, std::int64_t begin, std::int64_t end) { return put(event_kind::call, call, begin, end); }
  void check(std::int64_t total, std::int64_t hidden, double share) {
    const sw::communication_time t = sw::communication_time_of(line, line.runs().back());
    CHECK(t.total == total);
    CHECK(t.hidden == hidden);
    CHECK(t.hidden_share() == share);
  }
};

TEST_CASE("communication_time: what lies under kernels") {
  recorded().check(0, 0, 1);
  recorded().call(0, 0, 100).check(0, 0, 1);
  CHECK(sw::communication_time{}.hidden_share() == 1);
  CHECK(sw::communication_time{.total = 200, .hidden = 50}.hidden_share() == 0.25);
  recorded().call(0, 0, 100).call(2, 10, 90).check(80, 80, 1);
  recorded().call(0, 0, 100).call(2, 50, 250).call(1, 200, 300).check(200, 100, 0.5);
  recorded().call(0, 0, 100).call(2, 100, 200).call(1, 200, 300).check(100, 0, 0);
  recorded().call(2, 0, 100).call(0, 0, 60).call(1, 40, 90).check(100, 90, 0.9);
  recorded().call(2, 0, 100).call(0, 25, 50).call(3, 40, 240).call(1, 190, 500).check(300, 25 + 10 + 50, 85.0 / 300);
}
TEST_CASE("communication_time: neither copies, waits, launches nor what did not end") {
  recorded().call(4, 0, 100).call(2, 0, 100).check(100, 0, 0);
  recorded().put(event_kind::wait, 2, 0, 100).put(event_kind::launch, 2, 0, 1).call(2, 0, 100).check(100, 0, 0);
  recorded().call(0, 0, 100).call(2, 0, -1).call(3, -1, -1).check(0, 0, 1);
  recorded().call(0, 0, -1).call(2, 10, 20).check(10, 0, 0);
}
TEST_CASE("communication_time: of one run") {
  recorded r;
  r.call(0, 0, 100).call(2, 0, 100);
  r.line.end();
  r.line.begin(r.as, 2);
  r.call(2, 200, 300).check(100, 0, 0);
  CHECK(sw::communication_time_of(r.line, r.line.runs().front()).hidden == 100);
}

}  // namespace
