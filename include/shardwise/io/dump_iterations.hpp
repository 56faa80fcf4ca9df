// SPDX-License-Identifier: Apache-2.0
// dump_iterations: the graphs of an iterated step, as files.
#pragma once

#include <shardwise/io/dump.hpp>
#include <shardwise/module/iterated.hpp>

namespace shardwise::inline v0_1 {

namespace detail {
template <iteration_phase Phase, class Step, class... Moves>
struct pipeline_of<step_phase<Phase, Step, Moves...>> {
  using source = iterated_graph<typename iteration_graphs<Step, Moves...>::prepared,
                                typename iteration_graphs<Step, Moves...>::moves, Phase>;
  using type = std::conditional_t<Phase == iteration_phase::main, typename main_passes_of<Moves...>::type, pipeline<>>;
};
}  // namespace detail

// Writes before_transformation_gm, iter_graph_setup_gm, iter_graph_main_gm and iter_graph_cleanup_gm, each as .txt, .dot and
// .mmd: what the step's pipeline begins with, and the three phases. Returns the files in order.
template <class Iterated>
std::vector<std::string> dump_iterations(const std::string& folder) {
  using from = detail::pipeline_of<typename Iterated::step>;
  std::error_code ignored;  // what matters is whether the files can be written
  std::filesystem::create_directories(folder, ignored);
  std::vector<std::string> files;
  detail::dump_graph(folder, "before_transformation_gm", from::source::value, files);
  detail::dump_graph(folder, "iter_graph_setup_gm", Iterated::setup::program, files);
  detail::dump_graph(folder, "iter_graph_main_gm", Iterated::main::program, files);
  detail::dump_graph(folder, "iter_graph_cleanup_gm", Iterated::cleanup::program, files);
  return files;
}

}  // namespace shardwise::inline v0_1
