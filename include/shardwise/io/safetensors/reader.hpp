// SPDX-License-Identifier: Apache-2.0
// safetensors_reader: a file whose header is checked in full when it is opened, and whose elements are read where they are asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <shardwise/io/safetensors/format.hpp>
#include <shardwise/io/storage/checksum.hpp>

namespace shardwise::inline v0_1 {

// Everything throws file_error with the file's name, what was found, and what is required.
class safetensors_reader {
 public:
  explicit safetensors_reader(const std::string& path) : file_(path) {
    if (file_.size() < 8)
      storage::refuse(
          path, "is torn: it has " + std::to_string(file_.size()) + " bytes, and the size of its header alone takes 8");
    unsigned char size[8];
    file_.read(0, size, 8);
    std::uint64_t header = 0;
    for (int i = 7; i >= 0; --i) header = header << 8 | size[i];
    if (header > storage::most_header_bytes)
      storage::refuse(path, "says that its header has " + std::to_string(header) + " bytes; the format allows " +
                                std::to_string(storage::most_header_bytes) + ": it is no safetensors file, or a torn one");
    if (header > file_.size() - 8)
      storage::refuse(path, "is torn: its header takes " + std::to_string(header) + " bytes, and " +
                                std::to_string(file_.size() - 8) + " follow its size");
    std::string text(static_cast<std::size_t>(header), '\0');
    file_.read(8, text.data(), text.size());
    data_ = 8 + header;
    header_checksum_ = storage::checksum(text);
    header_ = storage::safetensors_header(path, text, file_.size() - data_);
    for (std::size_t i = 0; i < header_.entries().size(); ++i) by_name_[header_.entries()[i].name] = i;
  }

  const std::string& path() const { return file_.path(); }
  std::uint64_t file_bytes() const { return file_.size(); }
  std::uint64_t header_checksum() const { return header_checksum_; }

  // The tensors, in the order in which they lie in the file.
  const std::vector<safetensors_entry>& entries() const { return header_.entries(); }
  bool has(const std::string& name) const { return by_name_.count(name) != 0; }
  const safetensors_entry& entry(const std::string& name) const {
    const auto it = by_name_.find(name);
    if (it == by_name_.end()) {
      const auto& all = entries();
      std::string known;
      for (std::size_t i = 0; i < all.size() && i < 5; ++i) known += (i ? ", '" : "'") + all[i].name + "'";
      storage::refuse(path(), "has no tensor '" + name + "'; it has " + (all.empty() ? "none" : known) +
                                  (all.size() > 5 ? " and " + std::to_string(all.size() - 5) + " more" : ""));
    }
    return entries()[it->second];
  }
  const std::string& metadata(const std::string& key) const {
    const auto it = header_.metadata().find(key);
    if (it == header_.metadata().end()) storage::refuse(path(), "has no metadata '" + key + "'");
    return it->second;
  }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata(); }

  // `count` bytes of a tensor from its byte `from` on.
  void read(const safetensors_entry& e, std::uint64_t from, void* to, std::size_t count) const {
    if (from > e.end - e.begin || count > e.end - e.begin - from)
      storage::refuse(path(), "has " + std::to_string(e.end - e.begin) + " bytes of '" + e.name + "', and bytes " +
                                  std::to_string(from) + " to " + std::to_string(from + count) + " are asked for");
    file_.read(data_ + e.begin + from, to, count);
  }
  // A whole tensor, whose elements are of type T: float, double, bf16, f16, std::int32_t, std::int64_t, or std::uint8_t of BOOL and U8.
  template <class T>
  std::vector<T> values(const std::string& name) const {
    const safetensors_entry& e = entry(name);
    bool same = false;
    if constexpr (std::is_same_v<T, std::uint8_t>) same = e.type == "U8" || e.type == "BOOL";
    else same = e.type == safetensors_type(dtype_v<T>);
    if (!same) {
      const char* wanted = "U8 or BOOL";
      if constexpr (!std::is_same_v<T, std::uint8_t>) wanted = safetensors_type(dtype_v<T>);
      storage::refuse(path(), "holds '" + name + "' as " + e.type + ", and " + wanted + " is asked for");
    }
    std::vector<T> all(static_cast<std::size_t>(e.end - e.begin) / sizeof(T));
    read(e, 0, all.data(), all.size() * sizeof(T));
    return all;
  }
  // What has been read of tensors' elements, in bytes: not the header.
  std::uint64_t bytes_read() const { return file_.bytes_read() - data_; }

 private:
  storage::input_file file_;
  storage::safetensors_header header_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::uint64_t data_ = 0, header_checksum_ = 0;
};

}  // namespace shardwise::inline v0_1
