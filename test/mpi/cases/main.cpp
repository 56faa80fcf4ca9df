// SPDX-License-Identifier: Apache-2.0
// Runs tests of threads over processes (test/support/by_processes.hpp): those that the file SHARDWISE_TEST_CASES names, a line each, or all.
// What becomes of each goes to the file SHARDWISE_TEST_VERDICTS: "began", then "passed", "failed", or "needs" where a mesh has more ranks than
// there are processes; the ranks of its largest mesh, how often it has launched, its name. cases.py starts it.

#define DOCTEST_CONFIG_IMPLEMENT
#define DOCTEST_CONFIG_NO_POSIX_SIGNALS  // whatever ends one process must end it at once, and with it the run
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include <by_processes.hpp>

namespace {

namespace tp = test::processes;

// All processes' verdict on a case, which comes to an end when all have it.
struct verdicts : doctest::IReporter {
  std::string name;
  const std::string path = std::getenv("SHARDWISE_TEST_VERDICTS") ? std::getenv("SHARDWISE_TEST_VERDICTS") : "";

  explicit verdicts(const doctest::ContextOptions&) {}
  void test_case_start(const doctest::TestCaseData& c) override {
    name = c.m_name;
    tp::of_case() = {};
    if (tp::number() == 0 && !path.empty()) std::ofstream(path, std::ios::app) << "began 0 0 " << name << '\n';
  }
  void test_case_end(const doctest::CurrentTestCaseStats& s) override {
    int failed = s.testCaseSuccess ? 0 : 1, any = 0;
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, tp::all());
    if (tp::number() != 0 || path.empty()) return;
    const tp::launches l = tp::of_case();
    std::ofstream(path, std::ios::app) << (l.largest > tp::count() ? "needs"
                                           : any                   ? "failed"
                                                                   : "passed")
                                       << ' ' << l.largest << ' ' << l.made << ' ' << name << '\n';
  }
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
DOCTEST_REGISTER_LISTENER("verdicts", 1, verdicts);

}  // namespace

int main(int argc, char** argv) {
  shardwise::mpi::start();
  doctest::Context context(argc, argv);
  if (const char* const names = std::getenv("SHARDWISE_TEST_CASES")) {
    std::ifstream file(names);
    for (std::string line; std::getline(file, line);) {
      std::string pattern;
      for (const char c : line) pattern += c == '\\' || c == ',' ? std::string{'\\', c} : std::string{c};
      context.addFilter("test-case", pattern.c_str());
    }
  }
  return context.run();
}
