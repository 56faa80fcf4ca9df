// SPDX-License-Identifier: Apache-2.0
// async_save: a checkpoint that is written while the program goes on. The ranks' blocks are copied, and a thread of each rank writes the
// copies; the checkpoint is recorded when all ranks wait for it.
#pragma once

#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <shardwise/io/checkpoint/save.hpp>

namespace shardwise::inline v0_1 {

// A save that is under way, of one rank. It must be waited for, by all ranks and in the program's order; one that is not leaves no
// checkpoint, which the destructor says on stderr, unless an exception is on its way. The rank must outlive it.
template <class Rank>
class [[nodiscard]] pending_save {
 public:
  pending_save(pending_save&&) noexcept = default;
  pending_save& operator=(pending_save&&) = delete;  // whoever drops one says so, by wait()
  ~pending_save() {
    if (!state_) return;
    if (state_->thread.joinable()) state_->thread.join();
    if (!state_->over) {
      leave();
      if (std::uncaught_exceptions() == 0 && rank_->index() == 0)
        std::fprintf(
            stderr,
            "shardwise: async_save: nobody waited for the save of step %lld into '%s', so it is no checkpoint; call wait()\n",
            static_cast<long long>(state_->save.position.step), state_->save.target.path().c_str());
    }
  }

  // Whether this rank's file is written, or has failed: then wait() does not wait for a disk of this rank.
  bool done() const { return state_->done.load(std::memory_order_acquire); }

  // Returns the checkpoint's path, on every rank, when it is the newest one and on the disk. Collective, but where it has returned
  // before. Throws checkpoint_error on all ranks if one could not write; the folder's earlier checkpoints are then as they were.
  std::string wait() {
    if (state_->thread.joinable()) state_->thread.join();
    if (state_->over) return state_->path;
    state_->over = true;
    struct leaving {
      pending_save& p;
      ~leaving() { p.leave(); }
    } const at_end{*this};
    state_->path = state_->save.end(*rank_, [&] {
      return storage::together(*rank_, "save", [&] {
        if (!state_->error.empty()) throw file_error(state_->error);
        return state_->written;
      });
    });
    return state_->path;
  }

 private:
  template <class Executor>
  friend auto async_save(Executor& ex, const std::string& folder, const checkpoint_position& position,
                         const save_options& options);

  struct state {
    storage::started_save save;
    std::thread thread;
    std::string written, error, path;
    std::atomic<bool> done{false};
    bool over = false;
  };
  pending_save(Rank& rank, storage::started_save&& s) : rank_(&rank), state_(new state{std::move(s), {}, {}, {}, {}}) {}
  void leave() {
    if (rank_->index() == 0) storage::folders_being_written::remove(state_->save.target.path());
  }

  Rank* rank_;
  std::unique_ptr<state> state_;
};

// As save, but returns as soon as this rank's blocks are copied: the program may run on, and the checkpoint has what it was when this was
// called. Price: this rank's part of the checkpoint once more in the host's memory until it is written, and a thread that writes. Collective.
// Into one folder one at a time; consolidated files are for save, since one rank would hold all tensors whole. Throws as save does.
template <class Executor>
auto async_save(Executor& ex, const std::string& folder, const checkpoint_position& position = {},
                const save_options& options = {}) {
  auto& rank = runtime::block_access::rank(ex);
  using rank_type = std::remove_reference_t<decltype(rank)>;
  using T = typename Executor::element;
  if (options.consolidated)
    throw std::invalid_argument(
        "shardwise: async_save: consolidated is given, and one file of whole tensors would take the memory of all of them on one rank; "
        "leave it out, or use save");
  pending_save<rank_type> pending(rank, storage::started_save::begin(ex, folder, position, options));
  auto& state = *pending.state_;
  if (rank.index() == 0) storage::folders_being_written::add(folder);
  struct part {
    std::vector<storage::stored_block> blocks;
    std::vector<std::vector<T>> elements;  // by tensor
  };
  try {
    storage::together(rank, "save", [&] {
      const storage::started_save& s = state.save;
      part mine{storage::own_blocks(ex, s.leaves), {}};
      mine.elements.resize(s.tensors.size());
      for (const storage::stored_block& b : mine.blocks)
        mine.elements[b.tensor] = storage::dense_block(ex, s.leaves[b.tensor].id);
      state.thread = std::thread([&state, number = rank.index(), own = std::move(mine)]() mutable {
        try {
          const storage::started_save& s = state.save;
          storage::block_writer file(s.made(), storage::rank_file(number), s.tensors, std::move(own.blocks),
                                     s.options.calls);
          for (storage::stored_block& b : file.blocks()) {
            file.put(b, own.elements[b.tensor]);
            std::vector<T>().swap(own.elements[b.tensor]);
          }
          state.written = storage::text_of(file.finish(), s.tensors);
        } catch (const std::exception& e) {
          state.error = e.what();
        }
        state.done.store(true, std::memory_order_release);
      });
      return std::string();
    });
  } catch (const checkpoint_error&) {
    if (state.thread.joinable()) state.thread.join();
    state.over = true;
    pending.leave();
    if (rank.index() == 0) state.save.target.give_up(state.save.name);
    throw;
  }
  return pending;
}

}  // namespace shardwise::inline v0_1
