// SPDX-License-Identifier: Apache-2.0
// The folder that an example program writes its results into: all of them whole, or none.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "flags.hpp"  // usage_error

namespace example {

/// Created where it is missing and tried for writing before training begins; throws usage_error. If nothing is written
/// to it, the folders it had to create go again with it.
class output_folder {
 public:
  /// `names`: of the files that write() gives their contents, the one last whose being there says that the run is complete.
  output_folder(std::filesystem::path folder, std::vector<std::string> names)
      : folder_(std::move(folder)), names_(std::move(names)) {
    namespace fs = std::filesystem;
    std::error_code error;
    try {
      if (fs::exists(folder_, error) && !fs::is_directory(folder_, error)) refuse("it is not a folder");
      for (fs::path missing = fs::absolute(folder_, error).lexically_normal();
           !missing.empty() && !fs::exists(missing, error); missing = missing.parent_path())
        created_.push_back(missing);
      error.clear();
      fs::create_directories(folder_, error);
      if (error) refuse(error.message());
      for (const auto& name : names_)
        if (fs::is_directory(folder_ / name, error)) refuse("its '" + name + "' is a folder");
      const fs::path probe = folder_ / ".probe.tmp";
      write_whole(probe, "\n");
      fs::remove(probe, error);
    } catch (...) {
      undo();
      throw;
    }
  }
  output_folder(const output_folder&) = delete;
  output_folder& operator=(const output_folder&) = delete;
  ~output_folder() { undo(); }

  const std::filesystem::path& path() const { return folder_; }

  /// Writes the files beside their names, in their order, and renames them when all are whole. Throws std::runtime_error, having
  /// written nothing, where the disk refuses.
  void write(std::span<const std::string> contents) {
    namespace fs = std::filesystem;
    if (contents.size() != names_.size()) throw std::logic_error("an output folder takes one content for each of its files");
    const auto temporary = [&](std::size_t i) { return folder_ / ('.' + names_[i] + ".tmp"); };
    try {
      for (std::size_t i = 0; i < names_.size(); ++i) write_whole(temporary(i), contents[i]);
      for (std::size_t i = 0; i < names_.size(); ++i) {
        std::error_code error;
        fs::rename(temporary(i), folder_ / names_[i], error);
        if (error) refuse(error.message());
      }
    } catch (const std::exception& e) {
      std::error_code gone;
      for (std::size_t i = 0; i < names_.size(); ++i) fs::remove(temporary(i), gone);
      throw std::runtime_error(e.what());
    }
    created_.clear();
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw usage_error("cannot write to the output folder '" + folder_.string() + "': " + why + ".");
  }

  void write_whole(const std::filesystem::path& path, std::string_view content) const {
    std::FILE* const file = std::fopen(path.c_str(), "wb");
    if (!file) refuse(std::generic_category().message(errno));
    const bool written = std::fwrite(content.data(), 1, content.size(), file) == content.size();
    const int why = errno;
    const bool closed = std::fclose(file) == 0;  // a full disk may show only here
    if (!written || !closed) refuse(std::generic_category().message(written ? errno : why));
  }

  void undo() noexcept {
    std::error_code kept;  // removes empty folders only, deepest first
    for (const auto& folder : created_) std::filesystem::remove(folder, kept);
    created_.clear();
  }

  std::filesystem::path folder_;
  std::vector<std::string> names_;
  std::vector<std::filesystem::path> created_;
};

}  // namespace example
