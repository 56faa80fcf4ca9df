// SPDX-License-Identifier: Apache-2.0
// What a program writes of itself: the page is well-formed and loads nothing, and its numbers, and Markdown's, are the program's own.
#include <shardwise/io/explanation/write.hpp>
#include <shardwise/pass/communication/batch_collectives.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/runtime/program/shared_parameters.hpp>
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <thrown.hpp>
#include <xml.hpp>

namespace {

namespace sw = shardwise;
namespace fs = std::filesystem;

struct dp : sw::axis<3> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;

template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 14>, net1), (sw::linear<14, 10>, net2));
  constexpr auto forward(const auto& x) const { return net2(sw::relu(net1(x))); }
};
using plan = sw::plan<sw::data_parallel<dp>, sw::at<"net1", sw::colwise<tp>>, sw::at<"net2", sw::rowwise<tp>>>;
using sharded = sw::plan<sw::fully_shard<dp>, sw::at<"net1", sw::colwise<tp>>, sw::at<"net2", sw::rowwise<tp>>>;

struct task {
  using batch = sw::input_tensor<float, sw::shape<7, 10>, sw::on<dp, sw::shard<0>>>;  // 3, 3 and 1 rows
  using inputs = sw::inputs<batch, batch>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};
struct logits {
  using inputs = sw::inputs<task::batch>;
  constexpr auto operator()(const auto& model, const auto& x) const { return model(x); }
};
struct f {
  constexpr auto operator()(const auto& x) const { return sw::redistribute<dp, sw::replicate>(sw::sum<0>(sw::exp(x))); }
};
struct scatter {  // the last rank, whose chunk is the smallest, sends most
  constexpr auto operator()(const auto& x) const { return sw::redistribute<dp, sw::shard<0>>(sw::sum<0>(x)); }
};
using f_inputs = sw::inputs<task::batch>;

using plain = sw::train_step<net, task, plan, mesh, sw::adam<>>;
using fused = sw::train_step<net, task, sharded, mesh, sw::sgd<>, sw::pipeline<sw::fuse_kernels>>;
using forward = sw::forward_step<net, logits, plan, mesh>;
using in_place = sw::with_parameters_of<forward, plain>;
using function = sw::function_step<f, mesh, f_inputs>;
using scattered = sw::function_step<scatter, mesh, f_inputs>;
static_assert(scattered::comm_bytes<dp> > scattered::comm_bytes<dp, 0>);
using gradient = sw::gradient_step<f, mesh, f_inputs, sw::wrt<0>>;

using rows = std::vector<std::vector<std::string>>;

// Of Markdown: the rows of the table under a heading, its head first.
rows markdown_rows(const std::string& text, const std::string& heading) {
  rows r;
  std::istringstream lines(text.substr(text.find("\n## " + heading + "\n")));
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("|")) {
      if (inside) break;
      continue;
    }
    inside = true;
    if (line.starts_with("| ---")) continue;
    r.emplace_back();
    for (std::size_t at = 2, end = 0; (end = line.find(" |", at)) != line.npos; at = end + 3) {
      std::string cell;
      for (std::size_t i = at; i < end; ++i)
        if (line[i] != '\\') cell += line[i];
      r.back().push_back(cell);
    }
  }
  return r;
}

std::string last_of(const rows& r, const std::vector<std::string>& first) {
  for (const auto& row : r)
    if (row.size() > first.size() && std::equal(first.begin(), first.end(), row.begin())) return row.back();
  return "no such row";
}

// A number that stands behind a colon and before " bytes".
std::int64_t bytes_in(const std::string& title) { return std::stoll(title.substr(title.rfind(": ") + 2)); }

template <class Step>
void check_numbers(const std::string& name) {
  CAPTURE(name);
  using ex = sw::runtime::lowered<Step>;
  const sw::explanation e = sw::explanation_of<Step>(name);
  const std::string html = sw::explanation_html(e), markdown = sw::explanation_markdown(e);
  const test::xml_element page = test::read_xml(html);
  for (const char* const outside : {"src=", "href=", "url(", "@import", "<script", "<link"})
    CHECK(html.find(outside) == html.npos);
  CHECK(html.find("prefers-color-scheme:dark") != html.npos);

  // communication: the table's sums and the picture's bars
  const auto axes = test::cells_of(*page.with_id("axes-table"));
  CHECK(axes == markdown_rows(markdown, "Communication by axis"));
  const std::int64_t on_axis[] = {Step::template comm_bytes<dp>, Step::template comm_bytes<tp>};
  const std::string names[] = {"dp", "tp"};
  for (int a = 0; a < 2; ++a) {
    CHECK(last_of(axes, {names[a], "all"}) == std::to_string(on_axis[a]));
    std::int64_t parts = 0, bars = 0, in_order = 0;
    for (const auto& r : axes) parts += r[0] == names[a] && r[1] != "all" ? std::stoll(r.back()) : 0;
    CHECK(parts == on_axis[a]);
    page.with_id("communication")->each([&](const test::xml_element& x) {
      if (x.name == "title" && x.text.find(" on " + names[a] + ":") != x.text.npos) bars += bytes_in(x.text);
    });
    CHECK(bars == on_axis[a]);
    for (const auto& r : markdown_rows(markdown, "Collectives in order"))
      in_order += r.size() > 2 && r[2] == names[a] ? std::stoll(r.back()) : 0;
    CHECK(in_order == on_axis[a]);
  }
  CHECK(e.total_bytes == Step::total_comm_bytes());
  CHECK(e.collectives == Step::traffic.collectives);

  // memory: the kinds add up to the peak; the picture's highest bar is the fullest node's
  const auto memory = test::cells_of(*page.with_id("memory-table"));
  CHECK(memory == markdown_rows(markdown, "Memory by kind"));
  CHECK(last_of(memory, {"all"}) == std::to_string(Step::peak_bytes));
  std::int64_t kinds = 0, highest = 0;
  for (std::size_t r = 1; r + 1 < memory.size(); ++r) kinds += std::stoll(memory[r][1]);
  CHECK(kinds == Step::peak_bytes);
  int bars = 0, calls = 0;
  page.with_id("memory")->each([&](const test::xml_element& x) {
    if (x.name != "title" || x.text.find(" bytes") == x.text.npos || x.text.starts_with("all the time")) return;
    highest = std::max(highest, bytes_in(x.text));
    ++bars;
  });
  CHECK(highest == Step::memory_use::value.live());
  CHECK(highest <= sw::passes::align_up(Step::peak_bytes));

  // kernels: the last column and the picture's bars are the program's launches
  const auto kernels = test::cells_of(*page.with_id("kernels-table"));
  CHECK(kernels == markdown_rows(markdown, "Kernels"));
  const sw::passes::kernel_counts count = sw::passes::kernel_calls(Step::program);
  CHECK(last_of(kernels, {"launches"}) == std::to_string(count.launches));
  CHECK(last_of(kernels, {"kernels"}) == std::to_string(count.kernels));
  CHECK(last_of(kernels, {"nodes"}) == std::to_string(Step::program.node_count));
  int launches = 0;
  page.with_id("kernels")->each([&](const test::xml_element& x) {
    if (x.name == "title" && x.text.find(" launches") != x.text.npos) launches += static_cast<int>(bytes_in(x.text));
  });
  CHECK(launches == count.launches);
  for (const auto& n : e.nodes)
    calls += n.kind == sw::explanation::kind::kernel || n.kind == sw::explanation::kind::collective ? 1 : 0;
  CHECK(bars == calls);

  // graph: a box a node, a path an operand
  int operands = 0;
  for (int i = 0; i < Step::program.node_count; ++i) operands += Step::program.nodes[i].inputs;
  CHECK(page.with_id("graph")->count("g", "node") == Step::program.node_count);
  CHECK(page.with_id("graph")->count("path") == operands);
  CHECK(markdown.find("## Graph\n\n```text\n" + sw::to_text(Step::program) + "```") != markdown.npos);

  const auto places = sw::detail::graph_places(e);
  for (std::size_t i = 0; i < e.nodes.size(); ++i) {
    for (const int k : e.nodes[i].inputs) CHECK(places[static_cast<std::size_t>(k)].row < places[i].row);
    CHECK(places[i].row >= 0);
    for (std::size_t k = 0; k < i; ++k)  // no two boxes lie over each other
      CHECK_FALSE((places[k].row == places[i].row && std::abs(places[k].x - places[i].x) < 0.999));
  }

  // plan: the parameters by name, with as many elements
  const auto tensors = test::cells_of(*page.with_id("plan-table"));
  CHECK(tensors == markdown_rows(markdown, "Plan"));
  for (int i = 0; i < ex::parameter_count(); ++i) {
    bool found = false;
    for (const auto& r : tensors)
      found = found || (r[0] == "parameter" && r[1] == ex::parameter_name(i) &&
                        r[3] == sw::to_string(ex::parameter_spec(i).place[0]) &&
                        r[r.size() - 2] == std::to_string(sw::numel(ex::parameter_spec(i))));
    CHECK(found);
  }
}

TEST_CASE("an explanation's numbers are the program's own") {
  check_numbers<plain>("plain & <simple> \"step\"");
  check_numbers<fused>("fused");
  check_numbers<forward>("forward");
  check_numbers<in_place>("in place");
  check_numbers<function>("function");
  check_numbers<gradient>("gradient");
  check_numbers<scattered>("scattered");
}

TEST_CASE("a stretch of nodes is as its fullest one, and stretches cover what runs") {
  const sw::explanation e = sw::explanation_of<plain>("plain");
  const auto all = sw::detail::memory_stretches(e, 1500), few = sw::detail::memory_stretches(e, 5);
  REQUIRE(few.size() <= 5);
  std::size_t at = 0;
  bool rises = false;  // inside of a stretch, so that its first node's would be another number
  for (const auto& s : few) {
    std::int64_t most = 0;
    CHECK(all[at].first == s.first);
    rises = rises || all[at].live < s.live;
    for (; at < all.size() && all[at].first <= s.last; ++at) most = std::max(most, all[at].live);
    CHECK(most == s.live);
  }
  CHECK(at == all.size());
  CHECK(rises);
}

TEST_CASE("an explanation's calls are those that an executor runs") {
  sw::launch<mesh>([](auto& rank) {
    sw::executor<plain> run(rank);
    if (rank.index() != 0) return;
    const sw::explanation e = sw::explanation_of<plain>("plain");
    std::size_t calls = 0;
    for (const auto& n : e.nodes)
      calls += n.kind == sw::explanation::kind::kernel || n.kind == sw::explanation::kind::collective ? 1 : 0;
    CHECK(calls == run.call_count());
  });
}

TEST_CASE("the page's reader tells what is well-formed") {
  CHECK_NOTHROW((void)test::read_xml("<a b=\"c\"><d/>x &lt; y</a>"));
  for (const char* const bad :
       {"<a><d></a></d>", "<a><d>", "<a b=\"c>x</a>", "<a/><a/>", "<a>&nbsp;</a>", "<a b=\"1\" b=\"2\"/>", "<a b=1/>"})
    CHECK_THROWS((void)test::read_xml(bad));
}

TEST_CASE("write_explanation leaves two files, titled as it is told or after the step, and says which it cannot write") {
  const fs::path folder = fs::temp_directory_path() / ("shardwise_explanation_" + std::to_string(std::random_device{}()));
  const auto files = sw::write_explanation<plain>((folder / "deep").string());
  REQUIRE(files.size() == 2);
  CHECK(fs::path(files[0]).filename() == "train_step_net_task.md");
  CHECK(fs::path(files[1]).filename() == "train_step_net_task.html");
  CHECK(fs::path(sw::write_explanation<in_place>(folder.string())[0]).filename() == "forward_step_net_logits_in_place.md");
  CHECK(sw::explanation_of<in_place>("").passes.size() == sw::explanation_of<forward>("").passes.size());
  const auto other = sw::write_explanation<forward>((folder / "deep").string(), "evaluation, 1 / 2");
  CHECK(fs::path(other[1]).filename() == "evaluation_1_2.html");
  std::ostringstream text;
  text << std::ifstream(other[1], std::ios::binary).rdbuf();
  CHECK(text.str() == sw::explanation_html(sw::explanation_of<forward>("evaluation, 1 / 2")));
  CHECK(test::mentions(test::thrown([&] { (void)sw::write_explanation<forward>(files[0]); }),
                       "shardwise: write_explanation: the file " + files[0]));
  fs::remove_all(folder);
}

}  // namespace
