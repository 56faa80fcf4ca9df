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
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace train_text {

/// A mistake of the person who started the program: `what()` is one sentence, and main ends with exit code 2.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

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
  std::filesystem::path resume;        // empty: from the beginning
  std::string program = "train_text";  // as it was started
  bool plan_only = false;
  bool help = false;
};

inline constexpr std::size_t most_steps = 1'000'000'000;
inline constexpr int most_threads = 128;

namespace detail {

struct flag {
  std::string_view name;
  std::string_view value;  // empty: the flag is a switch
  std::string_view meaning;
};

inline constexpr std::array flags{
    flag{"--text", "FILE_OR_DIR", "the text to learn (default: the headers of the installed C++ standard library)"},
    flag{"--steps", "N", "optimizer steps"},
    flag{"--seed", "N", "seed of the split, of the initial weights and of the batches"},
    flag{"--out", "DIR", "folder for loss.csv, loss.svg and summary.json"},
    flag{"--backend", "NAME",
         "where the ranks run: threads of this process (threads), processes of mpirun (mpi), or one GPU each (cuda)"},
    flag{"--parallel", "NAME", "how the ranks share the work: ddp+tp, ddp, fsdp, hsdp, tp or fsdp+tp"},
    flag{"--precision", "NAME", "what the model computes in: bf16 (GPUs, there the default) or float32"},
    flag{"--threads", "N",
         "threads that each rank on the host computes with; the losses are the same for any number (default: 1)"},
    flag{"--trace", "FILE", "a timeline of a few steps for ui.perfetto.dev: every kernel and collective of every rank"},
    flag{"--save", "DIR", "folder for checkpoints: at the end, and behind the step that SIGINT or SIGTERM finds under way"},
    flag{"--save-every", "N", "a checkpoint every N steps, too"},
    flag{"--keep", "N", "checkpoints that the folder keeps (default: 2)"},
    flag{"--resume", "DIR", "go on with the newest checkpoint in DIR, whatever --parallel saved it"},
    flag{"--plan-only", "", "print the plan and exit"},
    flag{"--help", "", "print this text and exit"},
};

/// Levenshtein distance, for "did you mean".
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

[[noreturn]] inline void reject_flag(std::string_view given) {
  std::string accepted;
  for (const auto& f : flags) accepted += (accepted.empty() ? "" : ", ") + std::string(f.name);
  const auto distance = [&](const flag& f) { return edit_distance(given, f.name); };
  const auto nearest =
      std::min_element(flags.begin(), flags.end(), [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
  // Beyond a third of the name, a guess misleads more often than it helps.
  const bool close = 3 * distance(*nearest) <= nearest->name.size();
  throw usage_error("unknown flag '" + std::string(given) + "'" +
                    (close ? ", did you mean '" + std::string(nearest->name) + "'?" : "") +
                    (close ? " Accepted" : "; accepted") + " are " + accepted + ".");
}

template <class Integer>
Integer parse_number(std::string_view name, std::string_view text, Integer least, Integer most) {
  Integer value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (whole && least <= value && value <= most) return value;
  throw usage_error(std::string(name) + " takes a whole number from " + std::to_string(least) + " to " +
                    std::to_string(most) + ", not '" + std::string(text) + "'.");
}

}  // namespace detail

/// The text that --help prints.
inline std::string usage(const options& defaults = {}) {
  std::string page = "usage: train_text [flags]\n\n";
  for (const auto& f : detail::flags) {
    std::string head = "  " + std::string(f.name) + (f.value.empty() ? "" : " " + std::string(f.value));
    head.resize(std::max<std::size_t>(head.size() + 2, 22), ' ');
    page += head + std::string(f.meaning);
    if (f.name == "--steps") page += " (default: " + std::to_string(defaults.steps) + ")";
    if (f.name == "--seed") page += " (default: " + std::to_string(defaults.seed) + ")";
    if (f.name == "--out") page += " (default: " + defaults.out.string() + ")";
    page += '\n';
  }
  return page;
}

/// Reads `--flag value` and `--flag=value`; the last of a repeated flag counts; throws usage_error.
inline options parse_options(int argc, const char* const* argv, options defaults = {}) {
  options result = std::move(defaults);
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with("-"))
      throw usage_error("unexpected argument '" + std::string(word) + "': a text is given as --text FILE_OR_DIR.");

    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const auto known =
        std::find_if(detail::flags.begin(), detail::flags.end(), [&](const auto& f) { return f.name == name; });
    if (known == detail::flags.end()) detail::reject_flag(name);

    if (known->value.empty()) {
      if (equals != word.npos) throw usage_error(std::string(name) + " takes no value.");
      if (name == "--plan-only") result.plan_only = true;
      if (name == "--help") result.help = true;
      continue;
    }

    std::string_view value = equals == word.npos ? std::string_view{} : word.substr(equals + 1);
    // A following flag is not a value: `--text --steps 5` forgot the text. Such a path is written --text=--odd.
    if (equals == word.npos && i + 1 < argc && !std::string_view(argv[i + 1]).starts_with("--")) value = argv[++i];
    if (value.empty())
      throw usage_error(std::string(name) + " needs a value: " + std::string(name) + " " + std::string(known->value) + ".");

    if (name == "--text") result.text = value;
    if (name == "--out") result.out = value;
    if (name == "--trace") result.trace = value;
    if (name == "--save") result.save = value;
    if (name == "--resume") result.resume = value;
    if (name == "--save-every") result.save_every = detail::parse_number<std::size_t>(name, value, 1, most_steps);
    if (name == "--keep") result.keep = detail::parse_number<int>(name, value, 1, 1'000'000);
    if (name == "--steps") result.steps = detail::parse_number<std::size_t>(name, value, 1, most_steps);
    if (name == "--seed")
      result.seed = detail::parse_number<std::uint64_t>(name, value, 0, std::numeric_limits<std::uint64_t>::max());
    if (name == "--threads") result.threads = detail::parse_number<int>(name, value, 1, most_threads);
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
        throw usage_error("--parallel accepts ddp+tp, ddp, fsdp, hsdp, tp and fsdp+tp, not '" + std::string(value) + "'.");
      result.parallel = value;
    }
  }
  if (result.save_every > 0 && result.save.empty())
    throw usage_error("--save-every needs a folder to save into: --save DIR.");
  if (result.threads > 1 && result.backend == "cuda")
    throw usage_error("--threads is for ranks on the host: leave it out, or take --backend threads.");
  return result;
}

}  // namespace train_text
