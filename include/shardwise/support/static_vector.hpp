// SPDX-License-Identifier: Apache-2.0
// static_vector: a fixed-capacity sequence that lives in constants; past its capacity it counts but does not store.
#pragma once

namespace shardwise {

template <class T, int Capacity>
struct static_vector {
  T item[Capacity > 0 ? Capacity : 1]{};
  int count = 0;

  static constexpr int capacity = Capacity;
  constexpr int size() const { return count; }
  constexpr bool overflowed() const { return count > Capacity; }
  constexpr void push_back(const T& t) {
    if (count < Capacity) item[count] = t;
    ++count;
  }
  constexpr T& operator[](int i) { return item[i]; }
  constexpr const T& operator[](int i) const { return item[i]; }
  constexpr const T* begin() const { return item; }
  constexpr const T* end() const { return item + count; }
};

}  // namespace shardwise
