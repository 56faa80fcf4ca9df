// SPDX-License-Identifier: Apache-2.0
// safetensors_writer: a file of tensors that are declared first and then written one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <shardwise/io/safetensors/format.hpp>
#include <shardwise/io/storage/checksum.hpp>

namespace shardwise::inline v0_1 {

// Of each entry name, type and shape are read. The elements of entries()[0], entries()[1], ... are put in that order, which is the file's
// and not the one that was given, a tensor in as many pieces as one likes; finish() says whether all are there and waits for the disk.
// Throws file_error where the disk says no. Tensors that are there as a whole: write_safetensors.
class safetensors_writer {
 public:
  safetensors_writer(const std::string& path, std::vector<safetensors_entry> entries,
                     const std::map<std::string, std::string>& metadata = {}, const file_calls& calls = {})
      : entries_(std::move(entries)), file_(path, calls) {
    for (const safetensors_entry& e : entries_)
      if (const std::uint64_t bits = storage::bits_of_type(e.type); bits == 0 || bits % 8 != 0)
        throw std::invalid_argument("shardwise: safetensors_writer: tensor '" + e.name + "' is of type '" + e.type +
                                    "'; give one of whole bytes that the format has, as safetensors_type(dtype::f32)");
    const std::string head = storage::safetensors_head(entries_, metadata);
    header_checksum_ = storage::checksum(head.data() + 8, head.size() - 8);
    // what this library's reader refuses is not written: equal names, and more than 64 bits count
    storage::safetensors_header(path, std::string_view(head).substr(8), data_bytes());
    if (head.size() - 8 > storage::most_header_bytes)
      throw std::length_error("shardwise: safetensors_writer: the header of '" + path + "' has " +
                              std::to_string(head.size() - 8) + " bytes; the format allows " +
                              std::to_string(storage::most_header_bytes) + ": write several files");
    data_ = head.size();
    file_.write(head.data(), head.size());
  }

  // In the order in which they lie in the file, and in which they are put.
  const std::vector<safetensors_entry>& entries() const { return entries_; }
  std::uint64_t header_checksum() const { return header_checksum_; }
  std::uint64_t file_bytes() const { return data_ + data_bytes(); }

  void put(const void* bytes, std::size_t count) { file_.write(bytes, count); }
  void finish() {
    if (file_.written() != file_bytes())
      throw std::logic_error("shardwise: safetensors_writer: " + std::to_string(file_.written() - data_) + " bytes of '" +
                             file_.path() + "' have been put; its tensors have " + std::to_string(data_bytes()));
    file_.finish();
  }

 private:
  std::uint64_t data_bytes() const { return entries_.empty() ? 0 : entries_.back().end; }

  std::vector<safetensors_entry> entries_;
  storage::output_file file_;
  std::uint64_t header_checksum_ = 0, data_ = 0;
};

// A tensor for write_safetensors: its values, row-major, are as many as its shape says and stay until it is written.
class safetensors_values {
 public:
  template <class Range>
  safetensors_values(std::string name, std::vector<std::uint64_t> shape, const Range& values)
      : entry_{std::move(name), safetensors_type(dtype_v<std::remove_cvref_t<decltype(*std::data(values))>>),
               std::move(shape)},
        data_(std::data(values)),
        bytes_(std::size(values) * sizeof(*std::data(values))) {
    std::uint64_t count = 1;
    for (const std::uint64_t x : entry_.shape) count *= x;
    if (count != std::size(values))
      throw std::invalid_argument("shardwise: write_safetensors: '" + entry_.name + "' is given " +
                                  std::to_string(std::size(values)) + " values; its shape has " + std::to_string(count));
  }
  const safetensors_entry& entry() const { return entry_; }
  const void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  safetensors_entry entry_;
  const void* data_;
  std::size_t bytes_;
};

// A file of these tensors, given in any order: write_safetensors(path, {{"a.weight", {8, 4}, weight}, {"a.bias", {8}, bias}}). Each
// has one of the element types of tensors.
inline void write_safetensors(const std::string& path, const std::vector<safetensors_values>& tensors,
                              const std::map<std::string, std::string>& metadata = {}) {
  std::vector<safetensors_entry> entries;
  for (const safetensors_values& t : tensors) entries.push_back(t.entry());
  safetensors_writer file(path, std::move(entries), metadata);
  for (const safetensors_entry& e : file.entries())  // names are unequal, else the writer has thrown
    for (const safetensors_values& t : tensors)
      if (t.entry().name == e.name) file.put(t.data(), t.bytes());
  file.finish();
}

}  // namespace shardwise::inline v0_1
