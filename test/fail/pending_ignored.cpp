// SPDX-License-Identifier: Apache-2.0
// A redistribution that is started by a statement of its own.
// flags: -Werror=unused-result -Werror=unused-value
// expect: wait() is the only way to the tensor

#include <shardwise/runtime/eager/dtensor.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using tensor = sw::dtensor_of<float, sw::shape<4, 4>, mesh, sw::on<tp, sw::shard<0>>>;

void use(const tensor& x) {
#ifdef SHARDWISE_FAIL
  sw::redistribute_async<tp, sw::replicate>(x);
#else
  (void)sw::redistribute_async<tp, sw::replicate>(x).wait();
#endif
}
