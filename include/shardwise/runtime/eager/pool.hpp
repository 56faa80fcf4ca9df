// SPDX-License-Identifier: Apache-2.0
// block_pool: one rank's storage for eager tensors: counted blocks in size classes that are kept for the next tensor, and
// copies of them that are made when one of the two is written.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

namespace shardwise::inline v0_1::runtime {

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
        ::operator delete(h, std::align_val_t{alignment});
        h = next;
      }
  }

 private:
  friend class block;

  static constexpr std::size_t alignment = 64;

  // Stands before the bytes, a cache line of its own.
  struct alignas(alignment) head {
    block_pool* pool;
    head* next;          // of the free ones, and of those that borrow from one lender
    head* before;        // of the latter
    std::int64_t count;  // references; the borrowers' too, and those of calls under way
    head* lender;        // whose bytes it has: its own, as a rule
    head* borrowers;     // that have its bytes
    int size_class;
    std::uint32_t ticket;  // of the last call under way that reads the bytes
    bool read;             // whether there may be one
    bool given;            // the caller has pointers: the bytes must stay, and cannot be lent
  };
  static_assert(sizeof(head) == alignment);

  head* fresh(int c);

  void give_back(head* h) {
    put(h);
    if (live_ == 0 && !open_) delete this;
  }
  // Among the free ones; and its lender, if nobody else has that. The pool lives through it: h itself is live until the end, which
  // g++ 12 does not see of a function that deletes and calls itself.
  void put(head* h) {
    if (h->lender != h) [[unlikely]] {
      head* const from = h->lender;
      leave(h);
      h->lender = h;
      if (--from->count == 0) put(from);
    }
    h->read = h->given = false;
    h->next = free_[h->size_class];
    free_[h->size_class] = h;
    --live_;
  }

  static void join(head* h, head* lender) {
    h->lender = lender;
    h->before = nullptr;
    h->next = lender->borrowers;
    if (h->next) h->next->before = h;
    lender->borrowers = h;
    ++lender->count;
  }
  // The lender's count stays.
  static void leave(head* h) {
    (h->before ? h->before->next : h->lender->borrowers) = h->next;
    if (h->next) h->next->before = h->before;
  }

  head* free_[(size_classes::largest - size_classes::smallest) * 4]{};
  std::int64_t allocations_ = 0, bytes_ = 0, live_ = 0;
  bool open_ = true;
};

// A counted reference to a block of a pool, or to nothing. What a tensor and its views share is one block.
//
// lend() is a copy that copies when it must: two blocks with the bytes of one. Law: what is written through one of them is
// never seen in the other. Whoever writes calls before_write() first, then the other one is moved to bytes of its own, at
// the price of a copy of the whole block; blocks that are gone by then cost nothing. Bytes move only where the caller has
// no pointers to them: give_out() says that he gets some, and then a borrower that is not alone takes a copy at once.
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
  std::byte* data() const { return reinterpret_cast<std::byte*>(head_->lender + 1); }
  bool operator==(const block&) const = default;

  // Whether somebody else has the block as well.
  bool is_held() const { return head_->count > 1; }
  block lend() const {
    if (head_->given) return copy();
    block b = head_->pool->take(0);
    block_pool::join(b.head_, head_->lender);
    return b;
  }
  // `wait(ticket)` returns when the call with this ticket is done.
  template <class Wait>
  void before_write(Wait&& wait) const {
    block_pool::head* const h = head_;
    if (h->lender != h) {
      if (h->lender->count > 1) part();
      return;
    }
    if (h->borrowers) evict();
    if (h->read) {
      wait(h->ticket);
      h->read = false;
    }
  }
  // The caller gets pointers to the bytes, which he reads, or also writes whenever he likes.
  void give_out() const {
    if (head_->lender == head_) return;
    if (head_->lender->count > 1) part();
    head_->given = true;
  }
  template <class Wait>
  void give_out_to_write(Wait&& wait) const {
    before_write(wait);
    head_->given = true;
  }

  // For calls that read the bytes after they were issued: what holds the bytes, whoever the block belongs to then.
  bool is_given() const { return head_->given; }
  block bytes() const {
    ++head_->lender->count;
    return block(head_->lender);
  }
  void read_until(std::uint32_t ticket) const {
    head_->ticket = ticket;
    head_->read = true;
  }
  void was_read(std::uint32_t ticket) const {  // tickets go round
    if (static_cast<std::int32_t>(ticket - head_->ticket) >= 0) head_->read = false;
  }

  block copy() const {
    block b = head_->pool->take_class(head_->lender->size_class);
    copy_bytes(b.head_, head_->lender);
    return b;
  }

 private:
  friend class block_pool;
  explicit block(block_pool::head* h) : head_(h) {}

  static void copy_bytes(block_pool::head* to, const block_pool::head* from) {
    std::memcpy(to + 1, from + 1, static_cast<std::size_t>(size_classes::bytes_of(from->size_class)));
  }
  // A borrower gets bytes of its own.
  __attribute__((noinline)) void part() const {
    block_pool::head* const from = head_->lender;
    const block own = copy();
    block_pool::leave(head_);
    block_pool::join(head_, own.head_);
    --from->count;
  }
  // All borrowers get other bytes, of which they have one copy.
  __attribute__((noinline)) void evict() const {
    const block own = copy();
    while (block_pool::head* const b = head_->borrowers) {
      block_pool::leave(b);
      block_pool::join(b, own.head_);
      --head_->count;
    }
  }

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
  head* const h = ::new (::operator new(size, std::align_val_t{alignment}))
      head{this, nullptr, nullptr, 0, nullptr, nullptr, c, 0, false, false};
  h->lender = h;
  ++allocations_;
  bytes_ += size_classes::bytes_of(c);
  return h;
}

}  // namespace shardwise::inline v0_1::runtime
