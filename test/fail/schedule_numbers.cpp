// SPDX-License-Identifier: Apache-2.0
// A schedule that falls in no step.
// expect: schedule_of: the schedule's numbers make no rates

#include <shardwise/module/schedules.hpp>

namespace sw = shardwise;

#ifdef SHARDWISE_FAIL
inline constexpr std::int64_t steps = 0;
#else
inline constexpr std::int64_t steps = 900;
#endif
constexpr auto rates = sw::schedule_of<sw::warm_up(100, sw::cosine_schedule{.from = 3e-4, .to = 3e-5, .steps = steps})>;
static_assert(rates.mistake() == nullptr);
