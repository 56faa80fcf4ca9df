// SPDX-License-Identifier: Apache-2.0
// A reader of safetensors files: names, shapes and metadata, values converted to double or to int32.
#pragma once

#if SHARDWISE_TEST_JSON

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace test {

// The format: 8 bytes little-endian header size, a JSON header (name -> dtype, shape, data_offsets), the data.
class safetensors {
 public:
  explicit safetensors(const std::string& path) : path_(path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) refuse("cannot be opened");
    parse(std::vector<char>(std::istreambuf_iterator<char>(file), {}));
  }
  // The bytes themselves; `name` stands in errors.
  safetensors(std::string name, std::vector<char> bytes) : path_(std::move(name)) { parse(std::move(bytes)); }

  const std::string& metadata(const std::string& key) const {
    const auto it = metadata_.find(key);
    if (it == metadata_.end()) refuse("has no metadata '" + key + "'");
    return it->second;
  }
  bool has(const std::string& name) const { return entries_.contains(name); }
  const std::vector<std::int64_t>& shape(const std::string& name) const { return entry_of(name).shape; }
  const std::string& type(const std::string& name) const { return entry_of(name).type; }
  // Names that begin with `prefix`, without it, in order.
  std::vector<std::string> names(const std::string& prefix) const {
    std::vector<std::string> found;
    for (const auto& [name, e] : entries_)
      if (name.starts_with(prefix)) found.push_back(name.substr(prefix.size()));
    return found;
  }

  std::vector<double> values(const std::string& name) const {
    const entry& e = entry_of(name);
    if (e.type == "F32") return read<float, double>(e);
    if (e.type == "F64") return read<double, double>(e);
    refuse("holds '" + name + "' as " + e.type + ", which is not read as floating point");
  }
  std::vector<std::int32_t> integers(const std::string& name) const {
    const entry& e = entry_of(name);
    if (e.type == "I32") return read<std::int32_t, std::int32_t>(e);
    if (e.type == "I64") return read<std::int64_t, std::int32_t>(e);
    refuse("holds '" + name + "' as " + e.type + ", which is not read as integers");
  }

 private:
  struct entry {
    std::string type;
    std::vector<std::int64_t> shape;
    std::size_t begin = 0, end = 0;
  };

  static std::size_t size_of_type(const std::string& type) {
    if (type == "F64" || type == "I64") return 8;
    if (type == "F32" || type == "I32") return 4;
    return 0;
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw std::runtime_error("safetensors: file '" + path_ + "' " + why);
  }

  const entry& entry_of(const std::string& name) const {
    const auto it = entries_.find(name);
    if (it == entries_.end()) refuse("has no tensor '" + name + "'");
    return it->second;
  }

  void parse(std::vector<char> bytes) {
    if (bytes.size() < 8) refuse("is truncated: " + std::to_string(bytes.size()) + " bytes, the header size alone takes 8");
    std::uint64_t header = 0;
    for (int i = 7; i >= 0; --i) header = header << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
    if (header > bytes.size() - 8)
      refuse("is truncated: its header takes " + std::to_string(header) + " bytes, " + std::to_string(bytes.size() - 8) +
             " follow");
    const auto begin = bytes.begin() + 8, end = begin + static_cast<std::ptrdiff_t>(header);
    const nlohmann::json json = nlohmann::json::parse(begin, end, nullptr, false);
    if (json.is_discarded() || !json.is_object()) refuse("has a header that is not a JSON object");
    data_.assign(end, bytes.end());
    for (const auto& [name, value] : json.items()) {
      try {
        if (name == "__metadata__") metadata_ = value.get<std::map<std::string, std::string>>();
        else entries_[name] = parse_entry(name, value);
      } catch (const nlohmann::json::exception& e) {
        refuse("describes '" + name + "' wrongly: " + e.what());
      }
    }
  }

  entry parse_entry(const std::string& name, const nlohmann::json& value) const {
    entry e{value.at("dtype"), value.at("shape"), 0, 0};
    const auto offsets = value.at("data_offsets").get<std::vector<std::size_t>>();
    if (offsets.size() != 2 || offsets[0] > offsets[1]) refuse("gives '" + name + "' offsets that are not a range");
    e.begin = offsets[0];
    e.end = offsets[1];
    if (e.end > data_.size())
      refuse("is truncated: '" + name + "' ends at byte " + std::to_string(e.end) + " of the data, " +
             std::to_string(data_.size()) + " are there");
    std::size_t count = 1;
    for (const std::int64_t extent : e.shape) {
      if (extent < 0) refuse("gives '" + name + "' a negative extent");
      count *= static_cast<std::size_t>(extent);
    }
    const std::size_t size = size_of_type(e.type);
    if (size != 0 && count * size != e.end - e.begin)
      refuse("gives '" + name + "' " + std::to_string(e.end - e.begin) + " bytes, its shape takes " +
             std::to_string(count * size));
    return e;
  }

  template <class From, class To>
  std::vector<To> read(const entry& e) const {
    std::vector<To> out((e.end - e.begin) / sizeof(From));
    for (std::size_t i = 0; i < out.size(); ++i) {
      From v;
      std::memcpy(&v, data_.data() + e.begin + i * sizeof(From), sizeof(From));
      out[i] = static_cast<To>(v);
      if constexpr (!std::is_same_v<From, To> && std::is_integral_v<To>)
        if (static_cast<From>(out[i]) != v) refuse("holds an integer that does not fit 32 bits");
    }
    return out;
  }

  std::string path_;
  std::map<std::string, std::string> metadata_;
  std::map<std::string, entry> entries_;
  std::vector<char> data_;
};

}  // namespace test

#endif
