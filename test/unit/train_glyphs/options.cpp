// SPDX-License-Identifier: Apache-2.0
// train_glyphs' command line: what it takes, and one sentence per mistake.
#include "../../../examples/train_glyphs/options.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace {

using train_glyphs::usage_error;

train_glyphs::options parse(std::initializer_list<const char*> words) {
  std::vector<const char*> argv{"train_glyphs"};
  argv.insert(argv.end(), words);
  return train_glyphs::parse_options(static_cast<int>(argv.size()), argv.data());
}

TEST_CASE("train_glyphs options: both spellings of a value, and defaults") {
  for (const auto& o :
       {parse({"--fonts", "a b", "--steps", "7", "--seed", "18446744073709551615", "--out", "x", "--allow-missing",
               "--plan-only"}),
        parse({"--fonts=a b", "--steps=7", "--seed=18446744073709551615", "--out=x", "--allow-missing", "--plan-only"})}) {
    CHECK(o.fonts == "a b");
    CHECK(o.steps == 7);
    CHECK(o.seed == 18446744073709551615u);
    CHECK(o.out == "x");
    CHECK(o.allow_missing);
    CHECK(o.plan_only);
    CHECK_FALSE(o.help);
  }
  const auto o = parse({});
  CHECK(o.fonts == "/usr/share/fonts");
  CHECK_FALSE(o.allow_missing);
  CHECK_FALSE(o.plan_only);
  CHECK(parse({"--help"}).help);
}

TEST_CASE("train_glyphs options: every mistake is a sentence") {
  CHECK_THROWS_WITH_AS(
      parse({"--step", "3"}),
      "unknown flag '--step', did you mean '--steps'? Accepted are --fonts, --allow-missing, --steps, --seed, "
      "--out, --plan-only, --help.",
      usage_error);
  CHECK_THROWS_WITH_AS(parse({"Roboto.ttf"}),
                       "unexpected argument 'Roboto.ttf': the folder of fonts is given as --fonts DIR.", usage_error);
  CHECK_THROWS_WITH_AS(parse({"--steps", "0"}), "--steps takes a whole number from 1 to 1000000, not '0'.", usage_error);
  CHECK_THROWS_WITH_AS(parse({"--fonts", "--steps", "5"}), "--fonts needs a value: --fonts DIR.", usage_error);
  CHECK_THROWS_WITH_AS(parse({"--allow-missing=yes"}), "--allow-missing takes no value.", usage_error);
}

TEST_CASE("train_glyphs options: help names every flag, with its default") {
  const std::string page = train_glyphs::usage();
  CHECK(page.starts_with("usage: train_glyphs [flags]\n"));
  for (const auto& f : train_glyphs::flags) CHECK(page.find("\n  " + std::string(f.name) + " ") != std::string::npos);
  CHECK(page.find("--steps N") != std::string::npos);
  CHECK(page.find("(default: " + std::to_string(train_glyphs::options{}.steps) + ")") != std::string::npos);
}

}  // namespace
