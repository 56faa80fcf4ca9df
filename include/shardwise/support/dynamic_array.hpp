// SPDX-License-Identifier: Apache-2.0
// dynamic_array: elements one after the other, as many as a run asks for: what the runtime keeps of std::vector.
#pragma once

#include <cstddef>

namespace shardwise::inline v0_1 {

// The members mean what std::vector's of the same names do. T can be made without arguments and assigned; elements up to the
// capacity always exist, so `clear` destroys nothing. Price of std::vector instead: some thirty functions for every type of
// element, which every program that includes the runtime compiles, a fifth of the functions in a train step's object file.
template <class T>
class dynamic_array {
 public:
  constexpr dynamic_array() = default;
  constexpr explicit dynamic_array(std::size_t count) { resize(count); }
  constexpr dynamic_array(std::size_t count, const T& value) { assign(count, value); }
  constexpr dynamic_array(const dynamic_array& other) : dynamic_array() {
    const std::size_t count = other.size_;
    if (count == 0) return;
    T* const to = data_ = new T[count];
    for (std::size_t i = 0; i < count; ++i) to[i] = other.data_[i];
    size_ = capacity_ = count;
  }
  constexpr dynamic_array(dynamic_array&& other) noexcept { swap(other); }
  constexpr dynamic_array& operator=(dynamic_array other) noexcept {
    swap(other);
    return *this;
  }
  constexpr ~dynamic_array() { delete[] data_; }

  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* data() { return data_; }
  constexpr const T* data() const { return data_; }
  constexpr T* begin() { return data_; }
  constexpr const T* begin() const { return data_; }
  constexpr T* end() { return data_ + size_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr T& operator[](std::size_t i) { return data_[i]; }
  constexpr const T& operator[](std::size_t i) const { return data_[i]; }
  constexpr T& back() { return data_[size_ - 1]; }

  constexpr void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    T* const old = data_;
    data_ = moved(old, size_, capacity);
    capacity_ = capacity;
    delete[] old;
  }
  constexpr void resize(std::size_t count, T value = T()) {
    reserve(count);
    for (std::size_t i = size_; i < count; ++i) data_[i] = value;
    size_ = count;
  }
  constexpr void assign(std::size_t count, T value) {
    size_ = 0;
    resize(count, static_cast<T&&>(value));
  }
  constexpr void push_back(T value) {
    if (size_ == capacity_) reserve(2 * size_ + 8);
    data_[size_++] = static_cast<T&&>(value);
  }
  constexpr void clear() { size_ = 0; }

 private:
  // Never inlined: where a caller's numbers are known, g++ 13 works out a capacity that wraps round to 0 and warns of writes into it.
  [[gnu::noinline]] static constexpr T* moved(T* from, std::size_t count, std::size_t capacity) {
    T* const to = new T[capacity];
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<T&&>(from[i]);
    return to;
  }
  constexpr void swap(dynamic_array& other) {
    T* const data = data_;
    const std::size_t size = size_, capacity = capacity_;
    data_ = other.data_, size_ = other.size_, capacity_ = other.capacity_;
    other.data_ = data, other.size_ = size, other.capacity_ = capacity;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace shardwise::inline v0_1
