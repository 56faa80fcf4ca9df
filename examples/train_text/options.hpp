// SPDX-License-Identifier: Apache-2.0
// The command line of train_text: every mistake is one sentence that names the flag and what it takes.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "../common/flags.hpp"

namespace train_text {

using example::usage_error;

struct options {
  std::optional<std::filesystem::path> text;  // none: the headers of the installed C++ standard library
  std::size_t steps = 400;
  std::uint64_t seed = 1;
  std::filesystem::path out = "train_text-out";
  std::string backend = "threads";
  std::string parallel = "ddp+tp";
  std::string precision;  // empty: bf16 on GPUs, float32 on host threads
  int threads = 1;
  std::filesystem::path trace;  // empty: none is written
  std::filesystem::path save;   // empty: nothing is saved
  std::size_t save_every = 0;   // 0: at the end, and when a signal ends the run
  int keep = 2;
  std::size_t evaluate_every = 0;      // 0: at the end alone
  std::size_t patience = 0;            // 0: all steps are made
  std::filesystem::path resume;        // empty: from the beginning
  std::string program = "train_text";  // as it was started
  std::string generate;                // the text to go on from; empty: trains
  std::size_t new_tokens = 200;
  double temperature = 0.8;
  std::size_t top_k = 0;  // 0: of all
  bool cached = true;
  bool plan_only = false;
  bool help = false;
};

inline constexpr std::size_t most_steps = 1'000'000'000;
inline constexpr int most_threads = 128;
inline constexpr std::size_t most_new_tokens = 1'000'000;

inline constexpr std::array flags{
    example::flag{"--text", "FILE_OR_DIR", "the text to learn (default: the headers of the installed C++ standard library)"},
    example::flag{"--steps", "N", "optimizer steps"},
    example::flag{"--seed", "N", "seed of the split, of the initial weights and of the batches"},
    example::flag{"--out", "DIR", "folder for loss.csv, loss.svg and summary.json"},
    example::flag{
        "--backend", "NAME",
        "where the ranks run: threads of this process (threads), processes of mpirun (mpi), or one GPU each (cuda)"},
    example::flag{"--parallel", "NAME", "how the ranks share the work: ddp+tp, ddp, fsdp, hsdp, tp or fsdp+tp"},
    example::flag{"--precision", "NAME", "what the model computes in: bf16 (GPUs, there the default) or float32"},
    example::flag{"--threads", "N",
                  "threads that each rank on the host computes with; the losses are the same for any number (default: 1)"},
    example::flag{"--trace", "FILE",
                  "a timeline of a few steps for ui.perfetto.dev: every kernel and collective of every rank"},
    example::flag{"--evaluate-every", "N",
                  "the loss of held-out text every N steps, too: shown, and written to held_out.csv"},
    example::flag{"--patience", "K", "end when the held-out loss has not fallen for K evaluations in a row"},
    example::flag{"--save", "DIR",
                  "folder for checkpoints: at the end, and behind the step that SIGINT or SIGTERM finds under way"},
    example::flag{"--save-every", "N", "a checkpoint every N steps, too"},
    example::flag{"--keep", "N", "checkpoints that the folder keeps (default: 2)"},
    example::flag{"--resume", "DIR", "go on with the newest checkpoint in DIR, whatever --parallel saved it"},
    example::flag{
        "--generate", "TEXT",
        "go on from TEXT, and train nothing, with the newest checkpoint in --resume DIR (default: checkpoints in --out)"},
    example::flag{"--max-new-tokens", "N", "bytes that --generate adds"},
    example::flag{"--temperature", "T", "of --generate: bytes are drawn by logits / T; 0 takes the likeliest"},
    example::flag{"--top-k", "K", "of --generate: draws one of the K likeliest bytes (default: of all)"},
    example::flag{"--no-cache", "",
                  "of --generate: each byte by a run over all that came before, without a key/value cache"},
    example::flag{"--plan-only", "", "print the plan and exit"},
    example::flag{"--help", "", "print this text and exit"},
};

/// The text that --help prints.
inline std::string usage(const options& defaults = {}) {
  return example::usage_page("train_text", flags, [&](std::string_view name) -> std::string {
    if (name == "--steps") return std::to_string(defaults.steps);
    if (name == "--seed") return std::to_string(defaults.seed);
    if (name == "--out") return defaults.out.string();
    if (name == "--max-new-tokens") return std::to_string(defaults.new_tokens);
    if (name == "--temperature") {
      char digits[32];
      return {digits, std::to_chars(digits, digits + sizeof digits, defaults.temperature).ptr};
    }
    return "";
  });
}

inline double parse_temperature(std::string_view text) {
  double value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= 0 && value <= 100) return value;
  throw usage_error("--temperature takes a number from 0 to 100, not '" + std::string(text) + "'.");
}

/// The last of a repeated flag counts; throws usage_error.
inline options parse_options(int argc, const char* const* argv, options defaults = {}) {
  options result = std::move(defaults);
  std::vector<std::string_view> given;
  example::read_flags(
      argc, argv, flags, "a text is given as --text FILE_OR_DIR", [&](std::string_view name, std::string_view value) {
        given.push_back(name);
        if (name == "--plan-only") result.plan_only = true;
        if (name == "--help") result.help = true;
        if (name == "--generate") result.generate = value;
        if (name == "--no-cache") result.cached = false;
        if (name == "--max-new-tokens")
          result.new_tokens = example::parse_number<std::size_t>(name, value, 1, most_new_tokens);
        if (name == "--top-k") result.top_k = example::parse_number<std::size_t>(name, value, 1, 256);
        if (name == "--temperature") result.temperature = parse_temperature(value);
        if (name == "--text") result.text = value;
        if (name == "--out") result.out = value;
        if (name == "--trace") result.trace = value;
        if (name == "--save") result.save = value;
        if (name == "--resume") result.resume = value;
        if (name == "--save-every") result.save_every = example::parse_number<std::size_t>(name, value, 1, most_steps);
        if (name == "--evaluate-every")
          result.evaluate_every = example::parse_number<std::size_t>(name, value, 1, most_steps);
        if (name == "--patience") result.patience = example::parse_number<std::size_t>(name, value, 1, most_steps);
        if (name == "--keep") result.keep = example::parse_number<int>(name, value, 1, 1'000'000);
        if (name == "--steps") result.steps = example::parse_number<std::size_t>(name, value, 1, most_steps);
        if (name == "--seed")
          result.seed = example::parse_number<std::uint64_t>(name, value, 0, std::numeric_limits<std::uint64_t>::max());
        if (name == "--threads") result.threads = example::parse_number<int>(name, value, 1, most_threads);
        if (name == "--backend") {
          if (value != "threads" && value != "mpi" && value != "cuda")
            throw usage_error("--backend accepts threads, mpi and cuda, not '" + std::string(value) + "'.");
          result.backend = value;
        }
        if (name == "--precision") {
          if (value != "bf16" && value != "float32")
            throw usage_error("--precision accepts bf16 and float32, not '" + std::string(value) + "'.");
          result.precision = value;
        }
        if (name == "--parallel") {
          constexpr std::array<std::string_view, 6> known_plans{"ddp+tp", "ddp", "fsdp", "hsdp", "tp", "fsdp+tp"};
          if (std::find(known_plans.begin(), known_plans.end(), value) == known_plans.end())
            throw usage_error("--parallel accepts ddp+tp, ddp, fsdp, hsdp, tp and fsdp+tp, not '" + std::string(value) +
                              "'.");
          result.parallel = value;
        }
      });
  if (result.save_every > 0 && result.save.empty())
    throw usage_error("--save-every needs a folder to save into: --save DIR.");
  if (result.patience > 0 && result.evaluate_every == 0)
    throw usage_error("--patience counts evaluations: say how often there is one, with --evaluate-every N.");
  const bool generates = !result.generate.empty();
  for (const std::string_view name : given) {
    const auto among = [&](auto... names) { return (... || (name == names)); };
    if (generates && among("--text", "--steps", "--trace", "--evaluate-every", "--patience", "--save", "--save-every",
                           "--keep", "--plan-only"))
      throw usage_error("--generate trains nothing, so there is nothing for " + std::string(name) + ": leave it out.");
    if (!generates && among("--max-new-tokens", "--temperature", "--top-k", "--no-cache"))
      throw usage_error(std::string(name) + " is for --generate TEXT: give a text to go on from, or leave it out.");
  }
  if (result.threads > 1 && result.backend == "cuda")
    throw usage_error("--threads is for ranks on the host: leave it out, or take --backend threads.");
  return result;
}

}  // namespace train_text
