// SPDX-License-Identifier: Apache-2.0
// Memory for an arena that is seen from outside: canaries on both sides, a pattern in every byte, and what of it a program has written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <vector>

namespace test {

// Patterns of four bytes: NaNs of float and of double, as integers no index; no byte of one is the other's, so that none can hide by
// being written with the value it had.
inline constexpr std::uint32_t nan_patterns[] = {0xFFFFFFFFU, 0x7FF00001U};

// 64-byte aligned memory of more bytes than asked for, all in one pattern.
class outside_memory {
 public:
  outside_memory(std::int64_t bytes, std::uint32_t pattern)
      : size_(static_cast<std::size_t>(bytes) + 2 * slack),
        data_(static_cast<std::byte*>(::operator new(size_, std::align_val_t{64}))) {
    std::memcpy(pattern_, &pattern, sizeof(pattern));
    for (std::size_t i = 0; i < size_; ++i) data_[i] = pattern_[i % 4];
  }
  outside_memory(const outside_memory&) = delete;
  outside_memory& operator=(const outside_memory&) = delete;
  ~outside_memory() { ::operator delete(data_, std::align_val_t{64}); }

  // Longer than asked for: what is written behind its end is seen, too.
  std::span<std::byte> arena() const { return {data_ + slack, size_ - slack}; }
  bool intact_before() const {
    for (std::size_t i = 0; i < slack; ++i)
      if (touched(i)) return false;
    return true;
  }
  // Offset in the arena of the highest byte that was written; less than 0: none.
  std::int64_t highest_touched() const {
    for (std::size_t i = size_; i > 0; --i)
      if (touched(i - 1)) return static_cast<std::int64_t>(i - 1) - static_cast<std::int64_t>(slack);
    return -static_cast<std::int64_t>(slack);
  }
  // Marks what was written from the arena's beginning on.
  void mark(std::vector<char>& written) const {
    for (std::size_t i = 0; i < std::min(written.size(), size_ - slack); ++i)
      if (touched(slack + i)) written[i] = 1;
  }

 private:
  bool touched(std::size_t i) const { return data_[i] != pattern_[i % 4]; }

  static constexpr std::size_t slack = 1 << 16;
  std::size_t size_;
  std::byte* data_;
  std::byte pattern_[4];
};

}  // namespace test
