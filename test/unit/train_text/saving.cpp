// SPDX-License-Identifier: Apache-2.0
// What train_text says of a run that it goes on with: the command, which a shell reads as it is meant, and what does not fit.
#include <train_text/saving.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

using train_text::options;
using train_text::usage_error;

TEST_CASE("train_text saving: the command that goes on") {
  options o;
  o.program = "./my program";
  o.text = "it's";
  o.steps = 7;
  o.seed = 3;
  o.save = "saved";
  o.save_every = 2;
  o.threads = 2;
  o.evaluate_every = 5;
  o.patience = 4;
  o.resume = "elsewhere";
  CHECK(train_text::resuming_command(o) ==
        "'./my program' --text 'it'\\''s' --steps 7 --seed 3 --out train_text-out --backend threads --parallel ddp+tp "
        "--evaluate-every 5 --patience 4 --threads 2 "
        "--save saved --save-every 2 --keep 2 --resume saved");
  CHECK(train_text::quoted("") == "''");
}

TEST_CASE("train_text saving: early stopping goes on where it was") {
  example::early_stopping e{.patience = 3};
  CHECK(train_text::resumed(e, train_text::with({}, e)).best == e.best);  // nothing was evaluated
  for (const double loss : {5., 4., 6.}) (void)e.after(loss);
  const auto again = train_text::resumed({.patience = 7}, train_text::with({.step = 9}, e));
  CHECK(again.patience == 7);
  CHECK(again.best == 4);
  CHECK(again.since_best == 1);
  CHECK(train_text::with({.step = 9}, {}) ==
        shardwise::checkpoint_position{.step = 9});  // a run without it says nothing of it
}

TEST_CASE("train_text saving: what a run must have in common with the one it goes on with") {
  const std::vector<std::uint8_t> text{1, 2, 3}, other{1, 2, 4};
  options o;
  o.steps = 10;
  o.resume = "r";
  const auto saved = train_text::position_at(o, 4, text);
  CHECK(train_text::check_resumed(o, saved, text).empty());
  CHECK_THROWS_WITH_AS(train_text::check_resumed(o, saved, other),
                       "the run in 'r' was trained on another text: give the same --text.", usage_error);
  o.steps = 20;
  CHECK(train_text::check_resumed(o, saved, text) ==
        "the learning rate follows --steps 20 from here on; it followed 10 before.\n");
  o.steps = 4;
  CHECK_THROWS_WITH_AS(train_text::check_resumed(o, saved, text), "the run in 'r' has made 4 steps: give more with --steps.",
                       usage_error);
  o.steps = 10;
  o.seed = 2;
  CHECK_THROWS_WITH_AS(train_text::check_resumed(o, saved, text),
                       "--seed is 2, and the run in 'r' has seed 1: give --seed 1.", usage_error);
}

}  // namespace
