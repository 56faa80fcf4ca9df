// SPDX-License-Identifier: Apache-2.0
// A rank that returns while others wait for it ends the launch with one sentence: who has returned, who waits, and in what.
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <launch_message.hpp>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using test::message_of;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
struct four : sw::axis<4> {};
using line = sw::mesh<four>;
using R = sw::replicate;

// "shardwise: rank GONE has returned while rank W waits in WHAT; ...", for some other rank W of 4.
bool says(const std::string& text, int gone, const std::string& what) {
  for (int w = 0; w < 4; ++w)
    if (w != gone && text.rfind("shardwise: rank " + std::to_string(gone) + " has returned while rank " + std::to_string(w) +
                                    " waits in " + what + "; every rank must make the same calls in the same order",
                                0) == 0)
      return true;
  MESSAGE(text);
  return false;
}
bool ends(const std::string& text, const std::string& with) {
  return text.size() >= with.size() && text.compare(text.size() - with.size(), with.size(), with) == 0;
}

TEST_CASE("a rank that returns before a barrier is named") {
  for (int round = 0; round < 200; ++round) {
    const int gone = round % 4, before = round % 3;
    CHECK(says(message_of<mesh>([&](auto& rank) {
                 for (int i = 0; i < 3; ++i) {
                   if (rank.index() == gone && i == before) return;
                   rank.barrier();
                 }
               }),
               gone, "a barrier of all ranks"));
  }
}

// Which exceptions: the launch throws the sentence of one that waited, with the number of the rank that it waited for.
TEST_CASE("a rank that returned is told by a type of its own, with its number") {
  for (int gone = 0; gone < 4; ++gone) {
    int told = -1;
    std::atomic<int> seen{0};
    try {
      sw::launch<mesh>([&](auto& rank) {
        if (rank.index() == gone) return;
        try {
          rank.barrier();
        } catch (const sw::rank_returned& e) {
          if (e.rank == gone) ++seen;
          throw;
        }
      });
    } catch (const sw::rank_returned& e) {
      told = e.rank;
    }
    CHECK(told == gone);
    CHECK(seen >= 1);
  }
  // and nobody waits: no more is said
  CHECK(std::string(sw::rank_returned(2).what()).find("shardwise: rank 2 has returned while another one waits for it; ") ==
        0);
}

TEST_CASE("a rank that returns before a comparison is named") {
  for (int gone = 0; gone < 4; ++gone)
    CHECK(says(message_of<mesh>([&](auto& rank) {
                 sw::eager on(rank);
                 if (rank.index() != gone) on.start_step(1, 1);
               }),
               gone, "a comparison of the seed"));
}

template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<4, 4>, first), (sw::linear<4, 2>, second));
  constexpr auto forward(const auto& x) const { return second(sw::relu(first(x))); }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<8, 4>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};
using plan = sw::plan<sw::data_parallel<dp>, sw::at<"first", sw::colwise<tp>>, sw::at<"second", sw::rowwise<tp>>>;
template <class Pipeline>
using step = sw::train_step<net, task, plan, mesh, sw::sgd<>, Pipeline, double>;

template <class Step>
void check_step() {
  for (int round = 0; round < 40; ++round) {
    const int gone = round % 4, steps = 1 + round % 3;
    const std::string told = message_of<mesh>([&](auto& rank) {
      sw::executor<Step> ex(rank);
      ex.initialise(1);
      ex.set_input(0, std::vector<double>(32, 0.5));
      sw::step_env env;
      env.lr = 1e-3;
      for (env.step = 1; env.step <= 3; ++env.step)
        if (rank.index() != gone || env.step < steps) ex.run(env);
    });
    const int tp_peer = gone ^ 1, dp_peer = gone ^ 2;
    const std::string gone_text = "shardwise: rank " + std::to_string(gone) + " has returned while rank ";
    const bool by_tp =
        told.rfind(gone_text + std::to_string(tp_peer) + " waits in an all-reduce on axis 1 of the mesh; ", 0) == 0;
    const bool by_dp =
        told.rfind(gone_text + std::to_string(dp_peer) + " waits in an all-reduce on axis 0 of the mesh; ", 0) == 0;
    CHECK_MESSAGE((by_tp || by_dp), told);
    // the node: of the forward pass, or a gradient's or the loss's sum
    CHECK_MESSAGE(told.find(" (in all_reduce") != std::string::npos, told);
    CHECK_MESSAGE(told.find(", module ") != std::string::npos, told);
    CHECK_MESSAGE(ends(told, ", rank " + std::to_string(by_tp ? tp_peer : dp_peer) + ")"), told);
  }
}

TEST_CASE("a rank that returns before a step is named, with the collective's place in the program") {
  check_step<step<sw::pipeline<>>>();
}

TEST_CASE("so is one whose peers wait on their communication streams") {
  using overlapped = step<sw::pipeline<sw::schedule_comm_wait>>;
  static_assert(sw::has_waits(overlapped::program));
  check_step<overlapped>();
}

TEST_CASE("a rank that returns before an eager collective is named") {
  using x_type = sw::dtensor_of<double, sw::shape<8, 3>, line, sw::shard<0>>;
  for (int gone = 0; gone < 4; ++gone) {
    const std::string told = message_of<line>([&](auto& rank) {
      sw::eager on(rank);
      const auto x = x_type::ones(on);
      if (rank.index() == gone) return;
      sw::redistribute<four, R>(x);
    });
    CHECK(says(told, gone, "an all-gather on axis 0 of the mesh"));
    CHECK(told.find("(in redistribute, eager, rank ") != std::string::npos);
    CHECK(says(message_of<line>([&](auto& rank) {
                 sw::eager on(rank);
                 const auto x = x_type::ones(on);
                 if (rank.index() == gone) return;
                 auto p = sw::redistribute_async<four, sw::shard<1>>(x);
                 std::move(p).wait();
               }),
               gone, "an all-to-all on axis 0 of the mesh"));
  }
}

TEST_CASE("ranks may return at any time if nobody waits for them") {
  for (int round = 0; round < 100; ++round)
    CHECK(message_of<mesh>([&](auto& rank) {
            sw::eager on(rank);
            using x_type = sw::dtensor_of<double, sw::shape<8, 3>, mesh, sw::on<tp, sw::shard<0>>>;
            const auto x = x_type::ones(on);
            rank.barrier();
            if (rank.index() >= 2) return;  // the other group goes on alone
            for (int i = 0; i < 20; ++i) sw::redistribute<tp, R>(x);
          }) == "no exception");
}

TEST_CASE("a rank that throws is reported, whoever has returned") {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> gone{0};
    const std::string told = message_of<mesh>([&](auto& rank) {
      if (rank.index() == 3) {
        ++gone;
        return;
      }
      if (rank.index() == 0) {
        while (gone == 0) {
        }
        throw std::runtime_error("rank 0 gave up");
      }
      if (rank.index() == 1) return;
      rank.group(0).gate.wait(rank.place());  // with rank 0
    });
    CHECK(told == "rank 0 gave up");
  }
}

TEST_CASE("one rank alone returns when it likes") {
  using one = sw::mesh<sw::axis<1>>;
  CHECK(message_of<one>([](auto& rank) { rank.barrier(); }) == "no exception");
  sw::launch_fake<mesh>(2, [](auto& rank) {
    rank.barrier();
    rank.agree(1, "the seed");
  });
}

}  // namespace
