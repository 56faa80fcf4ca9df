// SPDX-License-Identifier: Apache-2.0
// save: what a program holds, written by all ranks together; at any moment the folder has a whole checkpoint, the old or the new one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <shardwise/io/checkpoint/folder.hpp>
#include <shardwise/io/checkpoint/leaves.hpp>
#include <shardwise/io/checkpoint/meeting.hpp>
#include <shardwise/io/print.hpp>
#include <shardwise/io/safetensors/writer.hpp>

namespace shardwise::inline v0_1 {

struct save_options {
  int keep_last = 0;          // the folder keeps so many of the newest; 0: all
  bool consolidated = false;  // rank 0 writes one file of whole tensors, model.safetensors, in place of a file for each rank
  file_calls calls = {};
};

namespace storage {

// Writes blocks one after the other, and notes where each stands and its checksums.
class block_writer {
 public:
  // Of each block tensor, offset and shape.
  block_writer(const std::string& folder, std::string name, const std::vector<stored_tensor>& tensors,
               std::vector<stored_block> blocks, const file_calls& calls)
      : file_(folder + "/" + name, entries_of(tensors, blocks), {{"format", "pt"}}, calls) {
    done_.name = std::move(name);
    for (const safetensors_entry& e : file_.entries())  // in the file's order
      for (stored_block& b : blocks)
        if (tensors[b.tensor].name == e.name) done_.blocks.push_back(std::move(b));
  }
  std::vector<stored_block>& blocks() { return done_.blocks; }
  template <class T>
  void put(stored_block& b, const std::vector<T>& elements) {
    const auto* bytes = reinterpret_cast<const char*>(elements.data());
    for (std::uint64_t left = elements.size() * sizeof(T); left > 0;) {
      const std::uint64_t now = left < chunk_bytes ? left : chunk_bytes;
      b.sums.push_back(checksum(bytes, static_cast<std::size_t>(now)));
      file_.put(bytes, static_cast<std::size_t>(now));
      bytes += now;
      left -= now;
    }
  }
  stored_file finish() {
    file_.finish();
    done_.bytes = file_.file_bytes();
    done_.header = file_.header_checksum();
    return std::move(done_);
  }

 private:
  static std::vector<safetensors_entry> entries_of(const std::vector<stored_tensor>& tensors,
                                                   const std::vector<stored_block>& blocks) {
    std::vector<safetensors_entry> all;
    for (const stored_block& b : blocks)
      all.push_back({tensors[b.tensor].name, tensors[b.tensor].type, {b.shape.begin(), b.shape.end()}, 0, 0});
    return all;
  }

  safetensors_writer file_;
  stored_file done_;
};

inline std::string rank_file(int rank) {
  char name[48];
  std::snprintf(name, sizeof name, "rank-%05d.safetensors", rank);
  return name;
}

// The blocks that this rank writes, and no other.
template <class Executor>
std::vector<stored_block> own_blocks(Executor& ex, const std::vector<saved_leaf>& leaves) {
  const int rank = runtime::block_access::rank(ex).index();
  std::vector<stored_block> own;
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    const runtime::layout& l = ex.layout_of(leaves[k].id);
    if (l.numel() > 0 && writes_block<Executor>(leaves[k].id, static_cast<int>(k), rank))
      own.push_back({k, extents(l.origin, l.origin + l.rank), extents(l.ext, l.ext + l.rank), {}});
  }
  return own;
}
// This rank's block of leaf `id` as a file has it: row-major.
template <class Executor>
auto dense_block(Executor& ex, int id) {
  using T = typename Executor::element;
  const runtime::layout& l = ex.layout_of(id);
  std::vector<T> dense(static_cast<std::size_t>(l.numel()));
  runtime::block_access::read(ex, id, [&](const T* block) { copy_block(block, l, dense.data(), dense_layout(l)); });
  return dense;
}

// This rank's file.
template <class Executor>
stored_file write_own(Executor& ex, const std::string& folder, const std::vector<saved_leaf>& leaves,
                      const std::vector<stored_tensor>& tensors, const file_calls& calls) {
  block_writer file(folder, rank_file(runtime::block_access::rank(ex).index()), tensors, own_blocks(ex, leaves), calls);
  for (stored_block& b : file.blocks()) file.put(b, dense_block(ex, leaves[b.tensor].id));
  return file.finish();
}

// Whole tensors, which rank 0 writes. Collective; what rank 0 fails in, `error` says when all tensors have been passed.
template <class Executor>
std::string write_whole(Executor& ex, const std::string& folder, const std::vector<saved_leaf>& leaves,
                        const std::vector<stored_tensor>& tensors, const file_calls& calls) {
  auto& rank = runtime::block_access::rank(ex);
  std::vector<stored_block> all;
  for (std::size_t k = 0; k < tensors.size(); ++k)
    all.push_back({k, extents(tensors[k].shape.size(), 0), tensors[k].shape, {}});
  // every rank knows the order, rank 0 has the file
  std::vector<safetensors_entry> order;
  for (std::size_t k = 0; k < tensors.size(); ++k)
    order.push_back({tensors[k].name, tensors[k].type, {tensors[k].shape.begin(), tensors[k].shape.end()}, 0, 0});
  safetensors_head(order, {});
  std::vector<block_writer> file;
  std::string error;
  const auto attempt = [&](const auto& f) {
    if (!error.empty() || rank.index() != 0) return;
    try {
      f();
    } catch (const std::exception& e) {
      error = e.what();
    }
  };
  attempt([&] { file.emplace_back(folder, "model.safetensors", tensors, std::move(all), calls); });
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::size_t k = 0;
    while (tensors[k].name != order[i].name) ++k;
    const auto whole = runtime::block_access::whole(ex, leaves[k].id, 0);
    attempt([&] { file[0].put(file[0].blocks()[i], whole); });
  }
  std::string text;
  attempt([&] { text = text_of(file[0].finish(), tensors); });
  return on_first(rank, "save", [&] {
    if (!error.empty()) throw file_error(error);
    return text;
  });
}

// A save between its beginning and its end: what will stand in the index, and where. Equal on all ranks.
struct started_save {
  checkpoint_folder target;
  checkpoint_position position;
  save_options options;
  std::string name, mesh;
  std::vector<saved_leaf> leaves;
  std::vector<stored_tensor> tensors;

  std::string made() const { return target.inside(target.partial(name)); }

  // Checks arguments and makes the folder. Collective.
  template <class Executor>
  static started_save begin(Executor& ex, const std::string& folder, const checkpoint_position& position,
                            const save_options& options) {
    auto& rank = runtime::block_access::rank(ex);
    started_save s{checkpoint_folder(folder), position, options, {}, mesh_text<typename Executor::mesh_type>(), {}, {}};
    together(rank, "save", [&] {
      s.leaves = leaves_of<Executor>("save");
      runtime::block_access::check_parameters("save", ex);
      if (ex.accumulated() != 0)
        throw std::logic_error(
            "gradients have been added up that no update has seen, and a checkpoint has none of them; call "
            "update(env) or zero_gradients() first");
      if (position.step < 0 || options.keep_last < 0)
        throw std::invalid_argument("step " + std::to_string(position.step) + " and keep_last " +
                                    std::to_string(options.keep_last) + " are given; both are at least 0");
      return std::string();
    });
    agree_on(rank, "save",
             folder + " " + text_of(position) + " keep " + std::to_string(options.keep_last) +
                 (options.consolidated ? " consolidated" : ""),
             "position or options");
    s.tensors = tensors_of(s.leaves);
    s.name = on_first(rank, "save", [&] {
      if (folders_being_written::has(folder))
        throw std::logic_error("an async_save into '" + folder + "' is under way; wait() for it before the next one begins");
      return s.target.begin(position.step);
    });
    return s;
  }
  // files() -> what each rank's files hold, as texts. The checkpoint becomes the newest. Collective.
  template <class Rank, class F>
  std::string end(Rank& rank, const F& files) const {
    try {
      const std::vector<std::string> written = files();
      on_first(rank, "save", [&] {
        checkpoint_index index;
        index.position = position;
        index.mesh = mesh;
        index.ranks = static_cast<std::uint64_t>(rank.size());
        index.tensors = tensors;
        target.commit(name, position.step, index_text(index, written), options.calls);
        return std::string();
      });
    } catch (const checkpoint_error&) {
      if (rank.index() == 0) target.give_up(name);
      throw;
    }
    on_first(rank, "save", [&] {
      target.keep_newest(options.keep_last, options.calls);
      return std::string();
    });
    return target.inside(name);
  }
};

}  // namespace storage

// Saves parameters, buffers and the optimizer's states (moments, counts of steps, a dynamic loss scale) and `position` into a new
// checkpoint in `folder`, which becomes the newest when all of it is on the disk; its path is returned, on every rank. Each block is
// written by one rank. Collective. Throws checkpoint_error on all ranks if one could not write, or has a parameter without value;
// the folder's earlier checkpoints are then as they were. One run at a time saves into a folder, which all ranks reach.
template <class Executor>
std::string save(Executor& ex, const std::string& folder, const checkpoint_position& position = {},
                 const save_options& options = {}) {
  auto& rank = runtime::block_access::rank(ex);
  const storage::started_save s = storage::started_save::begin(ex, folder, position, options);
  return s.end(rank, [&]() -> std::vector<std::string> {
    if (options.consolidated) return {storage::write_whole(ex, s.made(), s.leaves, s.tensors, options.calls)};
    return storage::together(rank, "save", [&] {
      return storage::text_of(storage::write_own(ex, s.made(), s.leaves, s.tensors, options.calls), s.tensors);
    });
  });
}

}  // namespace shardwise::inline v0_1
