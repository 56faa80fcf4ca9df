// SPDX-License-Identifier: Apache-2.0
// A failed NCCL or CUDA call ends with one sentence: the call, the library's reason, the operation, its module, the rank.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <gpt.hpp>
#include <limits>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

namespace sw = shardwise;
using namespace test::gpt;

TEST_CASE("a failed collective names the call, the operation, its module and the rank") {
  if (!test::place::has(2)) return;
  using program = step<float, 1, 2>;
  std::string said[2];
  test::place::launch<typename program::mesh_type>([&](auto& rank) {
    // by NCCL, whose call is to fail
    const sw::device_options options{.how = sw::device_execution::stream, .one_shot_all_reduce = false};
    sw::executor<program, std::remove_reference_t<decltype(rank)>> ex(rank, options);
    ex.initialise(7);
    feed(ex, 1);
    ncclComm_t& group = rank.all_communicators().axis(1);
    ncclComm_t const kept = std::exchange(group, nullptr);
    try {
      ex.run(environment(1));
    } catch (const std::runtime_error& e) {
      said[rank.index()] = e.what();
    }
    group = kept;
    cudaDeviceSynchronize();
    rank.barrier();
  });
  for (int r = 0; r < 2; ++r) {
    MESSAGE(said[r]);
    CHECK(said[r].find("shardwise: ncclAllReduce failed: ") == 0);
    CHECK(said[r].find("(in all_reduce") != std::string::npos);
    CHECK(said[r].find(", module layers.0") != std::string::npos);
    CHECK(said[r].find("rank " + std::to_string(r) + ")") != std::string::npos);
  }
}

TEST_CASE("a program that does not fit the device's memory is refused with both numbers") {
  if (!test::place::has(1)) return;
  std::string said;
  try {
    sw::cuda::device_memory m(std::size_t{1} << 50);
  } catch (const sw::device_error& e) {
    said = e.what();
  }
  CHECK(said.find("cudaMalloc of 1125899906842624 bytes failed: the device has ") != std::string::npos);
}

TEST_CASE("a run that ends in a rank's exception says which rank") {
  if (!test::place::has(1)) return;
  using mesh = sw::mesh<dp<1>>;
  CHECK_THROWS_WITH(test::place::launch<mesh>([](auto&) { throw std::runtime_error("no data"); }), "no data (rank 0)");
}

// The step of rank 1 that never comes keeps a device waiting, or a barrier: whichever is met first.
TEST_CASE("a rank that returns while another one's device or thread waits for it is named") {
  if (!test::place::has(2)) return;
  using program = step<float, 1, 2>;
  const auto told = [](const auto& body) -> std::string {
    try {
      test::place::launch<typename program::mesh_type>(body);
    } catch (const std::exception& e) {
      return e.what();
    }
    return "nothing was thrown";
  };
  const std::string gone = "shardwise: rank 1 has returned while rank 0 waits in ";
  CHECK(told([](auto& rank) {
          sw::executor<program, std::remove_reference_t<decltype(rank)>> ex(rank);
          ex.initialise(7);
          for (int s = 1; s <= 3; ++s) {
            if (rank.index() == 1 && s == 2) break;
            feed(ex, s);
            ex.run(environment(s));
            ex.synchronize();
          }
        }).find(gone + "a collective on axis 1 of the mesh") == 0);
  CHECK(told([](auto& rank) {
          if (rank.index() == 0) rank.barrier();
        }).find(gone + "a barrier of all ranks") == 0);
}

// What rank 0 does while rank 1 sleeps behind its first step.
template <class Program, class F>
std::string while_one_sleeps(const F& f) {
  std::string said = "nothing was thrown";
  sw::set_rank_timeout(4);
  try {
    test::place::launch<typename Program::mesh_type>([&](auto& rank) {
      sw::executor<Program, std::remove_reference_t<decltype(rank)>> ex(rank);
      ex.initialise(7);
      feed(ex, 1);
      ex.run(environment(1));
      ex.synchronize();
      if (rank.index() == 1) sleep(6);
      else f(ex);
      ex.synchronize();
    });
  } catch (const std::exception& e) {
    said = e.what();
  }
  sw::set_rank_timeout(600);
  return said;
}

TEST_CASE("a rank that does not come in time is named, and the one that waits is released") {
  if (!test::place::has(2)) return;
  using program = step<float, 1, 2>;
  const auto runs = [](auto& ex) {
    feed(ex, 2);
    ex.run(environment(2));
  };
  // each of these waits for the device
  const auto check = [](const std::string& said) {
    MESSAGE(said);
    CHECK(said.find("shardwise: rank 0 has waited 4 s for its device: rank 1 has queued ") == 0);
    CHECK(said.find(" collectives on axis 1 of the mesh") != std::string::npos);
  };
  check(while_one_sleeps<program>([&](auto& ex) { runs(ex), ex.synchronize(); }));
  check(while_one_sleeps<program>([&](auto& ex) { runs(ex), ex.loss(); }));
  check(while_one_sleeps<program>([&](auto& ex) { runs(ex), ex.set_parameter(0, ex.get_parameter(0)); }));
  // of four batches the last one waits: its buffer is that of the second one, whose copy stands behind the first one's run. So it is
  // three runs of nine collectives that are queued beyond those of rank 1
  const std::string said = while_one_sleeps<program>([&](auto& ex) { runs(ex), runs(ex), runs(ex), runs(ex); });
  check(said);
  CHECK(said.find(" has queued 18 of 45 collectives") != std::string::npos);
}

TEST_CASE("a device's run is watched for what is not finite") {
  if (!test::place::has(2)) return;
  using program = step<float, 1, 2>;
  std::string said;
  try {
    test::place::launch<typename program::mesh_type>([](auto& rank) {
      sw::executor<program, std::remove_reference_t<decltype(rank)>> ex(rank, sw::executor_checks::finite);
      ex.initialise(7);
      feed(ex, 1);
      ex.run(environment(1));
      std::vector<float> bad(static_cast<std::size_t>(sw::numel(ex.parameter_spec(0))), 0.F);
      bad[3] = std::numeric_limits<float>::quiet_NaN();
      ex.set_parameter(0, bad);
      feed(ex, 2);
      ex.run(environment(2));
    });
  } catch (const std::exception& e) {
    said = e.what();
  }
  CHECK(said.find("shardwise: parameter '" +
                  sw::executor<program, sw::cuda_rank<typename program::mesh_type>>::parameter_name(0) +
                  "' holds 1 NaN among the ") == 0);
  CHECK(said.find("(in embedding, module tok_embeddings, rank ") != std::string::npos);
}

}  // namespace
