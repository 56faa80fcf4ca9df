// SPDX-License-Identifier: Apache-2.0
// A push beyond the capacity throws with both numbers, and is no constant.
#include <shardwise/support/static_vector.hpp>

#include <doctest/doctest.h>

#include <string>
#include <type_traits>

namespace {

template <int Pushed>
struct fill {
  static constexpr int run() {
    shardwise::static_vector<int, 3> v;
    for (int i = 0; i < Pushed; ++i) v.push_back(i);
    return v.count;
  }
};
template <class F>
concept constant = requires { typename std::integral_constant<int, F::run()>; };

static_assert(constant<fill<3>> && !constant<fill<4>>);

}  // namespace

TEST_CASE("static_vector: what does not fit is refused, and nothing is lost") {
  shardwise::static_vector<int, 3> v;
  for (int i = 0; i < 3; ++i) v.push_back(i);
  std::string said;
  try {
    v.push_back(3);
  } catch (const shardwise::capacity_exceeded& e) {
    said = e.what();
    CHECK(e.have == 4);
    CHECK(e.want == 3);
  }
  CHECK(said == "shardwise: static_vector: 4 elements are pushed, and there is room for 3; give it a larger capacity");
  CHECK(v.size() == 3);
  CHECK(v[2] == 2);
}
