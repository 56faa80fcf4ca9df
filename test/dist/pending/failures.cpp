// SPDX-License-Identifier: Apache-2.0
// Collectives under way while something goes wrong: nobody hangs, nobody uses memory that is gone. And what is dropped.
#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <both_ways.hpp>
#include <csignal>
#include <gpt.hpp>
#include <launch_message.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <stdexcept>

namespace {

using namespace test;

struct tp : sw::axis<4> {};
using mesh = sw::mesh<tp>;
using R = sw::replicate;
template <int D>
using S = sw::shard<D>;
template <std::int64_t Rows>
using rows = sw::dtensor_of<float, sw::shape<Rows, 4>, mesh, S<0>>;

TEST_CASE("pending: a rank that throws with collectives under way releases the others from theirs") {
  for (int round = 0; round < 60; ++round) {
    const int bad = round % 4, before = round / 4 % 3;
    const std::string what = message_of<mesh>([&](auto& rank) {
      sw::eager on(rank);
      const auto x = rows<20000>::ones(on);
      auto p = sw::redistribute_async<tp, R>(x);
      if (rank.index() == bad && before == 0) throw std::runtime_error("gave up");
      auto q = sw::redistribute_async<tp, S<1>>(x);
      if (rank.index() == bad && before == 1) throw std::runtime_error("gave up");
      const auto a = std::move(p).wait();
      if (rank.index() == bad && before == 2) throw std::runtime_error("gave up");
      const auto b = std::move(q).wait();
      auto r = sw::redistribute_async<tp, R>(b);
      if (rank.index() == bad) throw std::runtime_error("gave up");
      const auto c = std::move(r).wait();
      for (;;) rank.barrier();
    });
    CHECK(what == "gave up");
  }
}

TEST_CASE("pending: a rank that never starts a collective releases those that have") {
  for (int round = 0; round < 60; ++round) {
    const std::string what = message_of<mesh>([&](auto& rank) {
      sw::eager on(rank);
      const auto x = rows<200>::ones(on);
      if (rank.index() == round % 4) throw std::runtime_error("not me");
      if (round % 2 == 0) {  // dropped while an exception is under way, or waited for
        auto p = sw::redistribute_async<tp, R>(x);
        for (;;) rank.barrier();
      }
      for (;;) auto y = sw::redistribute_async<tp, R>(x).wait();
    });
    CHECK(what == "not me");
  }
}

// Whatever is thrown waits for what is under way: the destructor does not end the program then, and blocks come back to
// the pool only when nobody writes into them.
TEST_CASE("pending: an exception waits for what is under way and leaves a rank that works") {
  sw::launch<mesh>([&](auto& rank) {
    sw::eager on(rank);
    rank.slow_down({0.002, 0});
    for (int round = 0; round < 20; ++round) {
      const auto x = rows<40>::full(on, static_cast<float>(round));
      try {
        auto p = sw::redistribute_async<tp, R>(x);
        auto q = sw::redistribute_async<tp, R>(x);
        throw round;
      } catch (int) {
      }
      // storage of the same size, taken and filled at once
      const auto y = sw::dtensor_of<float, sw::shape<40, 4>, mesh, R>::full(on, -1);
      const auto z = sw::dtensor_of<float, sw::shape<40, 4>, mesh, R>::full(on, -2);
      bool untouched = true;
      for (const float v : y.to_local().data) untouched = untouched && v == -1;
      for (const float v : z.to_local().data) untouched = untouched && v == -2;
      CHECK(untouched);
      const auto w = sw::redistribute_async<tp, R>(x).wait();
      CHECK(w.to_local().data[159] == static_cast<float>(round));
    }
  });
}

#if SHARDWISE_CHECKED
// What a process that runs `body` says before it is ended.
std::string last_words(void (*body)(), int& signal) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);  // not the test's own handler
    dup2(ends[1], 2);
    body();
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  char part[512];
  for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;) said.append(part, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return said;
}

struct one : sw::axis<1> {};

TEST_CASE("pending: one that is dropped ends a checked build with the operation's name") {
  int signal = 0;
  const std::string said = last_words(
      [] {
        sw::launch<mesh>([](auto& rank) {
          sw::eager on(rank);
          const auto x = rows<8>::ones(on);
          {
            auto p = sw::redistribute_async<tp, R>(x);
          }
        });
      },
      signal);
  CHECK(signal == SIGABRT);
  CHECK(said.find("a pending tensor (redistribute, rank ") != std::string::npos);
  CHECK(said.find("is never waited for") != std::string::npos);
  // as is one that has nothing to wait for
  const std::string nothing = last_words(
      [] {
        sw::launch<sw::mesh<one>>([](auto& rank) {
          sw::eager on(rank);
          const auto x = sw::dtensor_of<float, sw::shape<3>, sw::mesh<one>, R>::ones(on);
          {
            auto p = sw::redistribute_async<one, S<0>>(x);
          }
        });
      },
      signal);
  CHECK(signal == SIGABRT);
  CHECK(nothing.find("is never waited for") != std::string::npos);
  // waited for, moved from: nothing is dropped
  const std::string fine = last_words(
      [] {
        sw::launch<mesh>([](auto& rank) {
          sw::eager on(rank);
          auto p = sw::redistribute_async<tp, R>(rows<8>::ones(on));
          auto q = std::move(p);
          const auto y = std::move(q).wait();
        });
      },
      signal);
  CHECK(signal == 0);
  CHECK(fine == "");
}
#endif

// --- programs --------------------------------------------------------------------------------------------------------

using namespace test::gpt;
template <class Pipeline>
using step_with = sw::train_step<transformer<sizes>::template model, language_task<sizes, batch, dp<2>>,
                                 typename sequence_parallel<dp<2>, test::gpt::tp<2>>::type,
                                 sw::mesh<dp<2>, test::gpt::tp<2>>, sw::clip_norm<sw::adamw<true>>, Pipeline>;
using waiting = step_with<sw::pipeline<sw::raise_comms, sw::schedule_comm_wait>>;

TEST_CASE("pending: a rank that throws in the middle of a step with collectives under way releases the others") {
  using world = waiting::mesh_type;
  static_assert(sw::has_waits(waiting::program));
  for (int round = 0; round < 40; ++round) {
    const int bad = round % world::size;
    const std::string what = message_of<world>([&](auto& rank) {
      sw::executor<waiting, std::remove_reference_t<decltype(rank)>> ex(rank);
      ex.initialise(1);
      for (int s = 1; s <= 3; ++s) {
        feed(ex, s);
        // targets are read between the collectives of forward and backward, tokens before all of them
        if (rank.index() == bad && s == 1 + round % 3) ex.template input<std::int32_t>(round % 2)[3] = 1000;
        ex.run(environment(s));
      }
    });
    CHECK(what.find("index 1000 is outside 0..255") != std::string::npos);
    CHECK(what.find("rank " + std::to_string(bad)) != std::string::npos);
  }
}

}  // namespace
