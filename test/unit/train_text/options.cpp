// SPDX-License-Identifier: Apache-2.0
// train_text's command line: both spellings of a value, and one sentence per mistake.
#include "../../../examples/train_text/options.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace {

using train_text::usage_error;

train_text::options parse(std::initializer_list<const char*> words) {
  std::vector<const char*> argv{"train_text"};
  argv.insert(argv.end(), words);
  return train_text::parse_options(static_cast<int>(argv.size()), argv.data());
}

TEST_CASE("train_text options: both spellings of a value") {
  for (const auto& o : {parse({"--text", "a b", "--steps", "7", "--seed", "18446744073709551615", "--out", "x", "--backend",
                               "threads", "--trace", "t.json", "--precision", "float32", "--plan-only"}),
                        parse({"--text=a b", "--steps=7", "--seed=18446744073709551615", "--out=x", "--backend=threads",
                               "--trace=t.json", "--precision=float32", "--plan-only"})}) {
    CHECK(o.text == "a b");
    CHECK(o.steps == 7);
    CHECK(o.seed == 18446744073709551615u);
    CHECK(o.out == "x");
    CHECK(o.backend == "threads");
    CHECK(o.trace == "t.json");
    CHECK(o.precision == "float32");
    CHECK(o.plan_only);
    CHECK_FALSE(o.help);
  }
  CHECK(parse({"--text=--odd=name"}).text == "--odd=name");
  CHECK(parse({"--steps", "3", "--steps", "4"}).steps == 4);
}

TEST_CASE("train_text options: what is not given keeps its default") {
  const auto o = parse({});
  CHECK_FALSE(o.text);
  CHECK(o.steps == train_text::options{}.steps);
  CHECK_FALSE(o.plan_only);
  const char* argv[] = {"train_text", "--help"};
  train_text::options defaults;
  defaults.steps = 12;
  CHECK(train_text::parse_options(2, argv, defaults).steps == 12);
  CHECK(train_text::parse_options(2, argv, defaults).help);
}

TEST_CASE("train_text options: an unknown flag is named, with the nearest and all accepted ones") {
  CHECK_THROWS_WITH_AS(
      parse({"--step", "3"}),
      "unknown flag '--step', did you mean '--steps'? Accepted are --text, --steps, --seed, --out, "
      "--backend, --parallel, --precision, --threads, --trace, --evaluate-every, --patience, --save, --save-every, --keep, --resume, --generate, --max-new-tokens, --temperature, --top-k, --no-cache, --plan-only, --help.",
      usage_error);
  CHECK_THROWS_WITH_AS(
      parse({"--mesh=2x2"}),
      "unknown flag '--mesh'; accepted are --text, --steps, --seed, --out, --backend, --parallel, --precision, --threads, --trace, --evaluate-every, --patience, --save, --save-every, "
      "--keep, --resume, --generate, --max-new-tokens, --temperature, --top-k, --no-cache, --plan-only, --help.",
      usage_error);
  CHECK_THROWS_WITH_AS(parse({"--"}), doctest::Contains("unknown flag '--'"), usage_error);
  CHECK_THROWS_WITH_AS(parse({"-h"}), doctest::Contains("unknown flag '-h'"), usage_error);
}

TEST_CASE("train_text options: a bad number is quoted with the range") {
  for (const char* bad : {"0", "-1", "+3", "3x", "x", " 3", "1e3", "2.5", "1000000001", "99999999999999999999999"}) {
    CAPTURE(bad);
    CHECK_THROWS_WITH_AS(parse({"--steps", bad}),
                         ("--steps takes a whole number from 1 to 1000000000, not '" + std::string(bad) + "'.").c_str(),
                         usage_error);
  }
  CHECK(parse({"--seed=0"}).seed == 0);
  CHECK_THROWS_WITH_AS(parse({"--seed", "-1"}), "--seed takes a whole number from 0 to 18446744073709551615, not '-1'.",
                       usage_error);
  CHECK_THROWS_AS(parse({"--seed=18446744073709551616"}), usage_error);
}

TEST_CASE("train_text options: missing, unwanted and unexpected values") {
  CHECK_THROWS_WITH_AS(parse({"--text"}), "--text needs a value: --text FILE_OR_DIR.", usage_error);
  CHECK_THROWS_WITH_AS(parse({"--text="}), "--text needs a value: --text FILE_OR_DIR.", usage_error);
  CHECK_THROWS_WITH_AS(parse({"--text", "--steps", "5"}), "--text needs a value: --text FILE_OR_DIR.", usage_error);
  CHECK_THROWS_WITH_AS(parse({"--out", ""}), "--out needs a value: --out DIR.", usage_error);
  CHECK_THROWS_WITH_AS(parse({"--plan-only=yes"}), "--plan-only takes no value.", usage_error);
  CHECK_THROWS_WITH_AS(parse({"book.txt"}), "unexpected argument 'book.txt': a text is given as --text FILE_OR_DIR.",
                       usage_error);
  CHECK_THROWS_WITH_AS(parse({"--precision", "fp8"}), "--precision accepts bf16 and float32, not 'fp8'.", usage_error);
  CHECK_THROWS_WITH_AS(parse({"--backend", "abacus"}), "--backend accepts threads, mpi and cuda, not 'abacus'.",
                       usage_error);
  CHECK_THROWS_WITH_AS(parse({"--parallel", "pipeline"}),
                       "--parallel accepts ddp+tp, ddp, fsdp, hsdp, tp and fsdp+tp, not 'pipeline'.", usage_error);
  CHECK(parse({"--parallel", "fsdp"}).parallel == "fsdp");
}

TEST_CASE("train_text options: threads of a rank are counted, within bounds, and on the host alone") {
  CHECK(parse({}).threads == 1);
  CHECK(parse({"--threads=3"}).threads == 3);
  for (const char* bad : {"0", "-2", "129", "two"}) {
    CAPTURE(bad);
    CHECK_THROWS_WITH_AS(parse({"--threads", bad}),
                         ("--threads takes a whole number from 1 to 128, not '" + std::string(bad) + "'.").c_str(),
                         usage_error);
  }
  CHECK_THROWS_WITH_AS(parse({"--threads", "2", "--backend", "cuda"}),
                       "--threads is for ranks on the host: leave it out, or take --backend threads.", usage_error);
}

TEST_CASE("train_text options: checkpoints") {
  const auto o = parse({"--save", "a b", "--save-every=20", "--keep", "3", "--resume", "c"});
  CHECK(o.save == "a b");
  CHECK(o.save_every == 20);
  CHECK(o.keep == 3);
  CHECK(o.resume == "c");
  CHECK(parse({}).save.empty());
  CHECK_THROWS_WITH_AS(parse({"--save-every", "5"}), "--save-every needs a folder to save into: --save DIR.", usage_error);
  CHECK_THROWS_WITH_AS(parse({"--save", "a", "--keep", "0"}), "--keep takes a whole number from 1 to 1000000, not '0'.",
                       usage_error);
  CHECK_THROWS_WITH_AS(parse({"--resume"}), "--resume needs a value: --resume DIR.", usage_error);
}

TEST_CASE("train_text options: evaluation during training") {
  const auto o = parse({"--evaluate-every", "50", "--patience=3"});
  CHECK(o.evaluate_every == 50);
  CHECK(o.patience == 3);
  CHECK(parse({}).evaluate_every == 0);
  CHECK_THROWS_WITH_AS(parse({"--patience", "3"}),
                       "--patience counts evaluations: say how often there is one, with --evaluate-every N.", usage_error);
  CHECK_THROWS_WITH_AS(parse({"--evaluate-every", "0"}),
                       "--evaluate-every takes a whole number from 1 to 1000000000, not '0'.", usage_error);
}

TEST_CASE("train_text options: generating") {
  const auto o = parse({"--generate=-- x", "--max-new-tokens", "7", "--temperature", "0.25", "--top-k", "3", "--no-cache"});
  CHECK(o.generate == "-- x");
  CHECK(o.new_tokens == 7);
  CHECK(o.temperature == 0.25);
  CHECK(o.top_k == 3);
  CHECK(!o.cached);
  CHECK(parse({}).generate.empty());
  CHECK(parse({}).cached);
  CHECK(parse({"--generate", "x", "--temperature", "0"}).temperature == 0);
  for (const char* bad : {"-1", "nan", "1e3", "1x", "warm"}) {
    CAPTURE(bad);
    CHECK_THROWS_WITH_AS(parse({"--temperature", bad}),
                         ("--temperature takes a number from 0 to 100, not '" + std::string(bad) + "'.").c_str(),
                         usage_error);
  }
  CHECK_THROWS_WITH_AS(parse({"--top-k", "0"}), "--top-k takes a whole number from 1 to 256, not '0'.", usage_error);
  for (const char* of_training : {"--text", "--steps", "--trace", "--save", "--keep", "--evaluate-every"}) {
    CAPTURE(of_training);
    CHECK_THROWS_WITH_AS(
        parse({"--generate", "x", of_training, "3"}),
        ("--generate trains nothing, so there is nothing for " + std::string(of_training) + ": leave it out.").c_str(),
        usage_error);
  }
  CHECK_THROWS_WITH_AS(parse({"--top-k", "3"}),
                       "--top-k is for --generate TEXT: give a text to go on from, or leave it out.", usage_error);
}

TEST_CASE("train_text options: the help page names every flag") {
  const std::string page = train_text::usage();
  for (const auto& f : train_text::flags) CHECK(page.find(f.name) != std::string::npos);
}

}  // namespace
