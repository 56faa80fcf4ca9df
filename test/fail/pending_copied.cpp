// SPDX-License-Identifier: Apache-2.0
// A pending tensor is copied, so that it could be waited for twice.
// expect: (deleted|cannot be referenced)
// expect: pending

#include <shardwise/runtime/eager/dtensor.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using tensor = sw::dtensor_of<float, sw::shape<4, 4>, mesh, sw::on<tp, sw::shard<0>>>;

void use(const tensor& x) {
  auto p = sw::redistribute_async<tp, sw::replicate>(x);
#ifdef SHARDWISE_FAIL
  auto q = p;
#else
  auto q = std::move(p);
#endif
  (void)std::move(q).wait();
}
