// SPDX-License-Identifier: Apache-2.0
// What the build option SHARDWISE_EXPLAIN adds: every program writes itself when its first executor is made. The umbrella headers
// include this where the option is set, and nothing does elsewhere.
#pragma once

#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include <shardwise/io/explanation/write.hpp>
#include <shardwise/runtime/executor/explained.hpp>

#if !defined(SHARDWISE_EXPLAIN_FOLDER)
#define SHARDWISE_EXPLAIN_FOLDER "shardwise_explained"
#endif

namespace shardwise::inline v0_1 {

// Where programs write themselves: the environment's SHARDWISE_EXPLAIN_FOLDER as it is now, else the macro of that name, else
// "shardwise_explained" in the working directory. Empty: nowhere.
inline std::string explanation_folder() {
  const char* const said = std::getenv("SHARDWISE_EXPLAIN_FOLDER");
  return said ? said : SHARDWISE_EXPLAIN_FOLDER;
}

namespace detail {

// "name", and where another program of this process has it: "name_2", ...
inline std::string unused_title(const std::string& name) {
  static std::mutex guard;
  static std::vector<std::string> taken;
  const std::lock_guard<std::mutex> hold(guard);
  std::string title = name;
  const auto is_taken = [&] {
    for (const std::string& t : taken)
      if (t == title) return true;
    return false;
  };
  for (int k = 2; is_taken(); ++k) title = name + "_" + std::to_string(k);
  taken.push_back(title);
  return title;
}

template <class Step>
std::string title_of_program() {
  static const std::string title = unused_title(plain_stem(program_title<Step>::text()));
  return title;
}

// What every executor calls that is made (found by its argument). The process's rank 0 writes, once for each type of program, the others
// do nothing; where the files cannot be written the executor is not made.
template <class Step>
void explain_made(explained_program<Step>, int rank) {
  if (rank != 0) return;
  static std::mutex guard;
  static bool written = false;
  const std::lock_guard<std::mutex> hold(guard);
  if (written) return;
  const std::string folder = explanation_folder();
  if (folder.empty()) return;
  write_explanation<Step>(folder, title_of_program<Step>());
  written = true;
}

}  // namespace detail

}  // namespace shardwise::inline v0_1
