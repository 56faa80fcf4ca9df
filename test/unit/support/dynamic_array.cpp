// SPDX-License-Identifier: Apache-2.0
// dynamic_array holds what std::vector holds after the same calls, and neither copies nor leaks what it should not.
#include <doctest/doctest.h>

#include <shardwise/support/dynamic_array.hpp>

#include <string>
#include <vector>

namespace {

namespace sw = shardwise;

template <class T>
bool equal(const sw::dynamic_array<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size() || a.empty() != b.empty()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i] || a.data()[i] != b[i] || a.begin()[i] != b[i]) return false;
  return a.end() == a.begin() + a.size();
}

// How many there are, how many copies and moves were made.
struct counted {
  static inline int alive = 0, copies = 0;
  int value = 0;
  counted() { ++alive; }
  counted(int v) : value(v) { ++alive; }
  counted(const counted& o) : value(o.value) { ++alive, ++copies; }
  counted(counted&& o) noexcept : value(o.value) { ++alive; }
  counted& operator=(const counted& o) {
    value = o.value;
    ++copies;
    return *this;
  }
  counted& operator=(counted&& o) noexcept {
    value = o.value;
    return *this;
  }
  ~counted() { --alive; }
};

TEST_CASE("the same calls leave the same elements as in a std::vector") {
  sw::dynamic_array<std::string> a;
  std::vector<std::string> b;
  CHECK(equal(a, b));
  unsigned draw = 1;
  for (int round = 0; round < 400; ++round) {
    draw = draw * 1664525 + 1013904223;
    const std::size_t n = draw >> 8 & 31;
    const std::string s = std::to_string(draw) + ", longer than what a string keeps in itself";
    switch (draw >> 24 & 7) {
      case 0: a.clear(), b.clear(); break;
      case 1: a.resize(n), b.resize(n); break;
      case 2: a.assign(n, s), b.assign(n, s); break;
      case 3: a.reserve(n), b.reserve(n); break;
      default: a.push_back(s), b.push_back(s);
    }
    REQUIRE(equal(a, b));
    if (!b.empty()) CHECK(a.back() == b.back());
    const sw::dynamic_array<std::string> copy = a;
    if (!b.empty()) a[0] += "!";
    CHECK(equal(copy, b));  // a copy is its own
    a = copy;
    CHECK(equal(a, b));
  }
  sw::dynamic_array<std::string> moved = static_cast<sw::dynamic_array<std::string>&&>(a);
  CHECK(equal(moved, b));
  CHECK(a.empty());
  CHECK(equal(sw::dynamic_array<int>(3), std::vector<int>(3)));
  CHECK(equal(sw::dynamic_array<int>(3, 7), std::vector<int>(3, 7)));
}

TEST_CASE("an element of the array may be pushed, and growing moves") {
  {
    sw::dynamic_array<counted> a;
    for (int i = 0; i < 100; ++i) a.push_back(counted(i));
    CHECK(counted::copies == 0);
    for (int i = 0; i < 100; ++i) a.push_back(a[0]);
    CHECK(a.back().value == 0);
    CHECK(counted::copies == 100);
    const sw::dynamic_array<counted> moved = static_cast<sw::dynamic_array<counted>&&>(a);
    CHECK(counted::copies == 100);
    CHECK(moved.size() == 200);
  }
  CHECK(counted::alive == 0);
}

}  // namespace
