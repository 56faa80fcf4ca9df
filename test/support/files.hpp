// SPDX-License-Identifier: Apache-2.0
// A folder that is gone at the end of its scope, and whole files.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace test {

class folder {
 public:
  folder() {
#if defined(SHARDWISE_TEST_PROCESSES)  // one for all processes
    std::string name;
    processes::first_alone([&] { name = made(); });
    path_ = processes::made_folder(name);
#else
    path_ = made();
#endif
  }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  ~folder() {
#if defined(SHARDWISE_TEST_PROCESSES)
    processes::remove_folder(path_);
#else
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
#endif
  }
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  static std::string made() {
    std::string name = (std::filesystem::temp_directory_path() / "shardwise-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    return name;
  }
  std::string path_;
};

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.flush()) throw std::runtime_error("'" + path + "' cannot be written");
}
inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("'" + path + "' cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace test
