// SPDX-License-Identifier: Apache-2.0
// dump: the graph of a step before and after each pass of its pipeline, as files.
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <shardwise/graph/text/render.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/support/type_name.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

template <class First, class Second>
struct joined_pipelines;
template <class... P, class... Q>
struct joined_pipelines<pipeline<P...>, pipeline<Q...>> {
  using type = pipeline<P..., Q...>;
};

// The graph that a step's passes begin with, and those of the plan and of the pipeline.
template <class Step>
struct pipeline_of;
template <template <class> class Model, class Task, class Plan, class Mesh, class Optimizer, class Pipeline, class T,
          class Backend>
struct pipeline_of<train_step<Model, Task, Plan, Mesh, Optimizer, Pipeline, T, Backend>> {
  using source = typename step_graph<Model, Task, Plan, Mesh, Optimizer, Pipeline, T>::written;
  using type = typename joined_pipelines<typename implied_passes<Plan>::type, passes_of_step<Plan, Mesh, Pipeline>>::type;
};
template <template <class> class Model, class Task, class Plan, class Mesh, class Pipeline, class T, class Backend>
struct pipeline_of<forward_step<Model, Task, Plan, Mesh, Pipeline, T, Backend>> {
  using source = whole_output<typename forward_graph<Model, Task, Plan, Mesh, Pipeline, T>::trace_type>;
  using type = typename with_batches<Plan, Pipeline>::type;
};
template <class F, class Mesh, class Inputs, class Pipeline, class Backend>
struct pipeline_of<function_step<F, Mesh, Inputs, Pipeline, Backend>> {
  using source = typename function_graph<F, Mesh, Inputs, Pipeline>::trace_type;
  using type = Pipeline;
};
template <class F, class Mesh, class Inputs, class Wrt, class Pipeline, class Backend>
struct pipeline_of<gradient_step<F, Mesh, Inputs, Wrt, Pipeline, Backend>> {
  using source = typename gradient_graph<F, Mesh, Inputs, Wrt, Pipeline>::joint;
  using type = Pipeline;
};

// "sw::fuse<64>" -> "fuse_64": what a file may be called.
inline std::string file_stem(const std::string& type) {
  std::size_t end = 0, begin = 0;
  while (end < type.size() && type[end] != '<') ++end;
  for (std::size_t i = 0; i < end; ++i)
    if (type[i] == ':') begin = i + 1;
  std::string stem;
  for (std::size_t i = begin; i < type.size(); ++i) {
    const char c = type[i];
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain) stem += c;
    else if (!stem.empty() && stem.back() != '_') stem += '_';
  }
  while (!stem.empty() && stem.back() == '_') stem.pop_back();
  return stem;
}

template <class Graph>
void dump_graph(const std::filesystem::path& folder, const std::string& name, const Graph& g,
                std::vector<std::string>& files) {
  const struct {
    text_format format;
    const char* ending;
  } kinds[] = {{text_format::program, ".txt"}, {text_format::graphviz, ".dot"}, {text_format::mermaid, ".mmd"}};
  for (const auto& k : kinds) {
    const std::filesystem::path path = folder / (name + k.ending);
    std::ofstream out(path, std::ios::binary);
    out << to_text(g, k.format);
    if (!out.flush())
      throw std::runtime_error("shardwise: dump: the file " + path.string() + " cannot be written; give a folder that can");
    files.push_back(path.string());
  }
}

template <class Source, class Pipeline, class Applied = passes_list<>>
struct dump_passes {
  static void run(const std::filesystem::path&, int, std::vector<std::string>&) {}
};
template <class Source, class P, class... Rest, class Applied>
struct dump_passes<Source, pipeline<P, Rest...>, Applied> {
  static void run(const std::filesystem::path& folder, int k, std::vector<std::string>& files) {
    using done = typename one_pass<P, Source, Applied>::done;
    const std::string name = std::to_string(k) + "_" + file_stem(type_name<P>());
    dump_graph(folder, name + ".before", Source::value, files);
    dump_graph(folder, name + ".after", done::type::value, files);
    dump_passes<typename done::type, pipeline<Rest...>, typename appended<Applied, P>::type>::run(folder, k + 1, files);
  }
};

}  // namespace detail

// Writes <k>_<pass>.before and .after for the k-th pass (from 1), and `program`, what is left of it all without dead
// nodes; each as .txt, .dot and .mmd. Returns the files in order. The folder is made if it does not exist.
template <class Step>
std::vector<std::string> dump(const std::string& folder) {
  using from = detail::pipeline_of<Step>;
  std::error_code ignored;  // what matters is whether the files can be written
  std::filesystem::create_directories(folder, ignored);
  std::vector<std::string> files;
  detail::dump_passes<typename from::source, typename from::type>::run(folder, 1, files);
  detail::dump_graph(folder, "program", Step::program, files);
  return files;
}

}  // namespace shardwise::inline v0_1
