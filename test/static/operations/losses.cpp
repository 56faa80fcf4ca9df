// SPDX-License-Identifier: Apache-2.0
// Elementwise losses: the proof of rows, kernels and adjoints under every placement.
#include <rules.hpp>
#include <shardwise/laws/cases.hpp>
#include <shardwise/operations/loss/host_more.hpp>

namespace {

namespace laws = sw::laws;
namespace custom = sw::custom;

template <class Customs, class... X>
inline constexpr int proved = laws::holds<Customs, X...>;

static_assert(proved<laws::customs<custom::smooth_l1, custom::smooth_l1_dx>, sw::shape<5, 3>> > 8);
static_assert(proved<laws::customs<custom::smooth_l1_dx>, sw::shape<5, 3>, sw::shape<5, 3>> > 8);
static_assert(proved<laws::customs<custom::logits_loss, custom::logits_loss_dx, custom::logits_loss_dtarget>,
                     sw::shape<5, 3>, sw::shape<3>> > 8);
static_assert(proved<laws::customs<custom::divergence, custom::divergence_dx, custom::divergence_dtarget>, sw::shape<5, 3>,
                     sw::shape<5, 3>> > 8);
static_assert(proved<laws::customs<custom::divergence_dtarget>, sw::shape<4>, sw::shape<4>, sw::shape<4>> > 6);

}  // namespace
