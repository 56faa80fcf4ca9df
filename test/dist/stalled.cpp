// SPDX-License-Identifier: Apache-2.0
// Ranks that nobody would wake end: those that wait for each other at once, those that wait for one that does not come after the
// time-out, with a sentence that says who waits where. What only takes long is left alone.
#include <doctest/doctest.h>

#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/waits.hpp>

#include <launch_message.hpp>

#include <atomic>
#include <csignal>
#include <gpt.hpp>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace {

namespace sw = shardwise;
using test::message_of;
using namespace test::gpt;

using program = step<float, 2, 2>;
using mesh = program::mesh_type;

template <class Rank>
using executor_of = sw::executor<program, std::remove_reference_t<Rank>>;

void pause(double seconds) {
  timespec t{static_cast<time_t>(seconds), 0};
  t.tv_nsec = static_cast<long>((seconds - static_cast<double>(t.tv_sec)) * 1e9);
  nanosleep(&t, nullptr);
}

struct timeout {
  explicit timeout(double seconds) { sw::set_rank_timeout(seconds); }
  ~timeout() { sw::set_rank_timeout(600); }
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("ranks that call different meetings say which") {
  CHECK(has(message_of<mesh>([](auto& rank) {
              if (rank.index() == 1) rank.agree(3, "a number");
              else rank.barrier();
            }),
            "rank 0 waits in a barrier of all ranks, and rank 1 in a comparison of a number"));
  CHECK(has(message_of<mesh>([](auto& rank) {
              const int mine = 0;
              if (rank.index() == 2) rank.exchange(&mine, [](const auto&) {});
              else rank.barrier();
            }),
            "rank 0 waits in a barrier of all ranks, and rank 2 in an exchange of blocks"));
  CHECK(has(message_of<mesh>([](auto& rank) { rank.agree(3, rank.index() == 0 ? "a number" : "another"); }),
            "rank 0 waits in a comparison of a number, and rank 1 in a comparison of another"));
}

// Ranks 0 and 2 meet on axis 0 and ranks 0 and 1 on axis 1, so a step that rank 3 leaves out stands somewhere else on each.
TEST_CASE("ranks that wait for each other are told where each of them stands") {
  for (int apart = 0; apart < mesh::size; ++apart) {
    const std::string what = message_of<mesh>([&](auto& rank) {
      executor_of<decltype(rank)> ex(rank);
      ex.initialise(1);
      feed(ex, 1);
      if (rank.index() == apart) rank.barrier();
      else ex.run(environment(1));
    });
    INFO(what);
    CHECK(what.find("shardwise: all ranks wait for each other: rank 0 in ") == 0);
    CHECK(has(what, "rank " + std::to_string(apart) + " in a barrier of all ranks"));
    CHECK(has(what, " on axis "));
    CHECK(has(what, ", module layers.0."));
  }
}

// The stream's thread waits for a peer, and the rank's own for the stream.
TEST_CASE("ranks whose streams wait are seen, too") {
  using overlapped =
      step<float, 2, 2, tensor_parallel, sizes, test::place, sw::pipeline<sw::expedite_comms, sw::schedule_comm_wait>>;
  const std::string what = message_of<mesh>([&](auto& rank) {
    sw::executor<overlapped, std::remove_reference_t<decltype(rank)>> ex(rank);
    ex.initialise(1);
    feed(ex, 1);
    if (rank.index() == 3) rank.barrier();
    else ex.run(environment(1));
  });
  INFO(what);
  CHECK(what.find("shardwise: all ranks wait for each other: ") == 0);
  CHECK(has(what, "'s stream in an all-reduce on axis "));
  CHECK(has(what, ", module "));
  CHECK(has(what, "rank 3 in a barrier of all ranks"));
}

TEST_CASE("a rank that does not come in time is named, and ranks that only need long are not") {
  const timeout short_one(1);
  const std::string what = message_of<mesh>([](auto& rank) {
    if (rank.index() == 2) pause(2);
    rank.barrier();
  });
  INFO(what);
  CHECK(what.find("shardwise: rank 2 has not come for 1 s to where rank ") == 0);
  CHECK(has(what, "waits, in a barrier of all ranks"));
  CHECK(has(what, "SHARDWISE_TIMEOUT"));
  const std::string steps = message_of<mesh>([](auto& rank) {
    for (int i = 0; i < 16; ++i) {  // longer than the time-out in all
      if (rank.index() == i % mesh::size) pause(0.1);
      rank.barrier();
    }
  });
  CHECK(steps == "no exception");
}

// Who stalls is told apart from who failed: the launch throws rank_stalled, and ranks are let go by rank_failed.
TEST_CASE("a stalled launch throws an exception of its own, ranks see another one") {
  std::atomic<int> failed{0}, others{0};
  bool stalled = false;
  try {
    sw::launch<mesh>([&](auto& rank) {
      try {
        executor_of<decltype(rank)> ex(rank);
        ex.initialise(1);
        feed(ex, 1);
        if (rank.index() == 1) rank.barrier();
        else ex.run(environment(1));
      } catch (const sw::rank_failed&) {
        ++failed;
        throw;
      } catch (...) {
        ++others;
        throw;
      }
    });
  } catch (const sw::rank_stalled& e) {
    stalled = has(e.what(), "shardwise: all ranks wait for each other: ");
  }
  CHECK(stalled);
  CHECK(failed == mesh::size);
  CHECK(others == 0);
}

TEST_CASE("no time-out: ranks wait as long as it takes") {
  const timeout none(0);
  CHECK(message_of<mesh>([](auto& rank) {
          if (rank.index() == 1) pause(0.5);
          rank.barrier();
        }) == "no exception");
}

// What f writes to stderr in a process of its own, which must end by SIGABRT.
template <class F>
std::string last_words(const F& f) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    signal(SIGABRT, SIG_DFL);
    f();
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char some[512];
  for (ssize_t n; (n = read(ends[0], some, sizeof some)) > 0;) text.append(some, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
  return text;
}

TEST_CASE("a rank that never returns ends the process with the message") {
  const std::string text = last_words([] {
    sw::set_rank_timeout(0.3);
    message_of<mesh>([](auto& rank) {
      while (rank.index() == 3) pause(1);
      rank.barrier();
    });
  });
  INFO(text);
  CHECK(has(
      text,
      "its function has not returned on rank 3 for 0.3 s since; the process is aborted: shardwise: rank 3 has not come"));
}

TEST_CASE("a time-out that is no number of seconds is refused") {
  CHECK_THROWS_WITH_AS(sw::set_rank_timeout(-1),
                       "shardwise: the time-out of ranks is -1.000000; it must be a number of seconds from 0 (never) to 1e9",
                       std::invalid_argument);
  CHECK(sw::rank_timeout() == 600);
}

}  // namespace
