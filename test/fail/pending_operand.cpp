// SPDX-License-Identifier: Apache-2.0
// A tensor that is still on its way as an operand.
// expect: pending: a tensor that is still on its way is given to an operation
// expect(g++): operand<float, ?shardwise::shape<4, 4>, ?shardwise::replicate>
// expect(clang): operand<float, ?shardwise::shape<4, 4>, ?shardwise::replicate>

#include <shardwise/runtime/eager/dtensor.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using tensor = sw::dtensor_of<float, sw::shape<4, 4>, mesh, sw::on<tp, sw::shard<0>>>;

void use(const tensor& x) {
  auto p = sw::redistribute_async<tp, sw::replicate>(x);
#ifdef SHARDWISE_FAIL
  (void)sw::relu(p);
#else
  (void)sw::relu(std::move(p).wait());
#endif
}
