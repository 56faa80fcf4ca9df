// SPDX-License-Identifier: Apache-2.0
// Timelines made by hand as Chrome traces: what is not recorded, not finished, not writable or not one rank's is told.
#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <timelines.hpp>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::event_kind;

sw::timeline_rank rank_of(int r) { return {r, 4, "threads", "1, 0"}; }
sw::timeline_program program() {
  sw::timeline_program p;
  p.most_events = 5;
  p.arena = 4096;
  p.calls.resize(2);
  p.calls[0].name = p.calls[0].op = "einsum";
  p.calls[0].module = "a\"b\\c\n";  // any name is JSON
  p.calls[0].live = 100;
  p.calls[1].kind = sw::call_kind::communication;
  p.calls[1].name = "all_reduce_1";
  p.calls[1].op = "redistribute";
  p.calls[1].sent = 64;
  p.calls[1].live = 300;
  return p;
}
void put(sw::timeline& t, event_kind kind, std::size_t call, int stream, std::int64_t begin, std::int64_t end) {
  t.next(kind, call, stream).time = {begin, end};
}
// A step whose collective runs on the other stream from 2000 to 3500 after its beginning.
void record(sw::timeline& t, int as, std::int64_t step, bool finished = true) {
  if (!t.begin(as, step)) return;
  const std::int64_t at = t.runs().back().time.begin;
  put(t, event_kind::launch, 1, 0, at + 1000, at + 1500);
  put(t, event_kind::call, 1, 1, at + 2000, finished ? at + 3500 : -1);
  put(t, event_kind::call, 0, 0, at + 1500, at + 2750);
  if (!finished) return;
  put(t, event_kind::wait, 1, 0, at + 2750, at + 3501);
  while (sw::runtime::now() < at + 4000) {
  }
  t.end();
}

TEST_CASE("timelines refuse what they cannot hold") {
  CHECK_THROWS_WITH(sw::timeline(0), "shardwise: timeline: room for 0 steps is asked for; at least 1");
  sw::timeline t(1);
  t.add(rank_of(2), program());
  CHECK_THROWS_WITH(t.add(rank_of(3), program()),
                    "shardwise: timeline: it belongs to rank 2 and is given to rank 3; every rank needs one of its own");
}

TEST_CASE("a full timeline counts what it misses, and a cleared one begins anew") {
  sw::timeline t(2);
  const int as = t.add(rank_of(0), program());
  for (int s = 1; s <= 5; ++s) record(t, as, s);
  CHECK(t.runs().size() == 2);
  CHECK(t.missed() == 3);
  CHECK(sw::chrome_trace(std::span(&t, 1)).find("timeline full: 3 further steps are not here") != std::string::npos);
  t.clear();
  CHECK(t.missed() == 0);
  record(t, as, 9);
  CHECK(t.runs().back().step == 9);
  CHECK(t.events(t.runs()[0]).size() == 4);
}

TEST_CASE("traces of nothing, of one rank twice, and to nowhere throw") {
  std::vector<sw::timeline> all(2, sw::timeline(1));
  CHECK_THROWS_AS(sw::chrome_trace(all), std::invalid_argument);
  for (sw::timeline& t : all) record(t, t.add(rank_of(1), program()), 1);
  CHECK_THROWS_WITH(sw::chrome_trace(all), "shardwise: chrome_trace: two timelines are of rank 1; give one for each rank");
  CHECK_THROWS_WITH(
      sw::write_chrome_trace("/nowhere/at/all/trace.json", all[0]),
      "shardwise: write_chrome_trace: the file /nowhere/at/all/trace.json cannot be written; give a path in a folder that can");
  if (std::ifstream("/dev/full")) CHECK_THROWS_AS(sw::write_chrome_trace("/dev/full", all[0]), std::runtime_error);
}

TEST_CASE("files of several processes") {
  CHECK(sw::trace_file_of("trace.json", 3) == "trace.rank3.json");
  CHECK(sw::trace_file_of("a.b/trace", 0) == "a.b/trace.rank0");
  CHECK(sw::trace_file_of("a.b/.trace", 12) == "a.b/.trace.rank12");
}

#if SHARDWISE_TEST_JSON
TEST_CASE("a trace says what was recorded, to the nanosecond") {
  std::vector<sw::timeline> all(3, sw::timeline(2));  // rank 1 recorded nothing
  record(all[2], all[2].add(rank_of(0), program()), 7);
  record(all[0], all[0].add(rank_of(3), program()), 7);
  const std::string path = "trace_export_test.json";
  sw::write_chrome_trace(path, all);
  std::ifstream in(path, std::ios::binary);
  const test::trace t(std::string(std::istreambuf_iterator<char>(in), {}));
  std::remove(path.c_str());

  CHECK(t.json.at("distributedInfo") ==
        nlohmann::json({{"backend", "threads"}, {"rank", 0}, {"world_size", 4}, {"ranks", {0, 3}}}));
  CHECK(t.json.at("baseTimeNanoseconds") == all[2].runs()[0].time.begin);
  CHECK(t.process_names == std::map<int, std::string>{{0, "rank 0 (1, 0)"}, {3, "rank 3 (1, 0)"}});
  CHECK(t.thread_names.at({3, 0}) == "compute");
  CHECK(t.thread_names.at({3, 1}) == "communication");
  CHECK(t.instants.empty());
  CHECK(t.overlaps() == 0);
  CHECK(t.out_of_order() == 0);
  CHECK(t.broken_flows() == 0);
  REQUIRE(t.slices.size() == 10);
  for (const test::slice& s : t.slices) {
    const std::int64_t from = s.pid == 0 ? 0 : all[0].runs()[0].time.begin - all[2].runs()[0].time.begin;
    if (s.name == "einsum") {
      CHECK(s.begin - from == 1500);
      CHECK(s.end - from == 2750);
      CHECK(s.module == "a\"b\\c\n");
    }
    if (s.cat == "communication") CHECK(s.end - s.begin == 1500);
    if (s.cat == "step") CHECK(s.name == "step 7");
    CHECK(s.tid == (s.cat == "communication" ? 1 : s.cat == "step" ? 2 : 0));
  }
  for (const int pid : {0, 3}) {
    CHECK(t.most_in_flight(pid) == 64);
    CHECK(t.sent(pid) == 64);
    CHECK(t.most_in_use(pid) == 300);  // when the collective was launched
  }
}

TEST_CASE("what a failed run left unfinished is begun and not ended") {
  sw::timeline t(1);
  record(t, t.add(rank_of(0), program()), 1, false);
  const nlohmann::json j = nlohmann::json::parse(sw::chrome_trace(std::span(&t, 1)));
  int begun = 0;
  for (const auto& e : j.at("traceEvents")) begun += e.at("ph") == "B" ? 1 : 0;
  CHECK(begun == 2);  // the step and the collective
  CHECK(test::trace(j.dump()).most_in_flight(0) == 0);
}
#endif

}  // namespace
