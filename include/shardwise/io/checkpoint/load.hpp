// SPDX-License-Identifier: Apache-2.0
// load: a checkpoint into a program of any plan and mesh: each rank reads what its own blocks are made of.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <shardwise/io/checkpoint/block_reader.hpp>
#include <shardwise/io/checkpoint/folder.hpp>
#include <shardwise/io/checkpoint/meeting.hpp>
#include <shardwise/io/checkpoint/read_leaves.hpp>
#include <shardwise/support/edit_distance.hpp>

namespace shardwise::inline v0_1 {

// What is loaded: all that the program holds, which must be what the checkpoint has; or parameters and buffers alone, as for a program
// that does not train: states of either side are left as they are. Or weights, the same for a program that has buffers of its own besides
// (kv_cache): of those that the checkpoint does not have each keeps what it holds, or gets its initial value.
enum class load_contents { all, parameters, weights };

struct load_options {
  load_contents contents = load_contents::all;
  std::optional<std::int64_t> step{};  // of which checkpoint; the newest if it is not said
};

// What a load gives: where the run was, which checkpoint that is, and how much this rank has read.
struct loaded_checkpoint : checkpoint_position {
  std::string path, mesh;
  std::uint64_t bytes_read = 0;
};

namespace storage {

inline std::string nearest_name(const std::string& name, const std::vector<stored_tensor>& among) {
  std::string best;
  int least = 1 << 20;
  for (const stored_tensor& t : among)
    if (const int d = shardwise::detail::edit_distance(t.name, name); d < least) {
      least = d;
      best = t.name;
    }
  return best;
}

// The number of each leaf's tensor in the index. Throws at the first that is missing, has another shape or type, or is left over.
inline std::vector<std::size_t> matched(const std::vector<saved_leaf>& leaves, const std::vector<stored_tensor>& wanted,
                                        const checkpoint_index& index, const std::string& path, bool states) {
  std::map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < index.tensors.size(); ++i) by_name[index.tensors[i].name] = i;
  std::vector<std::size_t> number;
  const char* const same_model = "; load it into a program of the same model";
  const char* const remedy =
      states ? "; load it into the program that saved it, or parameters and buffers alone: load_contents::parameters"
             : same_model;
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    const auto it = by_name.find(leaves[k].name);
    if (it == by_name.end()) {
      const std::string near = nearest_name(leaves[k].name, index.tensors);
      refuse(path, "has no '" + leaves[k].name + "', which the program holds" +
                       (near.empty() ? "" : "; its nearest name is '" + near + "'") +
                       (leaves[k].is_state ? remedy : same_model) +
                       (leaves[k].buffer >= 0 ? ", or where the buffer is the program's own: load_contents::weights" : ""));
    }
    const stored_tensor& t = index.tensors[it->second];
    if (t.shape != wanted[k].shape || t.type != wanted[k].type)
      refuse(path, "has '" + t.name + "' as " + t.type + " " + extents_text(t.shape) + ", and the program as " +
                       wanted[k].type + " " + extents_text(wanted[k].shape) +
                       "; load it into a program of the same model and element type");
    number.push_back(it->second);
    by_name.erase(it);
  }
  for (const auto& [name, at] : by_name) {
    const bool state = name.find(':') != name.npos;
    if (state && !states) continue;
    refuse(path, "has '" + name + "', which the program does not hold" +
                     (by_name.size() > 1 ? ", and " + std::to_string(by_name.size() - 1) + " more such" : "") +
                     (state ? remedy : same_model));
  }
  return number;
}

// The parameters of a flat group have one count of steps.
template <class T>
void check_shared_counts(const std::vector<saved_leaf>& leaves, const std::vector<std::vector<T>>& blocks,
                         const std::string& path) {
  std::map<int, std::size_t> first;
  for (std::size_t k = 0; k < leaves.size(); ++k)
    if (const std::size_t other = first.try_emplace(leaves[k].id, k).first->second; blocks[other] != blocks[k])
      refuse(path,
             "has other values as '" + leaves[other].name + "' than as '" + leaves[k].name +
                 "', and the program keeps one of them for both, whose parameters lie in one flat group; load it into a "
                 "program without flat_parameters");
}

}  // namespace storage

// Loads the newest checkpoint of `folder` (or the one of a step), saved under any plan and mesh: parameters, buffers and states by
// name, element by element what was saved. Collective. Throws checkpoint_error on all ranks, and before anything is written, if a file
// is missing, torn or damaged, or the program holds other tensors. Price: of what the program holds already this rank's blocks once more
// in memory, for as long as the load takes; what nobody has given a value yet is read into its place, so load before initialise.
template <class Executor>
loaded_checkpoint load(Executor& ex, const std::string& folder, const load_options& options = {}) {
  auto& rank = runtime::block_access::rank(ex);
  const bool states = options.contents == load_contents::all, weights = options.contents == load_contents::weights;
  loaded_checkpoint found;
  std::optional<storage::block_reader> reader;
  storage::read_leaves<Executor> all_read{ex};
  std::vector<storage::saved_leaf>& leaves = all_read.leaves;
  const auto read = [&] {
    const storage::checkpoint_folder source(folder);
    const std::vector<storage::recorded_checkpoint> all = source.record();
    const storage::recorded_checkpoint* chosen = &all.back();
    if (options.step) {
      chosen = nullptr;
      std::string known;
      for (const auto& c : all) {
        if (c.step == *options.step) chosen = &c;
        known += (known.empty() ? "" : ", ") + std::to_string(c.step);
      }
      if (!chosen)
        storage::refuse(folder,
                        "has no checkpoint of step " + std::to_string(*options.step) + "; it has those of steps " + known);
    }
    found.path = source.inside(chosen->name);
    const std::string path = found.path + "/index.json";
    const std::string text = storage::input_file(path).whole();
    if (const std::uint64_t sum = storage::checksum(text); sum != chosen->index)
      storage::refuse(path, "is damaged: its checksum is " + storage::checksum_text(sum) + ", and the record says " +
                                storage::checksum_text(chosen->index) + (all.size() > 1 ? "; load an earlier step" : ""));
    reader.emplace(found.path, storage::index_from(path, text));
    static_cast<checkpoint_position&>(found) = reader->index().position;
    found.mesh = reader->index().mesh;
    const auto has = [&](const std::string& name) {
      const auto& stored = reader->index().tensors;
      return std::any_of(stored.begin(), stored.end(), [&](const storage::stored_tensor& t) { return t.name == name; });
    };
    for (storage::saved_leaf& leaf : storage::leaves_of<Executor>("load")) {
      if (leaf.is_state && !states) continue;
      if (weights && leaf.buffer >= 0 && !has(leaf.name)) continue;  // the program's own
      leaves.push_back(std::move(leaf));
    }
    const std::vector<std::size_t> number =
        storage::matched(leaves, storage::tensors_of(leaves), reader->index(), found.path, states);
    for (std::size_t f = 0; f < reader->index().files.size(); ++f)  // all files, by one rank each
      if (f % static_cast<std::size_t>(rank.size()) == static_cast<std::size_t>(rank.index())) (void)reader->file(f);
    all_read.read([&](std::size_t k, const runtime::layout& l, auto* to) { reader->read(number[k], l, to); });
    storage::check_shared_counts(leaves, all_read.blocks, found.path);
    return found.path + " " + storage::checksum_text(chosen->index) +
           (states    ? ""
            : weights ? ", what it has of parameters and buffers"
                      : ", its parameters and buffers");
  };
  try {
    const std::vector<std::string> indices = storage::together(rank, "load", read);
    for (const std::string& index : indices)
      if (index != indices[0])
        throw checkpoint_error("shardwise: load: ranks have read different checkpoints, " + indices[0] + " and " + index +
                               "; give all ranks the same folder and options, and let no run save into it meanwhile");
  } catch (...) {
    all_read.take_back();
    throw;
  }
  all_read.give();
  if (weights) {
    for (const storage::saved_leaf& leaf : leaves)
      if (leaf.buffer >= 0) runtime::block_access::buffer_given(ex, leaf.buffer);
    runtime::block_access::draw_other_buffers(ex, found.seed);
  }
  runtime::block_access::all_given(ex);
  found.bytes_read = reader->bytes_read();
  return found;
}

}  // namespace shardwise::inline v0_1
