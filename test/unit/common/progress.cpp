// SPDX-License-Identifier: Apache-2.0
// The progress line of the example programs.
#include "../../../examples/common/progress.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>

namespace {

TEST_CASE("examples: plain lines where the output is no terminal") {
  std::ostringstream out;
  double now = 100;
  {
    example::progress progress(200, 1000, "tokens", out, false, [&] { return now; });
    for (std::size_t step = 1; step <= 200; ++step) {
      now += 0.5;
      progress.update(step, "loss 3.250 bits/byte");
    }
    CHECK(progress.rate() == doctest::Approx(2000));
  }
  const std::string text = out.str();
  CHECK(text.find('\r') == std::string::npos);
  CHECK(text.find('\033') == std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') == 21);
  CHECK(text.starts_with("1/200  loss 3.250 bits/byte  2000 tokens/s  ETA 1:40\n"));
  CHECK(text.ends_with("\n200/200  loss 3.250 bits/byte  2000 tokens/s  ETA 0:00\n"));
}

TEST_CASE("examples: one line redrawn on a terminal, at most ten times a second, ended once") {
  std::ostringstream out;
  double now = 0;
  {
    example::progress progress(1'000'000, 16384, "images", out, true, [&] { return now; });
    for (std::size_t step = 1; step <= 1000; ++step) {
      now += 0.01;
      progress.update(step, "loss 7.500");
    }
  }
  const std::string text = out.str();
  const auto drawn = std::count(text.begin(), text.end(), '\r');
  CHECK(drawn >= 90);
  CHECK(drawn <= 101);
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
  CHECK(text.back() == '\n');
  CHECK(text.find("ETA 2:46:30") != std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line, '\r');)
    CHECK(line.size() <= 79 + 3 + 1);  // the clearing sequence, the last line end

  std::ostringstream whole;
  {
    example::progress progress(3, 1, "tokens", whole, true, [&] { return now; });
    for (std::size_t step = 1; step <= 3; ++step) progress.update(step, "loss 1.000 bits/byte");
  }
  const std::string redrawn = whole.str();
  CHECK(redrawn.find("[########################] 3/3  loss 1.000 bits/byte") != std::string::npos);
  CHECK(std::count(redrawn.begin(), redrawn.end(), '\n') == 1);
}

TEST_CASE("examples: what is no step is not in the steps' time") {
  std::ostringstream out;
  double now = 0;
  example::progress progress(4, 10, "tokens", out, false, [&] { return now; });
  for (std::size_t step = 1; step <= 4; ++step) {
    now += 2;
    progress.aside([&] { now += 30; });
    progress.update(step, "loss 1");
  }
  CHECK(progress.rate() == doctest::Approx(5));
}

TEST_CASE("examples: a run that ends before its first step draws nothing") {
  std::ostringstream out;
  {
    example::progress progress(3, 1, "tokens", out, true);
  }
  CHECK(out.str().empty());
}

}  // namespace
