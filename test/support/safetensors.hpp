// SPDX-License-Identifier: Apache-2.0
// Reference files: the library's reader, with values of any width as double or int32.
#pragma once

#include <shardwise/io/safetensors/reader.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace test {

class safetensors : public shardwise::safetensors_reader {
 public:
  using shardwise::safetensors_reader::safetensors_reader;

  std::vector<std::int64_t> shape(const std::string& name) const {
    const auto& s = entry(name).shape;
    return {s.begin(), s.end()};
  }
  const std::string& type(const std::string& name) const { return entry(name).type; }
  // Names that begin with `prefix`, without it, in order.
  std::vector<std::string> names(const std::string& prefix) const {
    std::vector<std::string> found;
    for (const auto& e : entries())
      if (e.name.starts_with(prefix)) found.push_back(e.name.substr(prefix.size()));
    std::sort(found.begin(), found.end());
    return found;
  }

  std::vector<double> values(const std::string& name) const {
    if (type(name) == "F64") return safetensors_reader::values<double>(name);
    const std::vector<float> v = safetensors_reader::values<float>(name);
    return {v.begin(), v.end()};
  }
  std::vector<std::int32_t> integers(const std::string& name) const {
    if (type(name) == "I32") return safetensors_reader::values<std::int32_t>(name);
    std::vector<std::int32_t> out;
    for (const std::int64_t v : safetensors_reader::values<std::int64_t>(name)) {
      if (v != static_cast<std::int32_t>(v))
        throw shardwise::file_error("test: file '" + path() + "' holds an integer in '" + name +
                                    "' that does not fit 32 bits");
      out.push_back(static_cast<std::int32_t>(v));
    }
    return out;
  }
};

}  // namespace test
