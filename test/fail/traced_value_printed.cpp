// SPDX-License-Identifier: Apache-2.0
// The loss, printed where it is large while it is computed: what is printed is no constant, and the trace does not end.
// expect: traced tensor: it has no value while its program is made
// expect: read it from the executor: loss(), output(i)
// expect(text): operand: float[] (dp: partial<>)

#include <cstdio>

#include "small_step.hpp"

struct printing {
  using inputs = sw::inputs<four_rows>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    const auto loss = sw::mean(m(x));
#ifdef SHARDWISE_FAIL
    const double large = loss.item();
    if (loss.item() > 0.5 && large > 1) std::printf("%f\n", static_cast<double>(loss.full_tensor().to_local()[0]));
#endif
    return loss;
  }
};
static_assert(sw::train_step<one_linear, printing, plan, mesh, sw::sgd<>>::program.node_count > 0);
