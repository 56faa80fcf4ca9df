// SPDX-License-Identifier: Apache-2.0
// product_table: which algorithm was the fastest for each shape of a product, on one kind of device, in memory and in a file.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <type_traits>
#include <utility>

namespace shardwise::inline v0_1::cuda {

using product_key = std::array<std::int64_t, 22>;
using product_algorithm = std::array<std::uint64_t, 8>;  // cuBLASLt's own words, which mean nothing to another version of it

// Where choices are kept: as asked for, by the environment ("none": nowhere), or below the user's cache folder; empty: nowhere.
inline std::string product_folder(const std::string& asked) {
  if (!asked.empty()) return asked;
  const auto named = [](const char* variable, const char* below) -> std::string {
    const char* const value = std::getenv(variable);
    return value && *value ? std::string(value) + below : std::string();
  };
  std::string folder = named("SHARDWISE_PRODUCT_CACHE", "");
  if (folder.empty()) folder = named("XDG_CACHE_HOME", "/shardwise");
  if (folder.empty()) folder = named("HOME", "/.cache/shardwise");
  return folder == "none" ? "" : folder;
}

// The file is text: what it is and of which machine, then a line a choice, which ends in a sum over its words. One that is not
// whole, or another machine's, is not read at all, and the next save replaces it.
class product_table {
 public:
  // machine: all that an algorithm's worth depends on beside the shape: the device's name and the library's version.
  explicit product_table(std::string machine) : machine_(std::move(machine)) {}

  const product_algorithm* find(const product_key& key) const {
    const auto at = choice_.find(key);
    return at == choice_.end() ? nullptr : &at->second;
  }
  void add(const product_key& key, const product_algorithm& a) { choice_[key] = a; }
  void forget(const product_key& key) { choice_.erase(key); }
  std::size_t size() const { return choice_.size(); }

  std::string path_in(const std::string& folder) const {
    return folder + "/products-" + hexadecimal(sum(machine_.data(), machine_.size())) + ".txt";
  }

  // Adds what the file in `folder` knows and this table does not. Returns why it is ignored; empty: it was read, or there is none.
  std::string load(const std::string& folder) {
    const std::string path = path_in(folder);
    const file in(std::fopen(path.c_str(), "r"));
    if (!in.f) return errno == ENOENT ? "" : ignored(path, std::strerror(errno));
    char line[line_size];
    if (!std::fgets(line, sizeof line, in.f) || std::strncmp(line, head, std::strlen(head)) != 0)
      return ignored(path, "it is no list of products of this version");
    if (machine_ + "\n" != line + std::strlen(head)) return ignored(path, "it was written for another device or cuBLASLt");
    std::map<product_key, product_algorithm> read;
    for (int number = 2; std::fgets(line, sizeof line, in.f); ++number) {
      product_key key{};
      product_algorithm a{};
      if (!parse(line, key, a)) return ignored(path, "line " + std::to_string(number) + " is damaged");
      read[key] = a;
    }
    if (std::ferror(in.f)) return ignored(path, "it could not be read to its end");
    choice_.insert(read.begin(), read.end());
    return "";
  }

  // Writes all choices, those of the file as it is now included. Returns why it could not; empty: it is written. Another process
  // sees the old file or the new one.
  std::string save(const std::string& folder) {
    load(folder);
    make_folders(folder);
    const std::string path = path_in(folder), beside = path + "." + std::to_string(getpid());
    file out(std::fopen(beside.c_str(), "w"));
    if (!out.f) return kept_nowhere(path);
    bool good = std::fprintf(out.f, "%s%s\n", head, machine_.c_str()) > 0;
    for (const auto& [key, a] : choice_) good = std::fputs(written(key, a).c_str(), out.f) >= 0 && good;
    good = out.close() && good;
    if (good && std::rename(beside.c_str(), path.c_str()) == 0) return "";
    const std::string why = kept_nowhere(path);
    std::remove(beside.c_str());
    return why;
  }

 private:
  static constexpr const char* head = "shardwise products 1: ";
  static constexpr std::size_t line_size = 1024;  // a line has at most 22 * 21 + 9 * 17 characters, or it is damaged

  struct file {
    std::FILE* f;
    explicit file(std::FILE* from) : f(from) {}
    file(const file&) = delete;
    file& operator=(const file&) = delete;
    ~file() { close(); }
    bool close() {
      const bool good = !f || std::fclose(f) == 0;
      f = nullptr;
      return good;
    }
  };

  static std::uint64_t sum(const void* bytes, std::size_t n) {
    std::uint64_t h = 14695981039346656037ULL;
    for (std::size_t i = 0; i < n; ++i) h = (h ^ static_cast<const unsigned char*>(bytes)[i]) * 1099511628211ULL;
    return h;
  }
  std::uint64_t sum(const product_key& key, const product_algorithm& a) const {
    return sum(key.data(), sizeof key) ^ 31 * sum(a.data(), sizeof a) ^ 961 * sum(machine_.data(), machine_.size());
  }

  std::string written(const product_key& key, const product_algorithm& a) const {
    std::string line;
    for (std::int64_t n : key) line += std::to_string(n) + " ";
    for (std::uint64_t w : a) line += hexadecimal(w) + " ";
    return line + hexadecimal(sum(key, a)) + "\n";
  }
  static std::string hexadecimal(std::uint64_t w) {
    std::string s;
    for (int at = 60; at >= 0; at -= 4) s += "0123456789abcdef"[w >> at & 15U];
    return s;
  }
  bool parse(const char* line, product_key& key, product_algorithm& a) const {
    if (!std::strchr(line, '\n')) return false;
    char* end = nullptr;
    const auto next = [&](auto& to, auto&& number) {
      to = static_cast<std::remove_reference_t<decltype(to)>>(number(line, &end));
      const bool found = end != line;
      line = end;
      return found;
    };
    const auto word = [](const char* from, char** to) { return std::strtoull(from, to, 16); };
    for (std::int64_t& n : key)
      if (!next(n, [](const char* from, char** to) { return std::strtoll(from, to, 10); })) return false;
    for (std::uint64_t& w : a)
      if (!next(w, word)) return false;
    std::uint64_t expected = 0;
    return next(expected, word) && std::strcmp(line, "\n") == 0 && expected == sum(key, a);
  }

  static void make_folders(const std::string& folder) {
    for (std::size_t i = 1; i <= folder.size(); ++i)
      if (i == folder.size() || folder[i] == '/') mkdir(folder.substr(0, i).c_str(), 0777);
  }
  static std::string ignored(const std::string& path, const std::string& why) {
    return "shardwise: the file of measured products " + path + " is ignored: " + why;
  }
  static std::string kept_nowhere(const std::string& path) {
    return "shardwise: measured products cannot be kept in " + path + ": " + std::strerror(errno) +
           "; set SHARDWISE_PRODUCT_CACHE or product_options::folder to a folder that can be written";
  }

  std::string machine_;
  std::map<product_key, product_algorithm> choice_;
};

}  // namespace shardwise::inline v0_1::cuda
