// SPDX-License-Identifier: Apache-2.0
// A rank that fails releases the others, and errors name what went wrong, where, and on which rank.
#include <doctest/doctest.h>

#include <launch_message.hpp>

#include <atomic>
#include <gpt.hpp>
#include <mutex>
#include <stdexcept>
#include <string>

namespace {

namespace sw = shardwise;
using test::message_of;
using namespace test::gpt;

using program = step<float, 2, 2>;
using mesh = program::mesh_type;

template <class Rank>
using executor_of = sw::executor<program, std::remove_reference_t<Rank>>;

TEST_CASE("a rank that throws before a step releases the others") {
  for (int round = 0; round < 80; ++round) {
    const int bad = round % mesh::size;
    const std::string what = message_of<mesh>([&](auto& rank) {
      executor_of<decltype(rank)> ex(rank);
      ex.initialise(1);
      feed(ex, 1);
      if (rank.index() == bad) throw std::runtime_error("rank " + std::to_string(bad) + " gave up");
      ex.run(environment(1));
    });
    CHECK(what == "rank " + std::to_string(bad) + " gave up");
  }
}

TEST_CASE("a rank that throws in the middle of a step releases the others") {
  for (int round = 0; round < 80; ++round) {
    const int bad = round % mesh::size;
    const std::string what = message_of<mesh>([&](auto& rank) {
      executor_of<decltype(rank)> ex(rank);
      ex.initialise(1);
      for (int s = 1; s <= 3; ++s) {
        feed(ex, s);
        // the targets are read in the middle of the step, between the collectives of forward and backward
        if (rank.index() == bad && s == 1 + round % 3) ex.template input<std::int32_t>(1)[3] = 1000;
        ex.run(environment(s));
      }
    });
    CHECK(what.find("index 1000 is outside 0..255") != std::string::npos);
    CHECK(what.find("rank " + std::to_string(bad)) != std::string::npos);
  }
}

// Ranks 0 and 1 share a group that the failure does not touch: they are released at whatever collective they stand in,
// and must not leave it while the other one still writes into their memory.
TEST_CASE("a rank that throws at any moment releases the others, whose memory nobody uses any more") {
  for (int round = 0; round < 100; ++round) {
    const std::string what = message_of<mesh>([&](auto& rank) {
      if (rank.index() == 3) {
        std::atomic<int> spin{0};
        while (spin.fetch_add(1) < 10000 * (round % 50)) {
        }
        throw std::runtime_error("any moment");
      }
      sw::runtime::call c;
      const std::size_t n = rank.index() < 2 ? 200000 : 1;
      std::vector<float> x(n, 1), y(n), inbox(n + 2);
      c.axis = 1;
      c.ranks = 2;
      c.coordinate = rank.coordinate(1);
      c.from = sw::partial_value();
      c.l[0] = c.l[sw::runtime::result] = sw::runtime::flat_layout(static_cast<std::int64_t>(n));
      c.p[0] = x.data();
      c.p[sw::runtime::result] = y.data();
      c.workspace = inbox.data();
      for (;;) sw::threads::all_reduce<float>(c, rank);
    });
    CHECK(what == "any moment");
  }
}

TEST_CASE("a rank that throws while others wait in a barrier releases them") {
  for (int round = 0; round < 300; ++round) {
    int released = 0;
    const std::string what = message_of<mesh>([&](auto& rank) {
      if (rank.index() == round % mesh::size) throw std::logic_error("not here");
      try {
        for (;;) rank.barrier();
      } catch (const sw::rank_failed&) {
        static std::mutex gate;
        const std::lock_guard lock(gate);
        ++released;
        throw;
      }
    });
    CHECK(what == "not here");
    CHECK(released == mesh::size - 1);
  }
}

TEST_CASE("of several ranks that throw the first one's exception is rethrown") {
  const std::string what =
      message_of<mesh>([&](auto& rank) { throw std::runtime_error("rank " + std::to_string(rank.index())); });
  CHECK(what.starts_with("rank "));
}

TEST_CASE("a launch after a failed one works") {
  const auto before = train<program>(2);
  CHECK(message_of<mesh>([&](auto& rank) {
          if (rank.index() == 1) throw std::runtime_error("once");
          rank.barrier();
        }) == "once");
  CHECK(train<program>(2).losses == before.losses);
}

TEST_CASE("an out-of-range token names operation, module and rank") {
  for (const std::int32_t token : {-1, 256, 70000}) {
    const std::string what = message_of<mesh>([&](auto& rank) {
      executor_of<decltype(rank)> ex(rank);
      ex.initialise(1);
      feed(ex, 1);
      if (rank.index() == 2) ex.template input<std::int32_t>(0)[5] = token;
      ex.run(environment(1));
    });
    CHECK(what ==
          "shardwise: embedding: index " + std::to_string(token) +
              " is outside 0..255; map the data to that range or enlarge the table (in embedding, module tok_embeddings, "
              "rank 2)");
  }
}

TEST_CASE("an out-of-range target names operation and rank") {
  const std::string what = message_of<mesh>([&](auto& rank) {
    executor_of<decltype(rank)> ex(rank);
    ex.initialise(1);
    feed(ex, 1);
    if (rank.index() == 3) ex.template input<std::int32_t>(1)[0] = -5;
    ex.run(environment(1));
  });
  CHECK(what.find("cross_entropy target: index -5 is outside 0..255") != std::string::npos);
  CHECK(what.find("(in nll, module <task>, rank 3)") != std::string::npos);
}

// What one call on a single rank's executor throws.
std::string refusal(const auto& call) {
  using one = step<float, 1, 1>;
  return message_of<one::mesh_type>([&](auto& rank) {
    sw::executor<one, std::remove_reference_t<decltype(rank)>> ex(rank);
    call(ex);
  });
}

TEST_CASE("an input of a wrong size is refused with both sizes") {
  CHECK(refusal([](auto& ex) { ex.set_input(0, std::vector<std::int32_t>(63)); }) ==
        "shardwise: set_input: 63 elements are given; the whole tensor has 64");
  CHECK(refusal([](auto& ex) { ex.set_parameter(0, std::vector<float>(3)); }) ==
        "shardwise: set_parameter: 3 elements are given; the whole tensor has 16384");
  CHECK(refusal([](auto& ex) {
          std::vector<float> whole(1);
          ex.gather_parameter(0, whole);
        }) == "shardwise: gather_parameter: 1 elements are given; the whole tensor has 16384");
}

TEST_CASE("an input of a wrong type is refused with the type to pass") {
  const std::string want = " are given; the tensor's are int32 (std::int32_t): convert the values to that type first";
  CHECK(refusal([](auto& ex) { ex.set_input(0, std::vector<float>(64)); }) ==
        "shardwise: set_input: elements of type float" + want);
  CHECK(refusal([](auto& ex) { ex.set_input(1, std::vector<double>(64)); }) ==
        "shardwise: set_input: elements of type double" + want);
  CHECK(refusal([](auto& ex) { (void)ex.template input<float>(1); }) == "shardwise: input: elements of type float" + want);
}

TEST_CASE("inputs, parameters and arenas that do not exist are refused") {
  CHECK(refusal([](auto& ex) { ex.set_input(3, std::vector<std::int32_t>(64)); }) ==
        "shardwise: input number 3 is asked for; the program has 3 inputs, counted from 0: give 0..2");
  CHECK(
      refusal([](auto& ex) { (void)ex.parameter_index("layers.7.norm.weight"); }) ==
      "shardwise: the model has no parameter named 'layers.7.norm.weight'; the nearest names are 'layers.0.ffn_norm.weight', "
      "'layers.1.ffn_norm.weight', 'norm.weight'");
  using one = step<float, 1, 1>;
  const std::string want = ", aligned to 64";
  CHECK(message_of<one::mesh_type>([&](auto& rank) {
          alignas(64) std::byte memory[128];
          sw::executor<one, std::remove_reference_t<decltype(rank)>> ex(rank, std::span<std::byte>(memory));
        }) == "shardwise: the arena given has 128 bytes; the program needs " + std::to_string(one::peak_bytes) + want);
}

TEST_CASE("ranks that disagree on what they run are stopped") {
  const std::string what = message_of<mesh>([](auto& rank) { rank.agree(rank.index() == 3 ? 8 : 7, "the seed"); });
  CHECK(what ==
        "shardwise: rank 3 and rank 0 disagree on the seed (8 and 7); all ranks must run one program on equal "
        "arguments");
}

TEST_CASE("ranks that pass different seeds are told both, wherever a seed is passed") {
  const std::string told = "shardwise: rank 2 and rank 0 disagree on the seed (18446744073709551615 and 5); ";
  const auto seed = [](auto& rank) { return rank.index() == 2 ? ~std::uint64_t{0} : std::uint64_t{5}; };
  CHECK(message_of<mesh>([&](auto& rank) {
          executor_of<decltype(rank)> ex(rank);
          ex.initialise(seed(rank));
        }).find(told) == 0);
  CHECK(message_of<mesh>([&](auto& rank) {
          executor_of<decltype(rank)> ex(rank, sw::executor_checks::poison);
          ex.initialise(1);
          feed(ex, 1);
          auto env = environment(1);
          env.seed = seed(rank);
          ex.run(env);
        }).find(told) == 0);
  CHECK(message_of<mesh>([&](auto& rank) {
          sw::eager on(rank);
          on.start_step(seed(rank), 1);
        }).find(told) == 0);
  CHECK(message_of<mesh>([&](auto& rank) {
          sw::eager on(rank);
          sw::bind_eager<test::transformer<sizes>::template model, tensor_parallel<dp<2>, tp<2>>::type, mesh, float> own{};
          sw::initialise(own, on, seed(rank));
        }).find(told) == 0);
  CHECK(message_of<mesh>([&](auto& rank) {
          sw::eager on(rank);
          on.start_step(5, rank.index());
          executor_of<decltype(rank)> ex(rank);
          ex.initialise(5);
        }) == "no exception");
}

}  // namespace
