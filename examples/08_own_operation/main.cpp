// SPDX-License-Identifier: Apache-2.0
// Trains with an operation of one's own on four ranks, data parallel times tensor parallel, and proves it while compiling.

#include <cstdio>

#include "operation.hpp"

#ifndef OWN_OPERATION_CUDA
#include <shardwise/laws/cases.hpp>
#include <shardwise/laws/gradcheck.hpp>

using proved = shardwise::laws::customs<gated::swiglu, gated::swiglu_gate, gated::swiglu_up>;
static_assert(shardwise::laws::holds<proved, shardwise::shape<5, 3>, shardwise::shape<5, 3>> > 0);
static_assert(shardwise::laws::holds<proved, shardwise::shape<5, 3>, shardwise::shape<3>> > 0);  // broadcast

struct activation {
  constexpr auto operator()(const auto& gate, const auto& up) const { return shardwise::call<gated::swiglu>(gate, up); }
};
#endif

namespace {

namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;

}  // namespace

int main() {
#ifdef OWN_OPERATION_CUDA
  using step = sw::train_step<gated::block, gated::task<float, dp>, gated::plan<dp, tp>, mesh, sw::adam<>, sw::pipeline<>,
                              float, sw::cuda_backend>;
  sw::launch_cuda<mesh>([](auto& rank) {
#else
  using step = sw::train_step<gated::block, gated::task<float, dp>, gated::plan<dp, tp>, mesh, sw::adam<>>;
  std::printf("gradients of %lld elements agree with differences\n",
              static_cast<long long>(sw::gradcheck<activation, sw::shape<3, 4>, sw::shape<4>>()));
  sw::launch<mesh>([](auto& rank) {
#endif
    const double first = gated::train<step>(rank, 1), last = gated::train<step>(rank, 40);
    if (rank.index() == 0) std::printf("loss after 1 step %.4f, after 40 steps %.4f\n", first, last);
  });
}
