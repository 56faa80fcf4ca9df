// SPDX-License-Identifier: Apache-2.0
// arena: the memory of one program on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <stdexcept>
#include <string>

namespace shardwise::inline v0_1::runtime {

// An arena of exactly the bytes asked for, or the caller's.
class arena {
 public:
  explicit arena(std::int64_t bytes) : bytes_(bytes), own_(true) {
    data_ = static_cast<std::byte*>(::operator new(static_cast<std::size_t>(bytes > 0 ? bytes : 1), std::align_val_t{64}));
  }
  arena(std::span<std::byte> given, std::int64_t bytes) : bytes_(bytes), data_(given.data()), own_(false) {
    if (static_cast<std::int64_t>(given.size()) < bytes || reinterpret_cast<std::uintptr_t>(given.data()) % 64 != 0)
      throw std::invalid_argument("shardwise: the arena given has " + std::to_string(given.size()) +
                                  " bytes; the program needs " + std::to_string(bytes) + ", aligned to 64");
  }
  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;
  ~arena() {
    if (own_) ::operator delete(data_, std::align_val_t{64});
  }
  std::byte* data() const { return data_; }
  std::int64_t size() const { return bytes_; }

 private:
  std::int64_t bytes_;
  std::byte* data_ = nullptr;
  bool own_;
};

}  // namespace shardwise::inline v0_1::runtime
