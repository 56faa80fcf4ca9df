// SPDX-License-Identifier: Apache-2.0
// static_vector: a fixed-capacity sequence that lives in constants; a push beyond its capacity does not compile, or throws.
#pragma once

#include <exception>

namespace shardwise::inline v0_1 {

// What push_back throws; both numbers stand in the text.
class capacity_exceeded : public std::exception {
 public:
  capacity_exceeded(int held, int wanted) : have(held), want(wanted) {
    put("shardwise: static_vector: ");
    put(held);
    put(" elements are pushed, and there is room for ");
    put(wanted);
    put("; give it a larger capacity");
  }
  const char* what() const noexcept override { return text_; }
  int have, want;

 private:
  void put(const char* s) {
    while (*s) text_[size_++] = *s++;
  }
  void put(int v) {
    if (v >= 10) put(v / 10);
    text_[size_++] = static_cast<char>('0' + v % 10);
  }
  char text_[160]{};  // four sentences' parts and two numbers: 120 at most
  int size_ = 0;
};

template <class T, int Capacity>
struct static_vector {
  T item[Capacity > 0 ? Capacity : 1]{};
  int count = 0;

  static constexpr int capacity = Capacity;
  constexpr int size() const { return count; }
  constexpr void push_back(const T& t) {
    if (count >= Capacity) throw capacity_exceeded(count + 1, Capacity);
    item[count++] = t;
  }
  constexpr T& operator[](int i) { return item[i]; }
  constexpr const T& operator[](int i) const { return item[i]; }
  constexpr const T* begin() const { return item; }
  constexpr const T* end() const { return item + count; }
};

}  // namespace shardwise::inline v0_1
