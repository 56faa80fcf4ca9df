// SPDX-License-Identifier: Apache-2.0
// Command lines of the example programs: a table of flags, and one sentence for every mistake, with the flag and what it takes.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace example {

/// A mistake of the person who started the program: `what()` is one sentence, and main ends with exit code 2.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct flag {
  std::string_view name;
  std::string_view value;  // empty: the flag is a switch
  std::string_view meaning;
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

[[noreturn]] inline void reject_flag(std::span<const flag> flags, std::string_view given) {
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

/// Reads `--flag value` and `--flag=value` and calls each(name, value), of a switch with an empty value; throws usage_error. `hint`
/// follows the sentence about a word that is no flag.
template <class Each>
void read_flags(int argc, const char* const* argv, std::span<const flag> flags, std::string_view hint, Each&& each) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with("-"))
      throw usage_error("unexpected argument '" + std::string(word) + "': " + std::string(hint) + ".");

    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const auto known = std::find_if(flags.begin(), flags.end(), [&](const auto& f) { return f.name == name; });
    if (known == flags.end()) reject_flag(flags, name);

    if (known->value.empty()) {
      if (equals != word.npos) throw usage_error(std::string(name) + " takes no value.");
      each(name, std::string_view{});
      continue;
    }

    std::string_view value = equals == word.npos ? std::string_view{} : word.substr(equals + 1);
    // A following flag is not a value: `--out --steps 5` forgot the folder. Such a path is written --out=--odd.
    if (equals == word.npos && i + 1 < argc && !std::string_view(argv[i + 1]).starts_with("--")) value = argv[++i];
    if (value.empty())
      throw usage_error(std::string(name) + " needs a value: " + std::string(name) + " " + std::string(known->value) + ".");
    each(name, value);
  }
}

/// The text that --help prints; default_of(name) is what stands behind a flag's meaning, or empty.
template <class DefaultOf>
std::string usage_page(std::string_view program, std::span<const flag> flags, DefaultOf&& default_of) {
  std::string page = "usage: " + std::string(program) + " [flags]\n\n";
  for (const auto& f : flags) {
    std::string head = "  " + std::string(f.name) + (f.value.empty() ? "" : " " + std::string(f.value));
    head.resize(std::max<std::size_t>(head.size() + 2, 22), ' ');
    page += head + std::string(f.meaning);
    if (const std::string value = default_of(f.name); !value.empty()) page += " (default: " + value + ")";
    page += '\n';
  }
  return page;
}

}  // namespace example
