// SPDX-License-Identifier: Apache-2.0
// wait() on a pending tensor that is kept.
// expect: pending: wait() takes the tensor out of the pending one, which is then empty
// expect: std::move(p).wait()
// expect(g++): operand<float, ?shardwise::shape<4, 4>
// expect(clang): operand<float, ?shardwise::shape<4, 4>

#include <shardwise/graph/functions/pending.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using tensor = typed<float, sw::shape<4, 4>, sw::mesh<tp>, sw::on<tp, sw::shard<0>>>;

constexpr void use(const tensor& x) {
  auto p = sw::redistribute_async<tp, sw::replicate>(x);
#ifdef SHARDWISE_FAIL
  const auto y = p.wait();
#else
  const auto y = std::move(p).wait();
#endif
  (void)y;
}
