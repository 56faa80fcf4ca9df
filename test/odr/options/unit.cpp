// SPDX-License-Identifier: Apache-2.0
// One translation unit, compiled with several sets of options (DROP and PRODUCT name what it defines) into one program: the
// same types and calls in all, so that code which options alter under one name would be taken from one of them for all.
#include <array>
#include <vector>

#include <shardwise/shardwise.hpp>

#include "unit.hpp"

namespace sw = shardwise;

namespace odr {
struct tp : sw::axis<2> {};
}  // namespace odr

using mesh = sw::mesh<odr::tp>;

void DROP() {
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    const auto x = sw::dtensor_of<float, sw::shape<8, 4>, mesh, sw::shard<0>>::ones(on);
    {
      auto p = sw::redistribute_async<odr::tp, sw::replicate>(x);
    }
  });
}

#if defined(SHARDWISE_WITH_BLAS)
static int calls() { return cblas_calls(); }
#else
static int calls() { return 0; }
#endif

int PRODUCT() {
  std::array<int, 2> made{};
  sw::launch<mesh>([&](auto& rank) {
    sw::eager on(rank);
    using square = sw::dtensor_of<float, sw::shape<2, 2>, mesh, sw::replicate>;
    const auto a = square::distribute(on, std::vector<float>{1, 2, 3, 4}),
               b = square::distribute(on, std::vector<float>{5, 6, 7, 8});
    const int before = calls();
    const auto y = sw::matmul(a, b);
    int made_here = calls() - before;
    const float wanted[] = {19, 22, 43, 50};
    for (std::size_t i = 0; i < 4; ++i)
      if (y.to_local().data[i] != wanted[i]) made_here = -1000;
    made[static_cast<std::size_t>(rank.index())] = made_here;
  });
  return made[0] + made[1];
}

#if defined(THROWS)
void THROWS() { throw sw::rank_failed(); }
#endif
