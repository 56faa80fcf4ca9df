// SPDX-License-Identifier: Apache-2.0
// The backend of CONTRIBUTING.md runs a function.
#include <vector>

#include <shardwise/runtime/fake/fake.hpp>
#include <shardwise/shardwise.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};

#include "block.hpp"

int main() {
  using mesh = sw::mesh<tp>;
  counting_rank<mesh> rank(0);
  rank.barrier();
  sw::eager on(rank);
  const auto x =
      sw::dtensor<sw::spec_of<float, sw::shape<4, 2>, mesh, sw::shard<0>>::value, mesh, counting_rank<mesh>>::ones(on);
  const auto whole = sw::redistribute<tp, sw::replicate>(x);
  return rank.barriers >= 1 && whole.to_local().data[7] == 1 ? 0 : 1;
}
