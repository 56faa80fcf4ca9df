// SPDX-License-Identifier: Apache-2.0
// train_text's output: well-formed files with exact keys, and a folder never left half-written.
#include "../../../examples/train_text/report.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;
using train_text::loss_point;
using train_text::output_folder;
using train_text::usage_error;

/// A folder that lasts as long as the test.
struct scratch {
  fs::path root = fs::temp_directory_path() / ("train_text_report_" + std::to_string(std::random_device{}()));
  scratch() { fs::create_directories(root); }
  ~scratch() {
    std::error_code ignored;
    fs::remove_all(root, ignored);
  }
};

const train_text::summary figures{400, 2.171, 4.97, 3.65, 2.59, 41234.56, 123456, 7890123};

std::vector<loss_point> curve(std::size_t steps) {
  std::vector<loss_point> points;
  for (std::size_t i = 1; i <= steps; ++i) points.push_back({i, 2 + 6 * std::exp(-static_cast<double>(i) / 50)});
  return points;
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

std::string content(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// Every tag closed in order, attributes quoted, one root: what an XML parser would insist on for such a file.
bool well_formed(std::string_view xml) {
  std::vector<std::string_view> open;
  std::size_t roots = 0;
  for (std::size_t at = xml.find('<'); at != xml.npos; at = xml.find('<', at + 1)) {
    const std::size_t end = xml.find('>', at);
    if (end == xml.npos) return false;
    std::string_view tag = xml.substr(at + 1, end - at - 1);
    if (tag.find('<') != tag.npos || std::count(tag.begin(), tag.end(), '"') % 2 != 0) return false;
    const std::string_view name = tag.substr(tag.starts_with('/'), tag.find_first_of(" /", 1) - tag.starts_with('/'));
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else {
      roots += open.empty();
      if (!tag.ends_with('/')) open.push_back(name);
    }
  }
  return open.empty() && roots == 1;
}

TEST_CASE("train_text report: the test's XML check tells good from bad") {
  CHECK(well_formed("<a b=\"c\"><d/>x</a>"));
  CHECK_FALSE(well_formed("<a><d></a></d>"));
  CHECK_FALSE(well_formed("<a><d>"));
  CHECK_FALSE(well_formed("<a b=\"c>x</a>"));
  CHECK_FALSE(well_formed("<a/><a/>"));
}

TEST_CASE("train_text report: a step's time, its least work and the rates that follow from both") {
  train_text::summary s = figures;
  s.tokens_per_second = 20000;
  s.flops_per_step = 3e9;
  s.kernel_bytes_per_step = 5e8;
  CHECK(train_text::step_report(s, 1000) ==
        "step: 50.00 ms, 20000 tokens/s; of each rank 3.00 GFLOP and 0.50 GB of its kernels' operands, done at 60.0 GFLOP/s "
        "and 10.0 GB/s\n");
  s.communication_share = 0.125;
  CHECK(train_text::step_report(s, 1000).find("10.0 GB/s; 12.5 % of the recorded steps is communication") !=
        std::string::npos);
  CHECK(train_text::summary_json(s).find("\"communication_share\": 0.1250\n") != std::string::npos);
  s.tokens_per_second = 0;
  CHECK(train_text::step_report(s, 1000).empty());
}

TEST_CASE("train_text report: the summary has exactly its keys, and numbers for values") {
  CHECK(train_text::summary_json(figures) ==
        "{\n"
        "  \"steps\": 400,\n"
        "  \"held_out_bits_per_byte\": 2.171000,\n"
        "  \"unigram_bits_per_byte\": 4.970000,\n"
        "  \"bigram_bits_per_byte\": 3.650000,\n"
        "  \"trigram_bits_per_byte\": 2.590000,\n"
        "  \"tokens_per_second\": 41234.6,\n"
        "  \"comm_bytes_per_step\": 123456,\n"
        "  \"peak_bytes\": 7890123,\n"
        "  \"flops_per_step\": 0,\n"
        "  \"kernel_bytes_per_step\": 0,\n"
        "  \"communication_share\": null\n"
        "}\n");
}

TEST_CASE("train_text report: the curve as text") {
  const std::vector<loss_point> points{{1, 8}, {2, 7.5}};
  CHECK(train_text::loss_csv(points) == "step,bits_per_byte\n1,8.000000\n2,7.500000\n");
}

TEST_CASE("train_text report: the drawing is well-formed, labelled and small for any curve") {
  for (const std::size_t steps : {0u, 1u, 2u, 3u, 49u, 400u, 100'000u}) {
    CAPTURE(steps);
    auto s = figures;
    s.steps = steps;
    const std::string svg = train_text::loss_svg(curve(steps), s);
    CHECK(well_formed(svg));
    CHECK(svg.size() < 40'000);
    CHECK(svg.find("nan") == std::string::npos);
    CHECK(svg.find("inf") == std::string::npos);
    for (const char* words : {">unigram 4.970<", ">bigram 3.650<", ">trigram 2.590<", ">held out 2.171<", ">step<",
                              ">bits per byte<", "stroke-dasharray"})
      CHECK(svg.find(words) != std::string::npos);
  }
}

TEST_CASE("train_text report: labels of equal levels do not cover one another") {
  for (const double level : {0.001, 2.5, 11.9, 40.0}) {
    const std::string svg = train_text::loss_svg(curve(10), {10, level, level, level, level, 1, 1, 1});
    CHECK(well_formed(svg));
    std::vector<double> ys;
    for (std::size_t at = svg.find("x=\"636.0\""); at != svg.npos; at = svg.find("x=\"636.0\"", at + 1))
      ys.push_back(std::stod(svg.substr(svg.find("y=\"", at + 3) + 3)));
    REQUIRE(ys.size() == 4);
    for (std::size_t i = 1; i < 4; ++i) CHECK(ys[i] - ys[i - 1] >= 16.5);
    CHECK(ys.front() >= 40);
    CHECK(ys.back() <= 410);
  }
}

TEST_CASE("train_text report: the folder is made, and holds the three files and nothing else") {
  const scratch dir;
  const fs::path folder = dir.root / "a" / "b";
  for (int run = 0; run < 2; ++run) {  // a second run replaces the first
    output_folder out(folder);
    out.write(curve(static_cast<std::size_t>(10 + run)), figures);
  }
  CHECK(names_in(folder) == std::set<std::string>{"loss.csv", "loss.svg", "summary.json"});
  CHECK(content(folder / "loss.csv") == train_text::loss_csv(curve(11)));
  CHECK(content(folder / "loss.svg") == train_text::loss_svg(curve(11), figures));
  CHECK(content(folder / "summary.json") == train_text::summary_json(figures));
}

TEST_CASE("train_text report: evaluations are a file of their own") {
  const scratch dir;
  output_folder out(dir.root / "e", true);
  out.write(curve(9), figures, curve(4));
  CHECK(names_in(dir.root / "e") == std::set<std::string>{"held_out.csv", "loss.csv", "loss.svg", "summary.json"});
  CHECK(content(dir.root / "e" / "held_out.csv") == train_text::loss_csv(curve(4)));
  CHECK(content(dir.root / "e" / "loss.csv") == train_text::loss_csv(curve(9)));
}

TEST_CASE("train_text report: a run without a report leaves no trace") {
  const scratch dir;
  {
    const output_folder out(dir.root / "a" / "b");
  }
  CHECK(names_in(dir.root).empty());
  fs::create_directories(dir.root / "mine");
  {
    const output_folder out(dir.root / "mine");
  }
  CHECK(names_in(dir.root) == std::set<std::string>{"mine"});
}

TEST_CASE("train_text report: a figure that is not finite writes nothing") {
  const scratch dir;
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    output_folder out(dir.root / "out");
    auto s = figures;
    s.held_out_bits_per_byte = bad;
    CHECK_THROWS_WITH_AS(out.write(curve(3), s), "the held-out loss is not a finite number, so no report was written.",
                         std::runtime_error);
    auto points = curve(3);
    points[1].bits_per_byte = bad;
    CHECK_THROWS_WITH_AS(out.write(points, figures), doctest::Contains("the loss at step 2"), std::runtime_error);
    CHECK(names_in(dir.root / "out").empty());
  }
}

TEST_CASE("train_text report: a folder that cannot be written to is refused at once, by name and reason") {
  const scratch dir;
  const auto refuses = [](const fs::path& folder, const char* why) {
    CAPTURE(folder.string());
    CHECK_THROWS_WITH_AS(output_folder{folder}, doctest::Contains(why), usage_error);
    CHECK_THROWS_WITH_AS(output_folder{folder}, doctest::Contains(folder.c_str()), usage_error);
  };
  std::ofstream(dir.root / "file") << "x";
  refuses(dir.root / "file", "it is not a folder");
  refuses(dir.root / "file" / "below", "Not a directory");
  fs::create_directories(dir.root / "taken" / "loss.svg");
  refuses(dir.root / "taken", "its 'loss.svg' is a folder");
  if (fs::exists("/proc/self")) refuses("/proc/self", "cannot write");  // holds for root too
  CHECK(names_in(dir.root) == std::set<std::string>{"file", "taken"});
  CHECK(names_in(dir.root / "taken") == std::set<std::string>{"loss.svg"});
}

TEST_CASE("train_text report: a write that fails leaves the earlier report whole") {
  const scratch dir;
  output_folder first(dir.root);
  first.write(curve(5), figures);
  output_folder second(dir.root);
  fs::create_directories(dir.root / ".loss.svg.tmp");  // stands where the second temporary goes
  CHECK_THROWS_WITH_AS(second.write(curve(9), figures), doctest::Contains("cannot write"), std::runtime_error);
  CHECK(content(dir.root / "loss.csv") == train_text::loss_csv(curve(5)));
  CHECK_FALSE(fs::exists(dir.root / ".loss.csv.tmp"));
}

}  // namespace
