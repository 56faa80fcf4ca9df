// SPDX-License-Identifier: Apache-2.0
// The command line of train_glyphs: every mistake is one sentence that names the flag and what it takes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

#include "../common/flags.hpp"

namespace train_glyphs {

using example::usage_error;

struct options {
  std::filesystem::path fonts = "/usr/share/fonts";
  bool allow_missing = false;
  std::size_t steps = 1200;
  std::uint64_t seed = 1;
  std::filesystem::path out = "train_glyphs-out";
  bool plan_only = false;
  bool help = false;
};

inline constexpr std::size_t most_steps = 1'000'000;

inline constexpr std::array flags{
    example::flag{"--fonts", "DIR", "where the fonts are, in any folders below it"},
    example::flag{"--allow-missing", "",
                  "go on without the font families that are not there, as long as both parts have one"},
    example::flag{"--steps", "N", "optimizer steps"},
    example::flag{"--seed", "N",
                  "seed of the initial weights and of the training images; the held-out images are always the same"},
    example::flag{"--out", "DIR", "folder for mistakes.png, confusion.png, filters.png and summary.json"},
    example::flag{"--plan-only", "", "print the plan and exit"},
    example::flag{"--help", "", "print this text and exit"},
};

/// The text that --help prints.
inline std::string usage(const options& defaults = {}) {
  return example::usage_page("train_glyphs", flags, [&](std::string_view name) -> std::string {
    if (name == "--fonts") return defaults.fonts.string();
    if (name == "--steps") return std::to_string(defaults.steps);
    if (name == "--seed") return std::to_string(defaults.seed);
    if (name == "--out") return defaults.out.string();
    return "";
  });
}

/// The last of a repeated flag counts; throws usage_error.
inline options parse_options(int argc, const char* const* argv) {
  options result;
  example::read_flags(
      argc, argv, flags, "the folder of fonts is given as --fonts DIR", [&](std::string_view name, std::string_view value) {
        if (name == "--fonts") result.fonts = value;
        if (name == "--allow-missing") result.allow_missing = true;
        if (name == "--steps") result.steps = example::parse_number<std::size_t>(name, value, 1, most_steps);
        if (name == "--seed")
          result.seed = example::parse_number<std::uint64_t>(name, value, 0, std::numeric_limits<std::uint64_t>::max());
        if (name == "--out") result.out = value;
        if (name == "--plan-only") result.plan_only = true;
        if (name == "--help") result.help = true;
      });
  return result;
}

}  // namespace train_glyphs
