// SPDX-License-Identifier: Apache-2.0
// write_explanation: a compiled program's plan, collectives, memory, kernels and graph as <name>.md and as <name>.html, one page that
// loads nothing else.
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <shardwise/io/explanation/html.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

// What a program is called where nobody has named it: "train_step_mlp_task", a step of one's own by its type's name.
template <class Step>
struct program_title {
  static std::string text() { return short_name<Step>(); }
};
template <class Step>
  requires requires { typename Step::lone_program; }
struct program_title<Step> {
  static std::string text() { return program_title<typename Step::lone_program>::text() + "_in_place"; }
};
template <template <class> class Model, class Task, class Plan, class Mesh, class Optimizer, class Pipeline, class T,
          class Backend>
struct program_title<train_step<Model, Task, Plan, Mesh, Optimizer, Pipeline, T, Backend>> {
  static std::string text() { return "train_step_" + short_name<Model<unbound>>() + "_" + short_name<Task>(); }
};
template <template <class> class Model, class Task, class Plan, class Mesh, class Pipeline, class T, class Backend>
struct program_title<forward_step<Model, Task, Plan, Mesh, Pipeline, T, Backend>> {
  static std::string text() { return "forward_step_" + short_name<Model<unbound>>() + "_" + short_name<Task>(); }
};
template <class F, class Mesh, class Inputs, class Pipeline, class Backend>
struct program_title<function_step<F, Mesh, Inputs, Pipeline, Backend>> {
  static std::string text() { return "function_step_" + short_name<F>(); }
};
template <class F, class Mesh, class Inputs, class Wrt, class Pipeline, class Backend>
struct program_title<gradient_step<F, Mesh, Inputs, Wrt, Pipeline, Backend>> {
  static std::string text() { return "gradient_step_" + short_name<F>(); }
};

// Letters, digits and single underscores: what a file may be called everywhere.
inline std::string plain_stem(const std::string& title) {
  std::string stem;
  for (const char c : title) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain) stem += c;
    else if (!stem.empty() && stem.back() != '_') stem += '_';
  }
  while (!stem.empty() && stem.back() == '_') stem.pop_back();
  return stem.empty() ? "program" : stem.substr(0, 100);
}

inline void write_whole(const std::filesystem::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out)
    throw std::runtime_error("shardwise: write_explanation: the file " + path.string() +
                             " cannot be written; give a folder that can");
}

}  // namespace detail

// Writes <folder>/<name>.md and <folder>/<name>.html, and returns the two paths. `name` is the title too; empty: after the step, its
// model and its task. The folder is made if it does not exist. No rank is needed: call it where and as often as is wanted, on one
// rank alone. Throws std::runtime_error with the path of a file that cannot be written.
template <class Step>
std::vector<std::string> write_explanation(const std::string& folder, const std::string& name = "") {
  const std::string title = name.empty() ? detail::program_title<Step>::text() : name;
  const explanation e = explanation_of<Step>(title);
  std::error_code ignored;  // what matters is whether the files can be written
  std::filesystem::create_directories(folder, ignored);
  const std::filesystem::path stem = std::filesystem::path(folder) / detail::plain_stem(title);
  const std::vector<std::string> files{stem.string() + ".md", stem.string() + ".html"};
  detail::write_whole(files[0], explanation_markdown(e));
  detail::write_whole(files[1], explanation_html(e));
  return files;
}

}  // namespace shardwise::inline v0_1
