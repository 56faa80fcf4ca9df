// SPDX-License-Identifier: Apache-2.0
// block_pool: one rank's storage for eager tensors: counted blocks in size classes that are kept for the next tensor.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace shardwise::runtime {

class block;

namespace size_classes {

inline constexpr int smallest = 6, largest = 48;  // log2 of their bytes

constexpr int of(std::int64_t bytes) {
  if (bytes <= std::int64_t{1} << smallest) return 0;
  const auto last = static_cast<std::uint64_t>(bytes - 1);
  const int log = static_cast<int>(std::bit_width(last)) - 1;
  return (log - smallest) * 4 + static_cast<int>((last >> (log - 2)) & 3) + 1;
}
constexpr std::int64_t bytes_of(int c) { return (std::int64_t{4} + c % 4) << (smallest - 2 + c / 4); }

static_assert(bytes_of(of(0)) == 64 && bytes_of(of(64)) == 64 && bytes_of(of(65)) == 80 && bytes_of(of(80)) == 80 &&
              bytes_of(of(81)) == 96 && bytes_of(of(128)) == 128 && bytes_of(of(129)) == 160);

}  // namespace size_classes

// Law: a request is served from the system only if no block of its class is free, so a program that repeats itself
// allocates in its first round alone. Classes are a quarter of a power of two apart: at most 25% of a block is unused.
// One thread, its rank's, takes and gives back; hence the counts are plain integers.
// The pool outlives its owner until the last block has come back.
class block_pool {
 public:
  block_pool() = default;
  block_pool(const block_pool&) = delete;
  block_pool& operator=(const block_pool&) = delete;

  block take(std::int64_t bytes);
  // The class of a block of so many bytes, for those who take it again and again.
  static int class_of(std::int64_t bytes) {
    if (bytes > std::int64_t{1} << (size_classes::largest - 1)) throw std::bad_alloc();
    return size_classes::of(bytes);
  }
  block take_class(int c);

  // Blocks and bytes ever requested from the system.
  std::int64_t allocations() const { return allocations_; }
  std::int64_t bytes() const { return bytes_; }
  std::int64_t live() const { return live_; }

  void close() {
    open_ = false;
    if (live_ == 0) delete this;
  }

 protected:
  virtual ~block_pool() {
    for (head* h : free_)
      while (h) {
        head* const next = h->next;
        ::operator delete (h, std::align_val_t{alignment});
        h = next;
      }
  }

 private:
  friend class block;

  static constexpr std::size_t alignment = 64;

  // Stands before the bytes, a cache line of its own.
  struct alignas(alignment) head {
    block_pool* pool;
    head* next;
    std::int64_t count;
    int size_class;
  };

  head* fresh(int c);

  void give_back(head* h) {
    h->next = free_[h->size_class];
    free_[h->size_class] = h;
    if (--live_ == 0 && !open_) delete this;
  }

  head* free_[(size_classes::largest - size_classes::smallest) * 4]{};
  std::int64_t allocations_ = 0, bytes_ = 0, live_ = 0;
  bool open_ = true;
};

// A counted reference to a block of a pool, or to nothing.
class block {
 public:
  block() = default;
  block(const block& b) : head_(b.head_) {
    if (head_) ++head_->count;
  }
  block(block&& b) noexcept : head_(std::exchange(b.head_, nullptr)) {}
  block& operator=(block b) noexcept {
    std::swap(head_, b.head_);
    return *this;
  }
  ~block() {
    if (head_ && --head_->count == 0) head_->pool->give_back(head_);
  }

  explicit operator bool() const { return head_ != nullptr; }
  void* data() const { return head_ + 1; }
  bool operator==(const block&) const = default;

 private:
  friend class block_pool;
  explicit block(block_pool::head* h) : head_(h) {}
  block_pool::head* head_ = nullptr;
};

inline block block_pool::take(std::int64_t bytes) { return take_class(class_of(bytes)); }

inline block block_pool::take_class(int c) {
  head* h = free_[c];
  if (h) [[likely]] {
    free_[c] = h->next;
  } else {
    h = fresh(c);
  }
  h->count = 1;
  ++live_;
  return block(h);
}

__attribute__((noinline)) inline block_pool::head* block_pool::fresh(int c) {
  const std::size_t size = sizeof(head) + static_cast<std::size_t>(size_classes::bytes_of(c));
  head* const h = ::new (::operator new (size, std::align_val_t{alignment})) head{this, nullptr, 0, c};
  ++allocations_;
  bytes_ += size_classes::bytes_of(c);
  return h;
}

}  // namespace shardwise::runtime
