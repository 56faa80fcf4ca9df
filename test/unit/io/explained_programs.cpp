// SPDX-License-Identifier: Apache-2.0
// The build option: programs of this source write themselves when their first executor is made, on rank 0, once each.
#define SHARDWISE_EXPLAIN 1
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <string>

#include <thrown.hpp>

namespace {

namespace sw = shardwise;
namespace fs = std::filesystem;

struct dp : sw::axis<3> {};
using mesh = sw::mesh<dp>;

template <int K>
struct twice {
  constexpr auto operator()(const auto& x) const { return sw::scale(x, double{K}); }
};
using inputs = sw::inputs<sw::input_tensor<float, sw::shape<5>, sw::on<dp, sw::shard<0>>>>;
template <int K>
using step = sw::function_step<twice<K>, mesh, inputs>;

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  if (fs::exists(folder))
    for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

std::string content(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

template <class Step>
void make() {
  sw::launch<mesh>([](auto& rank) { sw::executor<Step> run(rank); });
}

// One case, since what is written once stays so.
TEST_CASE("programs write themselves once each, where the environment says") {
  const fs::path root = fs::temp_directory_path() / ("shardwise_explained_" + std::to_string(std::random_device{}()));
  fs::create_directories(root);
  std::ofstream(root / "file").put('x');
  const auto say = [&](const fs::path& folder) { setenv("SHARDWISE_EXPLAIN_FOLDER", folder.c_str(), 1); };

  unsetenv("SHARDWISE_EXPLAIN_FOLDER");
  CHECK(sw::explanation_folder() == "shardwise_explained");

  say("");  // nowhere, and nothing is remembered
  make<step<2>>();

  say(root / "file");  // no folder: no executor, and every rank says why
  const std::string why = test::thrown([] { make<step<2>>(); });
  CHECK(test::mentions(why, "write_explanation: the file " + (root / "file" / "function_step_twice.md").string()));

  say(root / "a");
  make<step<2>>();
  CHECK(names_in(root / "a") == std::set<std::string>{"function_step_twice.html", "function_step_twice.md"});
  const std::string page = content(root / "a" / "function_step_twice.html");
  CHECK(page == sw::explanation_html(sw::explanation_of<step<2>>("function_step_twice")));

  make<step<3>>();  // another program of the same words
  make<step<2>>();
  CHECK(names_in(root / "a") == std::set<std::string>{"function_step_twice.html", "function_step_twice.md",
                                                      "function_step_twice_2.html", "function_step_twice_2.md"});

  say(root / "b");  // it has been written
  make<step<2>>();
  CHECK(names_in(root / "b").empty());
  unsetenv("SHARDWISE_EXPLAIN_FOLDER");
  fs::remove_all(root);
}

}  // namespace
