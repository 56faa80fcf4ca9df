// SPDX-License-Identifier: Apache-2.0
// load_weights, save_weights: parameters and buffers out of a safetensors file of another library, and into one, under its names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <shardwise/io/checkpoint/leaves.hpp>
#include <shardwise/io/checkpoint/meeting.hpp>
#include <shardwise/io/checkpoint/read_leaves.hpp>
#include <shardwise/io/checkpoint/runs.hpp>
#include <shardwise/io/checkpoint/weight_names.hpp>
#include <shardwise/io/safetensors/reader.hpp>
#include <shardwise/io/safetensors/writer.hpp>

namespace shardwise::inline v0_1 {

namespace storage {

// Where the elements of a program's tensor lie in one of the file: element (i, j) at begin + row(i) * stride[0] + j * stride[1].
struct weight_place {
  std::string name;
  extents shape;   // of the file's tensor
  extents stride;  // of the program's dims, in it
  std::int64_t begin = 0, elements = 0, head = 0;

  std::int64_t row(std::int64_t i) const {
    if (head == 0) return i;
    const std::int64_t within = i % head, half = head / 2;
    return i - within + (within < half ? 2 * within : 2 * (within - half) + 1);
  }
  std::int64_t steps(std::size_t dim, std::int64_t i) const { return (dim == 0 ? row(i) : i) * stride[dim]; }
  // The first and the last of the file's rows that n > 0 of the program's, from i on, are among: whole heads where these are reordered.
  std::int64_t first_row(std::int64_t i) const { return head == 0 ? i : i - i % head; }
  std::int64_t last_row(std::int64_t i, std::int64_t n) const {
    return head == 0 ? i + n - 1 : first_row(i + n - 1) + head - 1;
  }
};
inline weight_place place_of(file_weight w, const extents& shape) {
  weight_place p;
  p.name = std::move(w.name);
  p.head = w.form.head;
  p.shape = shape;
  if (w.form.transposed) std::swap(p.shape[0], p.shape[1]);
  p.elements = elements_in(shape);
  const std::size_t rank = shape.size();
  if (w.form.of > 1) p.shape[static_cast<std::size_t>(w.form.dim)] *= w.form.of;
  extents dense(rank, 1);
  for (std::size_t d = rank; d-- > 1;) dense[d - 1] = dense[d] * p.shape[d];
  if (w.form.of > 1) {
    const auto d = static_cast<std::size_t>(w.form.dim);
    p.begin = p.shape[d] / w.form.of * w.form.part * dense[d];
  }
  p.stride = dense;
  if (w.form.transposed) std::swap(p.stride[0], p.stride[1]);
  return p;
}

// The places of a program's parameters and buffers. Throws where two are one, or a tensor of the file would be filled in part.
template <class Names>
std::vector<weight_place> places_of(const std::vector<saved_leaf>& leaves, bool once) {
  std::vector<weight_place> all;
  std::map<std::string, std::pair<extents, std::int64_t>> filled;
  std::set<std::pair<std::string, std::int64_t>> seen;
  for (const saved_leaf& leaf : leaves) {
    all.push_back(place_of(name_map<Names>::of(leaf.name), leaf.shape));
    const weight_place& p = all.back();
    const bool is_new = seen.insert({p.name, p.begin}).second;
    if (once && !is_new)
      throw std::invalid_argument("'" + leaf.name + "' is '" + p.name +
                                  "' in the file, as another tensor of the program is; give it a name or a part of its own");
    auto& f = filled.try_emplace(p.name, p.shape, 0).first->second;
    if (f.first != p.shape)
      throw std::invalid_argument("'" + leaf.name + "' would be a part of '" + p.name + "' of " + extents_text(p.shape) +
                                  ", and another tensor of the program of " + extents_text(f.first));
    if (is_new) f.second += p.elements;
  }
  for (const auto& [name, f] : filled)
    if (f.second != elements_in(f.first))
      throw std::invalid_argument("of '" + name + "', " + extents_text(f.first) +
                                  " in the file, the program's tensors are " + std::to_string(f.second) +
                                  " elements; name the other parts, too");
  return all;
}
template <class Executor>
std::vector<saved_leaf> weights_of(const char* call_name) {
  std::vector<saved_leaf> all;
  for (saved_leaf& leaf : leaves_of<Executor>(call_name))
    if (!leaf.is_state) all.push_back(std::move(leaf));
  return all;
}

// Elements of the file from number `from` on, whose type T holds without loss.
template <class From, class T>
void read_as(const safetensors_reader& file, const safetensors_entry& e, std::int64_t from, std::vector<T>& to) {
  std::vector<From> raw(to.size());
  file.read(e, static_cast<std::uint64_t>(from) * sizeof(From), raw.data(), raw.size() * sizeof(From));
  for (std::size_t i = 0; i < raw.size(); ++i) to[i] = static_cast<T>(raw[i]);
}
template <class T>
void read_elements(const safetensors_reader& file, const safetensors_entry& e, std::int64_t from, std::vector<T>& to) {
  if (e.type == safetensors_type(dtype_v<T>)) return read_as<T>(file, e, from, to);
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (e.type == "BF16") return read_as<bf16>(file, e, from, to);
    if (e.type == "F16") return read_as<f16>(file, e, from, to);
  }
  if constexpr (std::is_same_v<T, double>)
    if (e.type == "F32") return read_as<float>(file, e, from, to);
  refuse(file.path(), "holds '" + e.name + "' as " + e.type + ", and the program as " + safetensors_type(dtype_v<T>) +
                          ", which does not hold all its values; convert the file, or take a program of that element type");
}

// This rank's block, row-major, a box of `shape` or a run of its elements: the bytes from its first element to its last one are read, of
// each box that a run is made of.
template <class T>
std::vector<T> read_weight(const safetensors_reader& file, const weight_place& p, const extents& shape,
                           const runtime::layout& l) {
  std::vector<T> block;
  if (static_cast<std::size_t>(l.rank) != shape.size()) {
    each_box(shape, l.origin[0], l.ext[0], [&](const runtime::layout& box, std::int64_t) {
      const std::vector<T> next = read_weight<T>(file, p, shape, box);
      block.insert(block.end(), next.begin(), next.end());
    });
    return block;
  }
  block.resize(static_cast<std::size_t>(l.numel()));
  if (block.empty()) return block;
  std::int64_t first = p.begin, last = p.begin;
  for (int d = 0; d < l.rank; ++d) {
    const auto dim = static_cast<std::size_t>(d);
    first += (d == 0 ? p.first_row(l.origin[d]) : l.origin[d]) * p.stride[dim];
    last += (d == 0 ? p.last_row(l.origin[d], l.ext[d]) : l.origin[d] + l.ext[d] - 1) * p.stride[dim];
  }
  std::vector<T> span(static_cast<std::size_t>(last - first + 1));
  read_elements(file, file.entry(p.name), first, span);
  std::int64_t at[max_rank]{};
  for (T& x : block) {
    std::int64_t from = p.begin - first;
    for (int d = 0; d < l.rank; ++d) from += p.steps(static_cast<std::size_t>(d), l.origin[d] + at[d]);
    x = span[static_cast<std::size_t>(from)];
    for (int d = l.rank - 1; d >= 0 && ++at[d] == l.ext[d]; --d) at[d] = 0;
  }
  return block;
}

inline void check_file(const safetensors_reader& file, const std::vector<saved_leaf>& leaves,
                       const std::vector<weight_place>& places, bool (*leaves_out)(const std::string&)) {
  std::set<std::string> read;
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    const safetensors_entry& e = file.entry(places[k].name);
    if (extents(e.shape.begin(), e.shape.end()) != places[k].shape)
      refuse(file.path(), "has '" + e.name + "' of " + extents_text(extents(e.shape.begin(), e.shape.end())) + ", and '" +
                              leaves[k].name + "' of the program makes it " + extents_text(places[k].shape));
    read.insert(e.name);
  }
  for (const safetensors_entry& e : file.entries())
    if (read.count(e.name) == 0 && !leaves_out(e.name))
      refuse(file.path(),
             "has '" + e.name +
                 "', which is no tensor of the program; if it is meant to be left out, say so in the names: left_out<\"" +
                 e.name + "\">");
}

}  // namespace storage

// Parameters and buffers out of the safetensors file `path`, whose names Names gives (weight_names<...>): each rank reads its own part.
// Elements of fewer bits become the program's, others are refused. States stay as they are: reset_states() begins anew. Collective.
// Throws checkpoint_error on all ranks, before anything is written, where file and program do not fit.
template <class Names = own_names, class Executor>
void load_weights(Executor& ex, const std::string& path) {
  using T = typename Executor::element;
  static_assert(storage::checked_names<Names, typename runtime::block_access::program<Executor>::type>::ok);
  auto& rank = runtime::block_access::rank(ex);
  storage::read_leaves<Executor> all_read{ex};
  const auto read = [&] {
    const auto& leaves = all_read.leaves = storage::weights_of<Executor>("load_weights");
    const std::vector<storage::weight_place> places = storage::places_of<Names>(leaves, false);
    const safetensors_reader file(path);
    storage::check_file(file, leaves, places, &storage::name_map<Names>::leaves_out);
    all_read.read([&](std::size_t k, const runtime::layout& l, T* to) {
      const std::vector<T> block = storage::read_weight<T>(file, places[k], leaves[k].shape, storage::dense_layout(l));
      storage::copy_block(block.data(), storage::dense_layout(l), to, l);
    });
    return std::string();
  };
  try {
    storage::together(rank, "load_weights", read);
  } catch (...) {
    all_read.take_back();
    throw;
  }
  all_read.give();
  runtime::block_access::all_given(ex);
}

// Parameters and buffers into the safetensors file `path`, whole, under the names that Names gives; rank 0 writes it. What was there is
// replaced when the new file is on the disk. Collective; throws checkpoint_error on all ranks.
template <class Names = own_names, class Executor>
void save_weights(Executor& ex, const std::string& path, const file_calls& calls = {}) {
  using T = typename Executor::element;
  static_assert(storage::checked_names<Names, typename runtime::block_access::program<Executor>::type>::ok);
  auto& rank = runtime::block_access::rank(ex);
  std::vector<storage::saved_leaf> leaves;
  std::vector<storage::weight_place> places;
  std::vector<safetensors_entry> order;
  const std::string made = path + ".new";
  std::optional<safetensors_writer> file;
  const auto give_up = [&] {
    file.reset();
    if (rank.index() == 0) std::remove(made.c_str());
  };
  storage::together(rank, "save_weights", [&] {
    leaves = storage::weights_of<Executor>("save_weights");
    runtime::block_access::check_parameters("save_weights", ex);
    places = storage::places_of<Names>(leaves, true);
    std::set<std::string> known;
    for (const storage::weight_place& p : places)
      if (known.insert(p.name).second)
        order.push_back({p.name, safetensors_type(dtype_v<T>), {p.shape.begin(), p.shape.end()}, 0, 0});
    storage::safetensors_head(order, {});
    if (rank.index() != 0) return std::string();
    try {
      file.emplace(made, order, std::map<std::string, std::string>{{"format", "pt"}}, calls);
    } catch (...) {
      give_up();
      throw;
    }
    return std::string();
  });
  std::string error;
  for (const safetensors_entry& e : order) {
    std::vector<T> whole(rank.index() == 0 ? static_cast<std::size_t>(e.end - e.begin) / sizeof(T) : 0);
    for (std::size_t k = 0; k < leaves.size(); ++k) {
      if (places[k].name != e.name) continue;
      const std::vector<T> part = runtime::block_access::whole(ex, leaves[k].id, 0);
      const storage::extents& shape = leaves[k].shape;
      storage::extents at(shape.size(), 0);
      for (const T& x : part) {
        std::int64_t to = places[k].begin;
        for (std::size_t d = 0; d < shape.size(); ++d) to += places[k].steps(d, at[d]);
        whole[static_cast<std::size_t>(to)] = x;
        for (std::size_t d = shape.size(); d-- > 0 && ++at[d] == shape[d];) at[d] = 0;
      }
    }
    if (!file || !error.empty()) continue;
    try {
      file->put(whole.data(), whole.size() * sizeof(T));
    } catch (const file_error& x) {
      error = x.what();
    }
  }
  storage::on_first(rank, "save_weights", [&] {
    try {
      if (!error.empty()) throw file_error(error);
      file->finish();
      storage::rename_file(made, path, calls);
    } catch (...) {
      give_up();
      throw;
    }
    const std::size_t slash = path.rfind('/');
    storage::sync_folder(slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash), calls);
    return std::string();
  });
}

}  // namespace shardwise::inline v0_1
