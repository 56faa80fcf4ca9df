// SPDX-License-Identifier: Apache-2.0
// async_save: the checkpoint has what the program was when the save was asked for, however far it has gone on since; it is there when it
// has been waited for, and not before; what fails in the background is said by wait(), on all ranks.
#include <doctest/doctest.h>

#include <files.hpp>
#include <placed_steps.hpp>
#include <thrown.hpp>

#include <shardwise/io/checkpoint/checkpoint.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace test;
using namespace test::placed;

// The step of the newest checkpoint, which is what training up to it gives.
template <class Step>
std::int64_t newest(const std::string& folder) {
  std::int64_t step = -1;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> ex(rank), again(rank);
    const auto c = sw::load(ex, folder);
    again.initialise(3);
    train(again, 1, static_cast<int>(c.step));
    CHECK(everything(ex) == everything(again));
    if (rank.index() == 0) step = c.step;
  });
  return step;
}

// A disk that stands still until it is released, fails at a call, or ends the process there.
std::atomic<bool> released{true};
std::atomic<int> calls{0};
int fatal = 0;
bool kills = false;
bool goes_wrong() {
  while (!released) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (++calls != fatal) return false;
  if (kills) ::_exit(77);
  errno = ENOSPC;
  return true;
}
sw::file_calls watched_calls() {
  sw::file_calls c;
  c.write = [](int file, const void* bytes, std::size_t n) -> ::ssize_t {
    if (goes_wrong()) return -1;
    return ::write(file, bytes, n);
  };
  c.sync = [](int file) { return goes_wrong() ? -1 : ::fsync(file); };
  c.rename = [](const char* from, const char* to) { return goes_wrong() ? -1 : std::rename(from, to); };
  return c;
}

// Saves behind step 2 while the program trains on to step 5.
template <class Step>
void goes_on_while_it_saves() {
  const folder scratch;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> ex(rank), straight(rank);
    ex.initialise(3);
    train(ex, 1, 1);
    sw::save(ex, scratch.path(), {.step = 1});
    train(ex, 2, 2);
    rank.barrier();
    released = false;
    rank.barrier();
    auto pending = sw::async_save(ex, scratch.path(), {.step = 2}, {.calls = watched_calls()});
    train(ex, 3, 5);
    CHECK(!std::filesystem::exists(scratch / "step-00000002"));
    // of a rank that writes nothing even the header is not through
    CHECK(!pending.done());
    rank.barrier();
    released = true;
    CHECK(pending.wait() == scratch / "step-00000002");
    CHECK(pending.done());
    CHECK(pending.wait() == scratch / "step-00000002");
    straight.initialise(3);
    train(straight, 1, 5);
    CHECK(everything(ex) == everything(straight));
  });
  CHECK(newest<Step>(scratch.path()) == 2);
}

template <class Step, class F>
std::string said_by_all(F&& f) {
  std::vector<std::string> said(static_cast<std::size_t>(Step::mesh_type::size));
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> ex(rank);
    ex.initialise(3);
    train(ex, 1, 2);
    said[static_cast<std::size_t>(rank.index())] = thrown([&] { f(ex, rank); });
  });
  for (const std::string& s : said) CHECK(s == said[0]);
  return said[0];
}
template <class Step>
std::string save_watched(const std::string& folder) {
  calls = 0;
  return said_by_all<Step>([&](auto& ex, auto&) {
    auto pending = sw::async_save(ex, folder, {.step = 2}, {.keep_last = 1, .calls = watched_calls()});
    train(ex, 3, 3);
    pending.wait();
  });
}

}  // namespace

TEST_CASE("async_save: what is saved is what the program was, while it goes on, 1, 2, 3, 4 and 8 ranks") {
  goes_on_while_it_saves<adam_step<1, 1>>();
  goes_on_while_it_saves<rows2>();
  goes_on_while_it_saves<split_step<3, 1, rows<dp<3>, 0>>>();
  goes_on_while_it_saves<both4>();
  goes_on_while_it_saves<strided4>();
  goes_on_while_it_saves<rows8>();
}

TEST_CASE("async_save: a disk that is full at any call is one exception on all ranks, and the one before is whole") {
  const folder scratch;
  const auto before = [&] {
    std::filesystem::remove_all(scratch.path());
    said_by_all<both4>([&](auto& ex, auto&) { sw::save(ex, scratch.path(), {.step = 2}); });
  };
  before();
  fatal = 0;
  REQUIRE(save_watched<both4>(scratch.path()) == "nothing was thrown");
  const int all = calls;
  CHECK(all > 30);
  for (int k = 1; k <= all; k += 3) {
    before();
    fatal = k;
    const std::string said = save_watched<both4>(scratch.path());
    CHECK(said.find("shardwise: save: file '") == 0);
    CHECK(said.find("No space left on device; free some space") != std::string::npos);
    CHECK(newest<both4>(scratch.path()) == 2);
    CHECK(!std::filesystem::exists(scratch / ".step-00000002.2.partial"));
  }
  fatal = 0;
}

TEST_CASE("async_save: a program that ends at any call leaves a whole checkpoint") {
  const folder scratch;
  said_by_all<both4>([&](auto& ex, auto&) { sw::save(ex, scratch.path(), {.step = 2}); });
  kills = true;
  int killed = 0;
  for (int k = 1;; k += 4) {
    fatal = k;
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      (void)save_watched<both4>(scratch.path());
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(newest<both4>(scratch.path()) == 2);
    if (WEXITSTATUS(status) == 0) break;
    REQUIRE(WEXITSTATUS(status) == 77);
    REQUIRE(++killed < 200);
  }
  kills = false;
  fatal = 0;
  CHECK(killed > 8);
}

TEST_CASE("async_save: one at a time into a folder, no consolidated file, and one that nobody waits for is none") {
  const folder scratch;
  const std::string twice = said_by_all<rows2>([&](auto& ex, auto&) {
    auto first = sw::async_save(ex, scratch.path(), {.step = 2});
    const std::string same = scratch / "../" + std::filesystem::path(scratch.path()).filename().string();
    const std::string said = thrown([&] { sw::save(ex, same, {.step = 2}); });
    const std::string again = thrown([&] { (void)sw::async_save(ex, scratch.path(), {.step = 2}); });
    CHECK(again.find("wait() for it before the next one begins") != std::string::npos);
    first.wait();
    sw::async_save(ex, scratch.path(), {.step = 2}).wait();
    throw std::runtime_error(said);
  });
  CHECK(twice.find("shardwise: save: an async_save into '") == 0);
  CHECK(newest<rows2>(scratch.path()) == 2);

  const std::string whole = said_by_all<rows2>(
      [&](auto& ex, auto&) { (void)sw::async_save(ex, scratch.path(), {.step = 2}, {.consolidated = true}); });
  CHECK(whole.find("shardwise: async_save: consolidated is given") == 0);

  const folder other;
  said_by_all<rows2>([&](auto& ex, auto&) { const auto dropped = sw::async_save(ex, other.path(), {.step = 2}); });
  CHECK(!std::filesystem::exists(other / "checkpoints.json"));
  said_by_all<rows2>([&](auto& ex, auto&) { sw::save(ex, other.path(), {.step = 2}); });
  CHECK(newest<rows2>(other.path()) == 2);
  CHECK(!std::filesystem::exists(other / ".step-00000002.partial"));

  // a rank that fails while a save is under way ends all of them
  CHECK(thrown([&] {
          sw::launch<rows2::mesh_type>([&](auto& rank) {
            sw::executor<rows2> ex(rank);
            ex.initialise(3);
            auto pending = sw::async_save(ex, other.path(), {.step = 3});
            if (rank.index() == 1) throw std::runtime_error("no more");
            pending.wait();
          });
        }).find("no more") != std::string::npos);
  CHECK(newest<rows2>(other.path()) == 2);
}
