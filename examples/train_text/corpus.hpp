// SPDX-License-Identifier: Apache-2.0
// Text to bytes: finds the files, and holds out whole ones that have no near-duplicate among those trained on.
#pragma once

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include "options.hpp"  // usage_error

namespace train_text {

using byte_vector = std::vector<std::uint8_t>;

struct text_file {
  std::string name;  // relative to the folder it was found in
  std::string bytes;
};

struct corpus {
  byte_vector train, held_out;  // files joined by one 0 byte, which no text holds
  std::vector<std::string> train_files, held_out_files;
  std::size_t dropped_duplicates = 0;  // byte-equal files; for a single file, blocks of its end that repeat its beginning
  std::size_t skipped_files = 0;       // unreadable, binary, or nothing but comments
  std::string source;                  // the file or folder
};

// Near-duplicates ---------------------------------------------------------------------------------------------------

inline constexpr std::size_t shingle_bytes = 16;
/// One shingle in four is kept, chosen by its hash, so that two texts keep the same ones of those they share.
inline constexpr std::uint64_t shingle_sampling = 4;
/// A near-duplicate is commonly put at similarity 0.3 or containment 0.5; the rest is room for the sample's error.
inline constexpr double most_similarity = 0.25;
inline constexpr double most_containment = 0.4;

/// The sampled hashes of a text's shingles, sorted and unique.
using shingle_set = std::vector<std::uint64_t>;

inline shingle_set shingles_of(std::string_view text) {
  const auto mixed = [](std::uint64_t x) {  // the finalizer of splitmix64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  };
  shingle_set kept;
  for (std::size_t i = 0; i + shingle_bytes <= text.size(); ++i) {
    std::uint64_t half[2];
    std::memcpy(half, text.data() + i, shingle_bytes);
    const std::uint64_t hash = mixed(mixed(half[0] + 1) + half[1]);
    if (hash % shingle_sampling == 0) kept.push_back(hash);
  }
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  return kept;
}

inline std::size_t shared_shingles(const shingle_set& a, const shingle_set& b) {
  std::size_t shared = 0;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    if (*i == *j) ++shared, ++i, ++j;
    else if (*i < *j) ++i;
    else ++j;
  }
  return shared;
}

/// Jaccard similarity, or containment of either text in the other, above its bound; `shared` of `a` and `b` shingles.
constexpr bool near_duplicate(std::size_t a, std::size_t b, std::size_t shared) {
  const auto common = static_cast<double>(shared);
  return common > most_similarity * static_cast<double>(a + b - shared) ||
         common > most_containment * static_cast<double>(std::min(a, b));
}

/// The law of the split: no held-out file is a near-duplicate of a training file. Compares every pair, for tests.
inline bool holds_out_cleanly(std::span<const text_file> train, std::span<const text_file> held_out) {
  std::vector<shingle_set> seen;
  for (const auto& file : train) seen.push_back(shingles_of(file.bytes));
  return std::none_of(held_out.begin(), held_out.end(), [&](const text_file& file) {
    const shingle_set mine = shingles_of(file.bytes);
    return std::any_of(seen.begin(), seen.end(), [&](const shingle_set& other) {
      return near_duplicate(mine.size(), other.size(), shared_shingles(mine, other));
    });
  });
}

/// Answers "which files are near-duplicates of this one" from an inverted index, without comparing every pair.
class near_duplicate_index {
 public:
  explicit near_duplicate_index(std::span<const text_file> files)
      : sizes_(files.size()), runs_(files.size()), shared_(files.size()) {
    for (std::uint32_t f = 0; f < files.size(); ++f) {
      const shingle_set set = shingles_of(files[f].bytes);
      sizes_[f] = set.size();
      for (const std::uint64_t hash : set) postings_.push_back({hash, f});
    }
    std::sort(postings_.begin(), postings_.end());
    for (std::size_t begin = 0, end = 0; begin < postings_.size(); begin = end) {
      while (end < postings_.size() && postings_[end].first == postings_[begin].first) ++end;
      if (end - begin < 2) continue;  // most shingles occur in one file only
      for (std::size_t p = begin; p < end; ++p) runs_[postings_[p].second].push_back({begin, end});
    }
  }

  std::vector<std::size_t> duplicates_of(std::size_t file) {
    std::vector<std::size_t> found;
    for (const auto& [begin, end] : runs_[file])
      for (std::size_t p = begin; p < end; ++p)
        if (const std::size_t other = postings_[p].second; other != file && shared_[other]++ == 0) found.push_back(other);
    std::erase_if(found, [&](std::size_t other) {
      return !near_duplicate(sizes_[file], sizes_[other], std::exchange(shared_[other], 0));
    });
    return found;
  }

 private:
  std::vector<std::size_t> sizes_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> postings_;       // hash, file; sorted
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> runs_;  // per file: its stretches of postings_
  std::vector<std::size_t> shared_;                                     // scratch, zero between calls
};

// The split ---------------------------------------------------------------------------------------------------------

/// For each file, whether it is held out: 6 to 8 percent of the bytes where the files allow it. Files linked by
/// near-duplication, directly or through others, stay together, which makes the law hold by construction.
inline std::vector<bool> hold_out(std::span<const text_file> files, std::uint64_t seed) {
  std::size_t total = 0;
  for (const auto& file : files) total += file.bytes.size();

  std::vector<std::size_t> order(files.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random(seed);
  // std::shuffle's use of the generator differs between libraries; the split should not.
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);

  near_duplicate_index index(files);
  std::vector<bool> held(files.size());
  std::size_t held_bytes = 0;
  // Adds whole clusters until `enough` is held out, each of at most `largest`, together at most `most` of the text.
  const auto fill = [&](double enough, double most, double largest) {
    std::vector<bool> seen = held;
    for (const std::size_t first : order) {
      if (static_cast<double>(held_bytes) >= enough * static_cast<double>(total)) return;
      if (seen[first]) continue;
      std::vector<std::size_t> cluster{first};
      seen[first] = true;
      std::size_t bytes = 0;
      bool fits = true;
      for (std::size_t i = 0; fits && i < cluster.size(); ++i) {
        bytes += files[cluster[i]].bytes.size();
        fits = static_cast<double>(bytes) <= largest * static_cast<double>(total) &&
               static_cast<double>(held_bytes + bytes) <= most * static_cast<double>(total);
        for (const std::size_t other : index.duplicates_of(cluster[i])) {
          if (std::find(cluster.begin(), cluster.end(), other) != cluster.end()) continue;
          fits = fits && !seen[other];  // part of a cluster that was found too large
          seen[other] = true;
          cluster.push_back(other);
        }
      }
      if (!fits) continue;
      for (const std::size_t file : cluster) held[file] = true;
      held_bytes += bytes;
    }
  };
  fill(0.06, 0.08, 0.01);  // many small clusters: one family of files is no fair sample
  fill(0.05, 0.08, 0.08);
  if (held_bytes == 0) fill(1e-9, 0.5, 0.5);  // few files: one cluster, as long as half is left to train on
  return held;
}

// Files -------------------------------------------------------------------------------------------------------------

/// The text after the comments and blank lines at its top: a licence repeated in every file teaches nothing.
inline std::string_view without_leading_comments(std::string_view text) {
  for (;;) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n\f\v");
    if (begin == text.npos) return {};
    const std::string_view rest = text.substr(begin);
    const bool block = rest.starts_with("/*");
    if (!block && !rest.starts_with("//")) break;
    const std::size_t end = block ? rest.find("*/", 2) : rest.find('\n');
    if (end == rest.npos) return {};
    text = rest.substr(end + (block ? 2 : 1));
  }
  // Keep the indentation of the first line that stays.
  const std::size_t begin = text.find_first_not_of(" \t\r\n\f\v");
  const std::size_t line = text.substr(0, begin).rfind('\n');
  return text.substr(line == text.npos ? 0 : line + 1);
}

namespace detail {

struct read_result {
  std::string bytes;
  std::error_code error;
};

inline read_result read_file(const std::filesystem::path& path) {
  const auto last_error = [] { return std::error_code(errno, std::generic_category()); };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) return {{}, last_error()};
  read_result result;
  char buffer[1 << 16];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, file.get())) result.bytes.append(buffer, got);
  if (std::ferror(file.get())) return {{}, last_error()};
  return result;
}

inline void append(byte_vector& joined, std::string_view text) {
  if (!joined.empty()) joined.push_back(0);
  joined.insert(joined.end(), text.begin(), text.end());
}

/// Every regular file below `folder`, sorted by name so that the split does not depend on the file system. Links to
/// folders are not followed (they may form a cycle); a link to a file counts as that file.
inline std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<fs::path> found;
  const fs::directory_iterator readable(folder, error);  // below, a folder without permission counts as empty
  fs::recursive_directory_iterator entry;
  if (!error) entry = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, error);
  if (error) throw usage_error("cannot read the folder '" + folder.string() + "': " + error.message() + ".");
  for (const fs::recursive_directory_iterator end; entry != end; entry.increment(error)) {
    std::error_code unknown;
    if (entry->is_regular_file(unknown)) found.push_back(entry->path());
  }
  if (error) throw usage_error("cannot read the folder '" + folder.string() + "' to its end: " + error.message() + ".");
  std::sort(found.begin(), found.end());
  return found;
}

inline corpus load_folder(const std::filesystem::path& folder, std::uint64_t seed) {
  corpus result;
  result.source = folder.string();
  std::vector<text_file> files;
  std::unordered_set<std::string> seen;
  std::string unreadable;
  for (const auto& path : files_below(folder)) {
    read_result read = read_file(path);
    if (read.error && unreadable.empty()) unreadable = path.string() + ": " + read.error.message();
    const bool text = !read.error && read.bytes.find('\0') == std::string::npos;
    std::string bytes(text ? without_leading_comments(read.bytes) : std::string_view{});
    if (bytes.empty()) ++result.skipped_files;
    else if (!seen.insert(bytes).second) ++result.dropped_duplicates;
    else files.push_back({path.lexically_relative(folder).generic_string(), std::move(bytes)});
  }
  if (files.empty())
    throw usage_error("the folder '" + folder.string() + "' holds no text" +
                      (unreadable.empty() ? "" : " that can be read (" + unreadable + ")") + ".");
  if (files.size() == 1)
    throw usage_error("the folder '" + folder.string() + "' holds one text only, '" + files.front().name +
                      "', so none can be held out; name the file itself to hold out its end.");

  const std::vector<bool> held = hold_out(files, seed);
  if (std::find(held.begin(), held.end(), true) == held.end())
    throw usage_error("no file in '" + folder.string() +
                      "' can be held out: more than half of the text is near-duplicates of one another.");
  for (std::size_t i = 0; i < files.size(); ++i) {
    append(held[i] ? result.held_out : result.train, files[i].bytes);
    (held[i] ? result.held_out_files : result.train_files).push_back(std::move(files[i].name));
  }
  return result;
}

/// One file has no whole files to hold out: its last tenth is, less the blocks of whole lines that repeat what is
/// trained on (by the containment bound above, against the whole of the training part).
inline corpus load_single(const std::filesystem::path& path) {
  const read_result read = read_file(path);
  if (read.error) throw usage_error("cannot read the text '" + path.string() + "': " + read.error.message() + ".");
  if (read.bytes.empty()) throw usage_error("the text '" + path.string() + "' is empty.");
  if (read.bytes.find('\0') != std::string::npos)
    throw usage_error("'" + path.string() + "' is not text: it holds a 0 byte.");
  const std::string_view text = without_leading_comments(read.bytes);
  if (text.empty()) throw usage_error("the text '" + path.string() + "' holds nothing but comments.");

  constexpr std::size_t block_bytes = 1024;
  const auto line_end = [&](std::size_t from) {  // a text without line ends is cut anywhere
    const std::size_t end = text.substr(0, std::min(text.size(), from + block_bytes)).find('\n', from);
    return end == text.npos ? std::min(from, text.size()) : end + 1;
  };
  const std::size_t cut = std::min(line_end(text.size() - text.size() / 10), text.size());

  corpus result;
  result.source = path.string();
  result.train_files = result.held_out_files = {path.filename().string()};
  append(result.train, text.substr(0, cut));
  const shingle_set trained = shingles_of(text.substr(0, cut));
  bool adjoining = false;  // blocks with a gap between them are kept apart as files are
  for (std::size_t begin = cut, end = 0; begin < text.size(); begin = end) {
    end = line_end(begin + block_bytes);
    const std::string_view block = text.substr(begin, end - begin);
    const shingle_set shingles = shingles_of(block);
    const bool repeats =
        static_cast<double>(shared_shingles(shingles, trained)) > most_containment * static_cast<double>(shingles.size());
    if (repeats) ++result.dropped_duplicates;
    else if (adjoining) result.held_out.insert(result.held_out.end(), block.begin(), block.end());
    else append(result.held_out, block);
    adjoining = !repeats;
  }
  if (result.held_out.empty() && result.dropped_duplicates != 0)
    throw usage_error("the last tenth of '" + path.string() +
                      "' only repeats what precedes it: nothing is left to hold out.");
  return result;
}

}  // namespace detail

/// The headers of the C++ standard library this program was compiled with, or of the newest one installed.
inline std::filesystem::path standard_library_headers() {
  namespace fs = std::filesystem;
  const fs::path root = "/usr/include/c++";
  std::error_code error;
#ifdef _GLIBCXX_RELEASE
  if (const fs::path own = root / std::to_string(_GLIBCXX_RELEASE); fs::is_directory(own, error)) return own;
#endif
  fs::path newest;
  unsigned long highest = 0;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    unsigned long version = 0;
    std::from_chars(name.data(), name.data() + name.size(), version);
    std::error_code unknown;
    if (version > highest && entry->is_directory(unknown)) highest = version, newest = entry->path();
  }
  if (newest.empty())
    throw usage_error("found no C++ standard library headers in '" + root.string() +
                      "': give a text with --text FILE_OR_DIR.");
  return newest;
}

/// The text at `path` (none: the standard library's headers), split. Throws usage_error.
inline corpus load_corpus(const std::optional<std::filesystem::path>& path, std::uint64_t seed) {
  namespace fs = std::filesystem;
  const fs::path source = path ? *path : standard_library_headers();
  std::error_code error;
  const fs::file_status status = fs::status(source, error);
  if (!fs::exists(status)) throw usage_error("cannot read the text '" + source.string() + "': " + error.message() + ".");
  if (fs::is_directory(status)) return detail::load_folder(source, seed);
  if (fs::is_regular_file(status)) return detail::load_single(source);
  throw usage_error("'" + source.string() + "' is neither a file nor a folder.");
}

/// Throws usage_error where `bytes` are fewer than one batch needs; `part` names them in the sentence.
inline void require_at_least(std::span<const std::uint8_t> bytes, std::size_t need, std::string_view part = "the text") {
  if (bytes.size() < need)
    throw usage_error(std::string(part) + " has " + std::to_string(bytes.size()) + " bytes, and one batch takes " +
                      std::to_string(need) + ": give a longer text.");
}

}  // namespace train_text
