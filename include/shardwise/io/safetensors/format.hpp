// SPDX-License-Identifier: Apache-2.0
// The safetensors format: eight bytes with the header's size, a JSON header (name -> dtype, shape, data_offsets), the elements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <shardwise/io/storage/file.hpp>
#include <shardwise/io/storage/json.hpp>
#include <shardwise/vocabulary/dtype.hpp>

namespace shardwise::inline v0_1 {

// A tensor in a file: row-major, little-endian, at bytes [begin, end) behind the header.
struct safetensors_entry {
  std::string name;
  std::string type;  // the format's name: "F32"
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0, end = 0;
};

// The format's name of an element type.
constexpr const char* safetensors_type(dtype t) {
  constexpr const char* names[dtypes] = {"F32", "F64", "I32", "BF16", "F16", "I64", "BOOL"};
  return names[static_cast<int>(t)];
}

namespace storage {

// Elements are little-endian in files, and are copied as they are.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "shardwise: safetensors files are read on little-endian machines alone");

inline constexpr std::uint64_t most_header_bytes = 100'000'000;  // the format's bound

// Bits of an element of any type that the format has, 0: of none.
constexpr std::uint64_t bits_of_type(std::string_view type) {
  constexpr struct {
    std::string_view name;
    std::uint64_t bits;
  } known[] = {{"F32", 32},        {"F64", 64}, {"I32", 32},    {"BF16", 16},   {"F16", 16},    {"I64", 64},
               {"BOOL", 8},        {"U8", 8},   {"I8", 8},      {"I16", 16},    {"U16", 16},    {"U32", 32},
               {"U64", 64},        {"C64", 64}, {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E5M2FNUZ", 8},
               {"F8_E4M3FNUZ", 8}, {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}};
  for (const auto& k : known)
    if (k.name == type) return k.bits;
  return 0;
}

// What a header says, checked in full: known types, shapes that fit their bytes, tensors that lie side by side and fill the file.
class safetensors_header {
 public:
  safetensors_header() = default;
  // `text` is the header of the file `path`, behind which `data` bytes follow.
  safetensors_header(const std::string& path, std::string_view text, std::uint64_t data) : path_(path) {
    if (text.empty() || text[0] != '{') refuse(path_, "has a header that does not begin with '{'");
    json_value all;
    try {
      all = json_reader::object(text);
    } catch (const json_error& e) {
      refuse(path_, std::string("has a header that is none: ") + e.what() + " of it");
    }
    for (std::size_t i = 0; i < all.items.size(); ++i) {
      if (all.names[i] == "__metadata__") read_metadata(all.items[i]);
      else entries_.push_back(entry(all.names[i], all.items[i]));
    }
    std::sort(entries_.begin(), entries_.end(), [](const safetensors_entry& a, const safetensors_entry& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end != b.end ? a.end < b.end : a.name < b.name;
    });
    std::uint64_t at = 0;
    for (const safetensors_entry& e : entries_) {
      if (e.begin != at)
        refuse(path_, "has '" + e.name + "' at byte " + std::to_string(e.begin) + " of its data, where byte " +
                          std::to_string(at) + " is required: tensors lie side by side, without gaps and overlaps");
      at = e.end;
    }
    if (at != data)
      refuse(path_, (at > data ? "is torn: " : "is too long: ") + std::to_string(data) +
                        " bytes follow its header, and its tensors take " + std::to_string(at));
  }

  // In the order in which they lie.
  const std::vector<safetensors_entry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  [[noreturn]] void refuse_entry(const std::string& name, const std::string& why) const {
    refuse(path_, "describes '" + name + "' wrongly: " + why);
  }
  void read_metadata(const json_value& v) {
    if (v.is != json_value::kind::object)
      refuse(path_, "has __metadata__ that is " + std::string(name_of(v.is)) + ", an object is required");
    for (std::size_t i = 0; i < v.items.size(); ++i) {
      if (v.items[i].is != json_value::kind::string) refuse(path_, "has metadata '" + v.names[i] + "' that is no string");
      metadata_[v.names[i]] = v.items[i].text;
    }
  }
  std::uint64_t count(const std::string& name, const json_value& v, const char* what) const {
    if (v.is != json_value::kind::number || v.negative)
      refuse_entry(name, std::string(what) + " are whole numbers from 0 on");
    return v.magnitude;
  }
  safetensors_entry entry(const std::string& name, const json_value& v) const {
    if (v.is != json_value::kind::object)
      refuse_entry(name, std::string("it is ") + name_of(v.is) + ", an object is required");
    for (const std::string& key : v.names)
      if (key != "dtype" && key != "shape" && key != "data_offsets")
        refuse_entry(name, "'" + key + "' is none of dtype, shape and data_offsets");
    const json_value *type = v.find("dtype"), *shape = v.find("shape"), *offsets = v.find("data_offsets");
    if (!type || type->is != json_value::kind::string) refuse_entry(name, "a string dtype is required");
    if (!shape || shape->is != json_value::kind::array) refuse_entry(name, "an array shape is required");
    if (!offsets || offsets->is != json_value::kind::array || offsets->items.size() != 2)
      refuse_entry(name, "two data_offsets are required");
    safetensors_entry e{name, type->text, {}, 0, 0};
    const std::uint64_t bits = bits_of_type(e.type);
    if (bits == 0) refuse_entry(name, "the format has no dtype '" + e.type + "'");
    std::uint64_t elements = 1, all = 0;
    bool fits = true;
    for (const json_value& x : shape->items) {
      e.shape.push_back(count(name, x, "extents"));
      fits = !__builtin_mul_overflow(elements, e.shape.back(), &elements) && fits;
    }
    for (const std::uint64_t x : e.shape)
      if (x == 0) elements = 0;
    fits = !__builtin_mul_overflow(elements, bits, &all) && fits;
    if (!fits) refuse_entry(name, "its shape has more elements than 64 bits count");
    e.begin = count(name, offsets->items[0], "offsets");
    e.end = count(name, offsets->items[1], "offsets");
    if (e.begin > e.end) refuse_entry(name, "its data_offsets end before they begin");
    if (all % 8 != 0 || all / 8 != e.end - e.begin)
      refuse_entry(name, "its data_offsets hold " + std::to_string(e.end - e.begin) + " bytes, and its shape takes " +
                             std::to_string(all / 8) + (all % 8 != 0 ? " and a part of one" : ""));
    return e;
  }

  std::string path_;
  std::vector<safetensors_entry> entries_;
  std::map<std::string, std::string> metadata_;
};

// The bytes before the data for such tensors, whose offsets are given anew and whose order becomes that of the file: wide elements
// first, then by name, as the reference writer has it. The data begins at a multiple of 8.
inline std::string safetensors_head(std::vector<safetensors_entry>& entries,
                                    const std::map<std::string, std::string>& metadata) {
  std::sort(entries.begin(), entries.end(), [](const safetensors_entry& a, const safetensors_entry& b) {
    const std::uint64_t x = bits_of_type(a.type), y = bits_of_type(b.type);
    return x != y ? x > y : a.name < b.name;
  });
  std::string text = "{";
  const auto next = [&] {
    if (text.size() > 1) text += ',';
  };
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    bool first = true;
    for (const auto& [key, value] : metadata) {
      if (!std::exchange(first, false)) text += ',';
      put_json(text, key);
      text += ':';
      put_json(text, value);
    }
    text += '}';
  }
  std::uint64_t at = 0;
  for (safetensors_entry& e : entries) {
    std::uint64_t bytes = bits_of_type(e.type) / 8;
    std::string shape;
    for (const std::uint64_t x : e.shape) {
      bytes *= x;
      shape += (shape.empty() ? "" : ",") + std::to_string(x);
    }
    e.begin = at;
    e.end = at += bytes;
    next();
    put_json(text, e.name);
    text += ":{\"dtype\":\"" + e.type + "\",\"shape\":[" + shape + "],\"data_offsets\":[" + std::to_string(e.begin) + "," +
            std::to_string(e.end) + "]}";
  }
  text += '}';
  while (text.size() % 8 != 0) text += ' ';
  std::string head(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) head[i] = static_cast<char>(text.size() >> (8 * i) & 0xFF);
  return head + text;
}

}  // namespace storage

}  // namespace shardwise::inline v0_1
