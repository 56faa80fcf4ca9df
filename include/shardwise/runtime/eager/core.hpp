// SPDX-License-Identifier: Apache-2.0
// eager_core: what the eager tensors of one rank share: storage, and what was settled once for operations that repeat.
#pragma once

#include <cstddef>
#include <cstdint>

#include <shardwise/graph/calls.hpp>
#include <shardwise/runtime/host/provided_kernels.hpp>
#include <shardwise/runtime/eager/pool.hpp>
#include <shardwise/runtime/program/random_stream.hpp>
#include <shardwise/support/dynamic_array.hpp>

namespace shardwise::inline v0_1 {

// agree: before each collective all ranks compare what they are about to run; costs two meetings of all ranks.
enum class eager_checks { none, agree };

namespace runtime {

// Something that a rank settles at its first use and keeps; `next`: another one under the same key.
struct prepared {
  prepared* next = nullptr;
  virtual ~prepared() = default;
};

// Of an operation with several results: where each goes. A call points to `blocks`.
struct prepared_results {
  int count = 0;
  const layout* out[max_results]{};
  int out_class[max_results]{};
  result_blocks blocks;
};

// An application of an operation on this rank, to operands with these layouts: pointers and numbers are what is left.
struct prepared_call final : prepared {
  int inputs = 0;
  const layout* in[max_inputs]{};
  const layout* out = nullptr;
  std::int64_t skipped = 0;                  // bytes, of a view
  int out_class = -1, workspace_class = -1;  // -1: takes no block
  call c;
  dynamic_array<prepared_results> results;  // one if there are several; `c` points to it
};

// The layout of a tensor type's blocks on this rank.
struct prepared_layout final : prepared {
  const layout* dense = nullptr;
};

// Constants' addresses to what was prepared for them. Open addressing: a look-up is a multiplication and a load.
class prepared_table {
 public:
  prepared_table() : slot_(64) {}
  prepared_table(const prepared_table&) = delete;
  prepared_table& operator=(const prepared_table&) = delete;
  ~prepared_table() {
    for (slot& s : slot_)
      while (s.first) {
        prepared* const next = s.first->next;
        delete s.first;
        s.first = next;
      }
  }

  prepared* find(const void* key) const {
    for (std::size_t i = place_of(key);; i = (i + 1) & (slot_.size() - 1)) {
      if (slot_[i].key == key) return slot_[i].first;
      if (!slot_[i].key) return nullptr;
    }
  }
  // Takes p over; the last one added is found first. Call reserve() before p is made.
  void add(const void* key, prepared* p) {
    ++count_;
    slot& s = free_or(key);
    s.key = key;
    p->next = s.first;
    s.first = p;
  }
  void reserve() {
    if (2 * (count_ + 1) > slot_.size()) grow();
  }

 private:
  struct slot {
    const void* key = nullptr;
    prepared* first = nullptr;
  };

  std::size_t place_of(const void* key) const {
    return static_cast<std::size_t>((reinterpret_cast<std::uintptr_t>(key) >> 3) * 0x9E3779B97F4A7C15ULL >> 32) &
           (slot_.size() - 1);
  }
  slot& free_or(const void* key) {
    std::size_t i = place_of(key);
    while (slot_[i].key && slot_[i].key != key) i = (i + 1) & (slot_.size() - 1);
    return slot_[i];
  }
  void grow() {
    const dynamic_array<slot> old = static_cast<dynamic_array<slot>&&>(slot_);
    slot_.resize(old.size() * 2);
    for (const slot& s : old)
      if (s.key) free_or(s.key) = s;
  }

  dynamic_array<slot> slot_;  // a power of two of them
  std::size_t count_ = 0;
};

constexpr bool same_layout(const layout& a, const layout& b) {
  bool same = a.rank == b.rank;
  for (int d = 0; same && d < a.rank; ++d)
    same = a.ext[d] == b.ext[d] && a.str[d] == b.str[d] && a.origin[d] == b.origin[d] && a.global[d] == b.global[d];
  return same;
}

// Without a rank once its `eager` has ended. Law: what repeats itself settles and allocates in its first round alone.
template <class Rank>
struct eager_core : block_pool {
  Rank* rank = nullptr;
  step_env env{};
  std::int32_t site = 0;
  eager_checks checks = eager_checks::none;
  module_watcher* watcher = nullptr;        // is told of modules' calls, null: nobody asks
  dynamic_array<std::int64_t> site_offset;  // under random_policy::by_offset: of the sites so far
  std::int64_t next_offset = 0;

  eager_core() = default;
  ~eager_core() override {
    while (layouts_) {
      kept_layout* const next = layouts_->next;
      delete layouts_;
      layouts_ = next;
    }
  }

  // Numbers a random operation and finds where its block draws; site -1: the next one.
  void draw_at(call& c, std::int32_t given, const spec& out) {
    const std::int32_t at = given >= 0 ? given : site++;
    c.a = pack_attributes(random_attributes{.site = at});
    if (env.random == random_policy::by_element) return;
    while (site_offset.size() <= static_cast<std::size_t>(at)) {
      site_offset.push_back(next_offset);
      next_offset += ceil4(numel(out));
    }
    c.draw = site_offset[static_cast<std::size_t>(at)] + shard_offset(out, rank->coordinate().data());
  }

  // Before a block is written: what reads it is done, and what was copied of it has bytes of its own.
  void before_write(const block& b) {
    b.before_write([this](std::uint32_t t) { finish(t); });
  }
  void finish(std::uint32_t ticket) {
    if constexpr (has_stream<Rank>) rank->stream().wait(ticket);
  }

  prepared* find(const void* key) const { return table_.find(key); }
  // A new P(made_of...) under this key.
  template <class P, class... Made>
  P& add(const void* key, const Made&... made_of) {
    table_.reserve();
    P* const p = new P(made_of...);
    table_.add(key, p);
    return *p;
  }

  // The one copy of a layout: equal layouts have equal addresses.
  const layout* intern(const layout& l) {
    for (const kept_layout* k = layouts_; k; k = k->next)
      if (same_layout(k->value, l)) return &k->value;
    layouts_ = new kept_layout{l, layouts_};
    return &layouts_->value;
  }
  // That of the dense block of `s`, a constant.
  const layout* dense(const spec& s) {
    if (const prepared* p = find(&s)) return static_cast<const prepared_layout*>(p)->dense;
    const layout* const l = intern(local_layout(s, rank->coordinate().data()));
    add<prepared_layout>(&s).dense = l;
    return l;
  }

 private:
  struct kept_layout {
    layout value;
    kept_layout* next;
  };

  prepared_table table_;
  kept_layout* layouts_ = nullptr;
};

}  // namespace runtime

}  // namespace shardwise::inline v0_1
