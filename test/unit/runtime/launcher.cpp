// SPDX-License-Identifier: Apache-2.0
// Who a process is, by its arguments, its launcher's variables, or nobody's word; and which of a binary's meshes that makes.
#include <doctest/doctest.h>

#include <cstdlib>
#include <launch_message.hpp>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace sw = shardwise;
namespace rt = sw::runtime;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
struct three : sw::axis<3> {};
using meshes = sw::mesh_choice<sw::mesh<dp, tp>, sw::mesh<dp>, sw::mesh<three>>;

using variables = std::vector<std::pair<const char*, const char*>>;
// f() with these variables set and all others of launchers unset.
template <class F>
auto with(const variables& set, const F& f) {
  for (const rt::starter& l : rt::starters)
    for (const char* name : {l.rank, l.size, l.local}) unsetenv(name);
  unsetenv("SLURM_STEP_NUM_TASKS");
  for (const auto& [name, value] : set) setenv(name, value, 1);
  const auto clear = [&] {
    for (const auto& [name, value] : set) unsetenv(name);
  };
  try {
    auto result = f();
    clear();
    return result;
  } catch (...) {
    clear();
    throw;
  }
}

std::string place(const variables& set, std::vector<std::string> words = {}) {
  return with(set, [&]() -> std::string {
    std::vector<char*> arguments{words.insert(words.begin(), "program")->data()};
    for (std::size_t i = 1; i < words.size(); ++i) arguments.push_back(words[i].data());
    try {
      const rt::process_place p =
          rt::place_of_process(rt::launch_arguments_of(static_cast<int>(arguments.size()), arguments.data()));
      return std::to_string(p.rank) + " of " + std::to_string(p.size) + ", local " + std::to_string(p.local) + " by " +
             (p.by ? p.by : "nobody");
    } catch (const std::exception& e) {
      return e.what();
    }
  });
}

// What a launch with these arguments says, or the ranks that it ran.
std::string launched(const variables& set, std::vector<std::string> words) {
  return with(set, [&]() -> std::string {
    std::vector<char*> arguments{words.insert(words.begin(), "program")->data()};
    for (std::size_t i = 1; i < words.size(); ++i) arguments.push_back(words[i].data());
    std::string ran;
    try {
      sw::launch<meshes>(static_cast<int>(arguments.size()), arguments.data(), [&](auto& rank) {
        rank.barrier();
        if (rank.index() == 0) ran = std::to_string(rank.size()) + " ranks";
      });
    } catch (const std::exception& e) {
      return e.what();
    }
    return ran;
  });
}

TEST_CASE("who a process is: arguments, torchrun, Open MPI, MPICH, Slurm, nobody, in this order") {
  const variables slurm{{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_LOCALID", "0"}};
  variables all = slurm;
  CHECK(place({}) == "0 of 1, local -1 by nobody");
  CHECK(place(all) == "1 of 2, local 0 by srun");
  all.insert(all.end(), {{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "1"}});
  CHECK(place(all) == "2 of 3, local 1 by mpiexec");
  all.insert(all.end(), {{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "2"}});
  CHECK(place(all) == "3 of 4, local 2 by Open MPI's mpirun");
  all.insert(all.end(), {{"RANK", "4"}, {"WORLD_SIZE", "5"}});
  CHECK(place(all) == "4 of 5, local -1 by torchrun");
  CHECK(place(all, {"--rank", "0", "--world-size=8"}) == "0 of 8, local -1 by the program's arguments");
  CHECK(place(slurm, {"--seed", "3", "--ranks=2"}) == "1 of 2, local 0 by srun");
}

TEST_CASE("what does not say who a process is, is refused with what is missing") {
  CHECK(place({{"RANK", "1"}}) ==
        "shardwise: the environment variable WORLD_SIZE is missing; start the program with torchrun, which sets RANK, "
        "WORLD_SIZE and LOCAL_RANK");
  CHECK(place({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}}) == "shardwise: PMI_RANK is 4; it must be below PMI_SIZE, which is 4");
  CHECK(place({{"RANK", "-1"}, {"WORLD_SIZE", "4"}}) ==
        "shardwise: the environment variable RANK is '-1'; it must be a number from 0");
  CHECK(place({{"RANK", "1"}, {"WORLD_SIZE", "99999999999"}}) ==
        "shardwise: the environment variable WORLD_SIZE is '99999999999'; it must be a number from 0");
  CHECK(place({}, {"--rank", "1"}) == "shardwise: of --rank and --world-size one is given; give both, or none");
  CHECK(place({}, {"--rank", "2", "--world-size", "2"}) ==
        "shardwise: --rank is 2; it must be below --world-size, which is 2");
  CHECK(place({}, {"--ranks", "0"}) == "shardwise: --ranks is given '0'; it must be a number from 1");
  CHECK(place({}, {"--ranks"}) == "shardwise: --ranks is given ''; it must be a number from 1");
  CHECK(place({}, {"--rank", "x", "--world-size", "2"}) == "shardwise: --rank is given 'x'; it must be a number from 0");
}

TEST_CASE("a binary of several meshes takes the one with as many ranks as are asked for") {
  CHECK(launched({}, {}) == "4 ranks");
  CHECK(launched({}, {"--ranks", "2"}) == "2 ranks");
  CHECK(launched({}, {"--ranks=3", "--other"}) == "3 ranks");
  CHECK(
      launched({}, {"--ranks", "6"}) ==
      "shardwise: there are 6 ranks by --ranks, and this program was built for 4 (2 x 2) or 2 (2) or 3 (3); start it with such a "
      "number, or add a mesh of 6 ranks to its mesh_choice");
}

TEST_CASE("ranks as threads are refused where a launcher has started several processes") {
  CHECK(
      launched({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}}, {}) ==
      "shardwise: this process is rank 1 of 4 by the word of Open MPI's mpirun (OMPI_COMM_WORLD_SIZE), and the program runs its "
      "ranks as threads of one process; start it once, or let it launch ranks as processes: launch_mpi, or launch_cuda on GPUs");
  CHECK(launched({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}, {"--ranks", "2"}).find("--ranks asks for ranks that are threads") !=
        std::string::npos);
  CHECK(launched({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}, {"--ranks", "2"}) == "2 ranks");
  // a batch script of Slurm has these without srun
  CHECK(launched({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}, {"--ranks", "2"}) == "2 ranks");
  CHECK(launched({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_STEP_NUM_TASKS", "4"}}, {})
            .find("by the word of srun") != std::string::npos);
}

}  // namespace
