// SPDX-License-Identifier: Apache-2.0
// Processes that are ranks of one run learn of each other's ends: whoever ends, and however, is named by all others, soon.
#include <doctest/doctest.h>

#include <shardwise/runtime/processes/lifeline.hpp>

#include <csignal>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

namespace sw = shardwise;

constexpr int ranks = 3;

struct pipe_of {
  int ends[2] = {-1, -1};
  pipe_of() { REQUIRE(pipe(ends) == 0); }
  ~pipe_of() { close(ends[0]), close(ends[1]); }
};

struct outcome {
  std::string said;  // by cause()
  int status = 0;    // of waitpid
};

// A rank of each process: meets, and does its part. A part that returns finishes when all have; else `cause` is told.
std::vector<outcome> run(const std::function<void(int, sw::processes::lifeline&)>& part) {
  pipe_of port, ready, go;
  std::vector<pipe_of> said(ranks);
  std::vector<pid_t> children;
  for (int r = 0; r < ranks; ++r) {
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGABRT, SIG_DFL);
      sw::processes::lifeline line(r, ranks);
      std::uint16_t at = line.port();
      for (int k = 1; r == 0 && k < ranks; ++k) (void)!write(port.ends[1], &at, sizeof at);
      if (r > 0) (void)!read(port.ends[0], &at, sizeof at);
      line.meet("127.0.0.1", at);
      part(r, line);
      const std::string why = line.cause();
      if (why.empty()) {
        char c = 0;
        (void)!write(ready.ends[1], &c, 1);
        (void)!read(go.ends[0], &c, 1);
        line.finish();
        _exit(0);
      }
      line.fail(why);
      (void)!write(said[static_cast<std::size_t>(r)].ends[1], why.data(), why.size());
      usleep(300'000);  // what it sent arrives
      _exit(3);
    }
    children.push_back(child);
  }
  std::vector<outcome> all(ranks);
  int ended = 0;
  close(ready.ends[1]);
  ready.ends[1] = -1;
  char c = 0;
  while (ended < ranks && read(ready.ends[0], &c, 1) == 1) ++ended;
  if (ended == ranks)
    for (int r = 0; r < ranks; ++r) (void)!write(go.ends[1], &c, 1);
  for (int r = 0; r < ranks; ++r) {
    outcome& o = all[static_cast<std::size_t>(r)];
    waitpid(children[static_cast<std::size_t>(r)], &o.status, 0);
    auto& ends = said[static_cast<std::size_t>(r)].ends;
    close(ends[1]);
    ends[1] = -1;
    o.said.resize(4096);
    const ssize_t n = read(ends[0], o.said.data(), o.said.size());
    o.said.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  }
  return all;
}

// Until there is a cause, at most 20 s.
void await_cause(sw::processes::lifeline& line) {
  line.place().awaits_device();
  for (int turn = 0; turn < 20'000 && line.cause().empty(); ++turn) usleep(1000);
}

TEST_CASE("processes that all finish end in peace, in whatever order") {
  for (int late = 0; late < ranks; ++late)
    for (const outcome& o : run([&](int r, auto& line) {
           line.queue(1);
           if (r == late) usleep(700'000);  // numbers are told meanwhile
         })) {
      CHECK(o.said == "");
      CHECK(o.status == 0);
    }
}

TEST_CASE("a process that is killed, or exits, is named by all others") {
  for (int bad = 0; bad < ranks; ++bad)
    for (const bool killed : {true, false}) {
      const auto all = run([&](int r, auto& line) {
        if (r != bad) return await_cause(line);
        usleep(50'000);
        if (killed) raise(SIGKILL);
        _exit(0);
      });
      for (int r = 0; r < ranks; ++r) {
        if (r == bad) continue;
        CHECK(all[static_cast<std::size_t>(r)].said.find("shardwise: the process of rank " + std::to_string(bad) +
                                                         " has ended before its function returned") == 0);
        CHECK(WEXITSTATUS(all[static_cast<std::size_t>(r)].status) == 3);
      }
    }
}

TEST_CASE("a rank's own sentence is what all say") {
  for (int bad = 0; bad < ranks; ++bad) {
    const auto all = run([&](int r, auto& line) {
      if (r == bad) line.fail("no data (rank " + std::to_string(bad) + ")");
      else await_cause(line);
    });
    for (const outcome& o : all) CHECK(o.said == "no data (rank " + std::to_string(bad) + ")");
  }
}

TEST_CASE("a rank that does not come is named by what it has queued") {
  sw::set_rank_timeout(2);
  for (int bad = 0; bad < ranks; ++bad) {
    const auto all = run([&](int r, auto& line) {
      line.queue(r == bad ? 4 : 7);
      if (r == bad)
        for (int turn = 0; turn < 20'000 && line.cause().empty(); ++turn) usleep(1000);
      else await_cause(line);
    });
    for (const outcome& o : all) {
      INFO(o.said);
      CHECK(o.said.find(" has waited 2 s for its device: rank " + std::to_string(bad) + " has queued 4 of 7 collectives;") !=
            std::string::npos);
    }
  }
  sw::set_rank_timeout(600);
}

}  // namespace
