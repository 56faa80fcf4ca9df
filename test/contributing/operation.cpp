// SPDX-License-Identifier: Apache-2.0
// The operation of CONTRIBUTING.md, in a copy of the library that has it: its rule and adjoint are proved, its values and
// gradients are what they should be.
#include <laws/rule_proofs.hpp>

#include <cstdio>
#include <vector>

#include <shardwise/laws/gradcheck.hpp>
#include <shardwise/shardwise.hpp>

namespace sw = shardwise;

namespace shardwise::laws {

template <int I>
constexpr int proved_of_hypot() {
  if constexpr (cases[I].last().op == op_code::hypot) return prove_case<I>();
  else return 0;
}
template <int... I>
constexpr int all_of_hypot(std::integer_sequence<int, I...>) {
  return (proved_of_hypot<I>() + ...);
}
static_assert(all_of_hypot(std::make_integer_sequence<int, static_cast<int>(std::size(cases))>{}) > 10);

}  // namespace shardwise::laws

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;

struct distance {
  constexpr auto operator()(const auto& x, const auto& y) const { return sw::hypot(x, y); }
};

int main() {
  bool good = true;
  sw::launch<mesh>([&](auto& rank) {
    sw::eager on(rank);
    const auto x = sw::dtensor_of<float, sw::shape<2, 1>, mesh, sw::shard<0>>::distribute(on, std::vector<float>{3, 5});
    const auto y = sw::dtensor_of<float, sw::shape<2, 1>, mesh, sw::shard<0>>::distribute(on, std::vector<float>{4, 12});
    good = good && sw::hypot(x, y).to_local().data[0] == (rank.index() == 0 ? 5 : 13);
  });
  const auto compared = sw::gradcheck<distance, sw::shape<3, 4>, sw::shape<4>>();
  std::printf("%s, %lld gradients\n", good ? "right" : "WRONG", static_cast<long long>(compared));
  return good && compared == 16 ? 0 : 1;
}
