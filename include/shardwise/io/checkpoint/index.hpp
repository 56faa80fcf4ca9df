// SPDX-License-Identifier: Apache-2.0
// checkpoint_index: which tensors a checkpoint has, which file holds which part of each, and their checksums; as JSON and back.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <shardwise/io/storage/checksum.hpp>
#include <shardwise/io/storage/file.hpp>
#include <shardwise/io/storage/json.hpp>

namespace shardwise::inline v0_1 {

// Where a run is, beside its tensors: what its next steps depend on. All ranks give the same.
struct checkpoint_position {
  std::int64_t step = 0;                           // steps that have been made
  std::uint64_t seed = 0;                          // of step_env
  std::map<std::string, std::int64_t> integers{};  // the caller's own, such as where in the data it is
  std::map<std::string, double> reals{};
  bool operator==(const checkpoint_position&) const = default;
};

namespace storage {

inline constexpr std::uint64_t checkpoint_version = 1;
// Checksums are of so many bytes of a block each: what is read is read in such pieces.
inline constexpr std::uint64_t chunk_bytes = std::uint64_t{1} << 18;

using extents = std::vector<std::int64_t>;
struct stored_tensor {
  std::string name, type;
  extents shape;
};
// A box of its tensor: offset and shape have its dims. Or a run of the tensor's row-major elements: both are one number, where the
// tensor has not one dim.
struct stored_block {
  std::size_t tensor = 0;  // its number
  extents offset, shape;
  std::vector<std::uint64_t> sums;
};
struct stored_file {
  std::string name;
  std::uint64_t bytes = 0, header = 0;  // its size, and the checksum of its header
  std::vector<stored_block> blocks;
};
struct checkpoint_index {
  checkpoint_position position;
  std::string mesh;
  std::uint64_t ranks = 0;
  std::vector<stored_tensor> tensors;
  std::vector<stored_file> files;
};

inline bool is_run(const stored_block& b, const extents& of) { return b.offset.size() == 1 && of.size() != 1; }

// "16 x 10"
inline std::string extents_text(const extents& e) {
  std::string s;
  for (const std::int64_t x : e) s += (s.empty() ? "" : " x ") + std::to_string(x);
  return s.empty() ? "a number" : s;
}
inline std::int64_t elements_in(const extents& e) {
  std::int64_t n = 1;
  for (const std::int64_t x : e) n *= x;
  return n;
}

// --- writing --------------------------------------------------------------------------------------------------------

inline void put_extents(std::string& out, const extents& e) {
  out += '[';
  for (std::size_t i = 0; i < e.size(); ++i) out += (i ? "," : "") + std::to_string(e[i]);
  out += ']';
}
// {"step":4,...}; a real is a string of the digits that give it back.
inline std::string text_of(const checkpoint_position& p) {
  std::string out = "{\"step\":" + std::to_string(p.step) + ",\"seed\":" + std::to_string(p.seed) + ",\"integers\":{";
  const auto put_names = [&](const auto& map, const auto& put) {
    bool first = true;
    for (const auto& [name, value] : map) {
      if (!std::exchange(first, false)) out += ',';
      put_json(out, name);
      out += ':';
      put(value);
    }
  };
  put_names(p.integers, [&](std::int64_t v) { out += std::to_string(v); });
  out += "},\"reals\":{";
  put_names(p.reals, [&](double v) {
    char digits[40];
    put_json(out, std::string_view(digits,
                                   static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, v).ptr - digits)));
  });
  return out + "}}";
}
inline std::string text_of(const stored_file& f, const std::vector<stored_tensor>& tensors) {
  std::string out = "{\"name\":";
  put_json(out, f.name);
  out += ",\"bytes\":" + std::to_string(f.bytes) + ",\"header\":\"" + checksum_text(f.header) + "\",\"blocks\":{";
  bool first = true;
  for (const stored_block& b : f.blocks) {
    out += std::exchange(first, false) ? "\n   " : ",\n   ";
    put_json(out, tensors[b.tensor].name);
    out += ":{\"offset\":";
    put_extents(out, b.offset);
    out += ",\"shape\":";
    put_extents(out, b.shape);
    out += ",\"sums\":\"";
    for (const std::uint64_t s : b.sums) out += checksum_text(s);
    out += "\"}";
  }
  return out + "}}";
}
// `files` are texts of stored files.
inline std::string index_text(const checkpoint_index& index, const std::vector<std::string>& files) {
  std::string out = "{\"format\":\"shardwise checkpoint\",\"version\":" + std::to_string(checkpoint_version) +
                    ",\n \"position\":" + text_of(index.position) + ",\n \"mesh\":";
  put_json(out, index.mesh);
  out += ",\"ranks\":" + std::to_string(index.ranks) + ",\"chunk\":" + std::to_string(chunk_bytes) + ",\n \"tensors\":{";
  bool first = true;
  for (const stored_tensor& t : index.tensors) {
    out += std::exchange(first, false) ? "\n  " : ",\n  ";
    put_json(out, t.name);
    out += ":{\"type\":\"" + t.type + "\",\"shape\":";
    put_extents(out, t.shape);
    out += '}';
  }
  out += "},\n \"files\":[";
  for (std::size_t i = 0; i < files.size(); ++i) out += (i ? ",\n  " : "\n  ") + files[i];
  return out + "]}\n";
}

// --- reading --------------------------------------------------------------------------------------------------------

// Members of JSON objects of the file `path`, of the kind that they must be.
class json_members {
 public:
  json_members(const std::string& path, std::string_view text) : path_(path) {
    try {
      all_ = json_reader::object(text);
    } catch (const json_error& e) {
      refuse(path_, std::string("is no JSON object of ours: ") + e.what());
    }
  }
  const json_value& root() const { return all_; }
  const std::string& path() const { return path_; }

  const json_value& at(const json_value& v, const char* name, json_value::kind is) const {
    const json_value* const m = v.is == json_value::kind::object ? v.find(name) : nullptr;
    if (!m || m->is != is)
      refuse(path_, "has " + (m ? std::string(name_of(m->is)) : std::string("nothing")) + " as '" + name + "', where " +
                        name_of(is) + " is required");
    return *m;
  }
  const std::string& text(const json_value& v, const char* name) const { return at(v, name, json_value::kind::string).text; }
  std::uint64_t number(const json_value& v, const char* name) const {
    const json_value& n = at(v, name, json_value::kind::number);
    if (n.negative) refuse(path_, std::string("has a negative '") + name + "'");
    return n.magnitude;
  }
  std::int64_t integer(const json_value& n, const char* name) const {
    if (n.is != json_value::kind::number || (!n.negative && n.magnitude > INT64_MAX))
      refuse(path_, std::string("has no whole number of 64 bits as '") + name + "'");
    return static_cast<std::int64_t>(n.negative ? 0 - n.magnitude : n.magnitude);
  }
  extents sizes(const json_value& v, const char* name) const {
    extents e;
    std::int64_t all = 1;
    for (const json_value& x : at(v, name, json_value::kind::array).items) {
      e.push_back(integer(x, name));
      if (e.back() < 0 || __builtin_mul_overflow(all, e.back() > 0 ? e.back() : 1, &all))
        refuse(path_, std::string("has numbers in '") + name + "' that are no sizes of a tensor");
    }
    return e;
  }
  std::vector<std::uint64_t> sums(const std::string& digits) const {
    std::vector<std::uint64_t> all;
    bool good = digits.size() % 16 == 0;
    for (std::size_t i = 0; good && i < digits.size(); i += 16) {
      std::uint64_t sum = 0;
      const auto [end, error] = std::from_chars(digits.data() + i, digits.data() + i + 16, sum, 16);
      good = error == std::errc{} && end == digits.data() + i + 16;
      all.push_back(sum);
    }
    if (!good) refuse(path_, "has checksums that are no groups of 16 hexadecimal digits");
    return all;
  }

 private:
  std::string path_;
  json_value all_;
};

inline checkpoint_position position_from(const json_members& j, const json_value& v) {
  checkpoint_position p;
  p.step = j.integer(j.at(v, "step", json_value::kind::number), "step");
  p.seed = j.number(v, "seed");
  const json_value &integers = j.at(v, "integers", json_value::kind::object),
                   &reals = j.at(v, "reals", json_value::kind::object);
  for (std::size_t i = 0; i < integers.items.size(); ++i)
    p.integers[integers.names[i]] = j.integer(integers.items[i], "integers");
  for (std::size_t i = 0; i < reals.items.size(); ++i) {
    const std::string& digits = reals.items[i].text;
    double& to = p.reals[reals.names[i]];
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), to);
    if (error != std::errc{} || end != digits.data() + digits.size())
      refuse(j.path(), "has '" + digits + "' among its reals");
  }
  return p;
}

// Law: what is returned is whole: every file's blocks lie in their tensors, and those of a tensor tile it. Else throws file_error.
inline checkpoint_index index_from(const std::string& path, std::string_view text) {
  const json_members j(path, text);
  const json_value& root = j.root();
  if (j.text(root, "format") != "shardwise checkpoint") refuse(path, "is no index of a shardwise checkpoint");
  if (const std::uint64_t version = j.number(root, "version"); version != checkpoint_version)
    refuse(path, "is of version " + std::to_string(version) + "; this program reads version " +
                     std::to_string(checkpoint_version) + ": take the library's version that wrote it");
  if (j.number(root, "chunk") != chunk_bytes) refuse(path, "has checksums of other chunks than version 1 has");
  checkpoint_index index;
  index.position = position_from(j, j.at(root, "position", json_value::kind::object));
  index.mesh = j.text(root, "mesh");
  index.ranks = j.number(root, "ranks");
  std::map<std::string, std::size_t> by_name;
  const json_value& tensors = j.at(root, "tensors", json_value::kind::object);
  for (std::size_t i = 0; i < tensors.items.size(); ++i) {
    by_name[tensors.names[i]] = i;
    index.tensors.push_back({tensors.names[i], j.text(tensors.items[i], "type"), j.sizes(tensors.items[i], "shape")});
  }
  std::vector<std::vector<const stored_block*>> parts(index.tensors.size());
  for (const json_value& f : j.at(root, "files", json_value::kind::array).items) {
    stored_file& file = index.files.emplace_back();
    file.name = j.text(f, "name");
    if (file.name.empty() || file.name[0] == '.' || file.name.find('/') != file.name.npos)
      refuse(path, "names a file '" + file.name + "', which is none of its folder");
    file.bytes = j.number(f, "bytes");
    const std::vector<std::uint64_t> header = j.sums(j.text(f, "header"));
    if (header.size() != 1) refuse(path, "has no checksum of the header of '" + file.name + "'");
    file.header = header[0];
    const json_value& blocks = j.at(f, "blocks", json_value::kind::object);
    for (std::size_t i = 0; i < blocks.items.size(); ++i) {
      const auto of = by_name.find(blocks.names[i]);
      if (of == by_name.end()) refuse(path, "has a block of '" + blocks.names[i] + "', which is none of its tensors");
      file.blocks.push_back({of->second, j.sizes(blocks.items[i], "offset"), j.sizes(blocks.items[i], "shape"),
                             j.sums(j.text(blocks.items[i], "sums"))});
      const stored_block& b = file.blocks.back();
      const stored_tensor& t = index.tensors[b.tensor];
      const extents whole = is_run(b, t.shape) ? extents{elements_in(t.shape)} : t.shape;
      bool inside = b.offset.size() == whole.size() && b.shape.size() == whole.size();
      for (std::size_t d = 0; inside && d < whole.size(); ++d)
        inside = b.offset[d] <= whole[d] && b.shape[d] <= whole[d] - b.offset[d];
      if (!inside)
        refuse(path, "has a block of '" + t.name + "' in '" + file.name + "' that is no part of it: " +
                         extents_text(b.shape) + " from " + extents_text(b.offset) + ", of " + extents_text(t.shape));
    }
  }
  for (const stored_file& f : index.files)
    for (const stored_block& b : f.blocks) parts[b.tensor].push_back(&b);
  for (std::size_t t = 0; t < parts.size(); ++t) {
    std::int64_t left = elements_in(index.tensors[t].shape);
    bool apart = true;
    for (std::size_t i = 0; i < parts[t].size(); ++i) {
      left -= elements_in(parts[t][i]->shape);
      if (is_run(*parts[t][i], index.tensors[t].shape) != is_run(*parts[t][0], index.tensors[t].shape))
        refuse(path, "has blocks of '" + index.tensors[t].name +
                         "' that are boxes and others that are runs of its elements; a checkpoint has one or the other");
      for (std::size_t k = 0; k < i; ++k) {
        bool meet = true;
        for (std::size_t d = 0; d < parts[t][i]->offset.size(); ++d) {
          const std::int64_t a = parts[t][i]->offset[d], b = parts[t][k]->offset[d];
          meet = meet && a < b + parts[t][k]->shape[d] && b < a + parts[t][i]->shape[d];
        }
        apart = apart && !meet;
      }
    }
    if (left != 0 || !apart)
      refuse(path, "has blocks of '" + index.tensors[t].name + "' that " + (apart ? "leave a part of it out" : "overlap") +
                       "; each element must stand in one file");
  }
  return index;
}

}  // namespace storage

}  // namespace shardwise::inline v0_1
