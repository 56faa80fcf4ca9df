// SPDX-License-Identifier: Apache-2.0
// Names of nodes and a program as text, Graphviz and Mermaid: exact, the same as constants and at run time; dumps.
#include <shardwise/graph/text/constant_text.hpp>
#include <shardwise/graph/text/render.hpp>
#include <shardwise/io/dump.hpp>
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::text_format;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

struct f {
  constexpr auto operator()(const auto& x, const auto& w) const {
    const auto a = sw::relu(x);
    const auto b = sw::relu(sw::matmul(a, w));
    return sw::redistribute<dp, sw::replicate>(sw::sum<0>(sw::relu(b)));
  }
};
using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 6>, sw::on<dp, sw::shard<0>>>,
                          sw::input_tensor<float, sw::shape<6, 3>, sw::on<dp, sw::reduced>>>;

// Leaves a relu that nothing reads.
struct add_dead {
  using shardwise_pass = void;
  template <class Source>
  struct run {
    static constexpr auto value = [] {
      sw::graph<32, 16> g;
      sw::copy_into(g, Source::value);
      sw::builder b = g.edit();
      sw::node n = g.nodes[0];
      n.op = sw::op_code::relu;
      n.inputs = 1;
      n.in[0] = 0;
      b.append(n);
      g.finish(b);
      return g;
    }();
  };
};
template <int K>
struct keep {
  using shardwise_pass = void;
  template <class Graph>
  static constexpr sw::finding apply(Graph&) {
    return {};
  }
};
using program = sw::function_step<f, mesh, inputs, sw::pipeline<add_dead, keep<7>>>;
struct source {
  static constexpr const auto& value = program::program;
};

constexpr std::string_view text =
    "%input = input() (4, 6) [shard<0>]\n"
    "%input_1 = input() (6, 3) [reduced]\n"
    "%relu = relu(%input) (4, 6) [shard<0>]\n"
    "%einsum = einsum(%relu, %input_1) (4, 3) [shard<0>]\n"
    "%relu_1 = relu(%einsum) (4, 3) [shard<0>]\n"
    "%relu_2 = relu(%relu_1) (4, 3) [shard<0>]\n"
    "%sum = sum(%relu_2) (3) [partial]\n"
    "%all_reduce = redistribute(%sum) (3) [replicate]\n"
    "return %all_reduce\n";
constexpr std::string_view dot =
    "digraph program {\n"
    "  node [shape=box];\n"
    "  input [label=\"input (4, 6)\\n[shard<0>]\"];\n"
    "  input_1 [label=\"input_1 (6, 3)\\n[reduced]\"];\n"
    "  relu [label=\"relu (4, 6)\\n[shard<0>]\"];\n"
    "  input -> relu;\n"
    "  einsum [label=\"einsum (4, 3)\\n[shard<0>]\"];\n"
    "  relu -> einsum;\n"
    "  input_1 -> einsum;\n"
    "  relu_1 [label=\"relu_1 (4, 3)\\n[shard<0>]\"];\n"
    "  einsum -> relu_1;\n"
    "  relu_2 [label=\"relu_2 (4, 3)\\n[shard<0>]\"];\n"
    "  relu_1 -> relu_2;\n"
    "  sum [label=\"sum (3)\\n[partial]\"];\n"
    "  relu_2 -> sum;\n"
    "  all_reduce [label=\"all_reduce (3)\\n[replicate]\", shape=hexagon];\n"
    "  sum -> all_reduce;\n"
    "  all_reduce -> output0;\n"
    "}\n";
constexpr std::string_view mermaid =
    "flowchart TD\n"
    "  input[\"input (4, 6)<br/>[shard#lt;0#gt;]\"]\n"
    "  input_1[\"input_1 (6, 3)<br/>[reduced]\"]\n"
    "  relu[\"relu (4, 6)<br/>[shard#lt;0#gt;]\"]\n"
    "  input --> relu\n"
    "  einsum[\"einsum (4, 3)<br/>[shard#lt;0#gt;]\"]\n"
    "  relu --> einsum\n"
    "  input_1 --> einsum\n"
    "  relu_1[\"relu_1 (4, 3)<br/>[shard#lt;0#gt;]\"]\n"
    "  einsum --> relu_1\n"
    "  relu_2[\"relu_2 (4, 3)<br/>[shard#lt;0#gt;]\"]\n"
    "  relu_1 --> relu_2\n"
    "  sum[\"sum (3)<br/>[partial]\"]\n"
    "  relu_2 --> sum\n"
    "  all_reduce{{\"all_reduce (3)<br/>[replicate]\"}}\n"
    "  sum --> all_reduce\n"
    "  all_reduce --> output0\n";

template <text_format Format, int Nodes = sw::stage_nodes>
constexpr std::string_view constant = sw::program_text<source, Format, Nodes>::value.view();

static_assert(constant<text_format::program> == text);
static_assert(constant<text_format::graphviz> == dot);
static_assert(constant<text_format::mermaid> == mermaid);
static_assert(constant<text_format::program, 1> == text, "whatever the size of a stage");
static_assert(constant<text_format::graphviz, 8> == dot);
static_assert(sw::program_text<source>::size == static_cast<int>(text.size()));

static_assert(sw::find_node(source::value, "relu") == 2 && sw::find_node(source::value, "relu_2") == 5);
static_assert(sw::find_node(source::value, "relu_3") == -1 && sw::find_node(source::value, "relu_") == -1);
static_assert(sw::find_node(source::value, "relu_0") == -1 && sw::find_node(source::value, "relu_01") == -1);
static_assert(sw::find_node(source::value, "all_reduce") == 7 && sw::find_node(source::value, "redistribute") == -1);
static_assert(sw::find_node(source::value, "rel") == -1 && sw::find_node(source::value, "input_1") == 1);

// A buffer that is too short holds the beginning and counts on.
static_assert([] {
  sw::text_buffer<4> b;
  sw::text::put(b, "shardwise");
  return b.size() == 9 && b.view() == "shar";
}());

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream s;
  s << in.rdbuf();
  return s.str();
}

TEST_CASE("spmd passes: names and texts of a small program") {
  CHECK(sw::to_text(program::program) == text);
  CHECK(sw::to_text(program::program, text_format::graphviz) == dot);
  CHECK(sw::to_text(program::program, text_format::mermaid) == mermaid);
  const std::vector<std::string> names = sw::node_names(program::program);
  CHECK(names == std::vector<std::string>{"input", "input_1", "relu", "einsum", "relu_1", "relu_2", "sum", "all_reduce"});
  for (std::size_t i = 0; i < names.size(); ++i)
    CHECK(sw::find_node(program::program, names[i].c_str()) == static_cast<int>(i));
}

TEST_CASE("spmd passes: other placements as text") {
  CHECK(sw::to_string(sw::shard_value(1, 4)) == "shard<1, 4>");
  CHECK(sw::to_string(sw::partial_value(sw::reduction::max)) == "partial<max>");
  CHECK(sw::to_string(sw::partial_value()) == "partial");
}

TEST_CASE("spmd passes: a dump has the graph before and after each pass, and the program") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "shardwise_test_dump" / "nested";
  std::filesystem::remove_all(folder);
  const std::vector<std::string> files = sw::dump<program>(folder.string());
  std::vector<std::string> want;
  for (const char* name : {"1_add_dead.before", "1_add_dead.after", "2_keep_7.before", "2_keep_7.after", "program"})
    for (const char* ending : {".txt", ".dot", ".mmd"}) want.push_back((folder / (std::string(name) + ending)).string());
  CHECK(files == want);
  CHECK(content(folder / "1_add_dead.before.txt") == text);
  std::string more(text);
  more.insert(more.find("return"), "%relu_3 = relu(%input) (4, 6) [shard<0>]\n");
  CHECK(content(folder / "1_add_dead.after.txt") == more);
  CHECK(content(folder / "2_keep_7.before.txt") == more);
  CHECK(content(folder / "2_keep_7.after.txt") == more);
  CHECK(content(folder / "program.txt") == text);
  CHECK(content(folder / "program.dot") == dot);
  CHECK(content(folder / "program.mmd") == mermaid);
  std::filesystem::remove_all(folder.parent_path());

  std::string said;
  try {
    sw::dump<program>("/dev/null/nowhere");
  } catch (const std::exception& e) {
    said = e.what();
  }
  CHECK(said ==
        "shardwise: dump: the file /dev/null/nowhere/1_add_dead.before.txt cannot be written; give a folder that can");
}

}  // namespace
