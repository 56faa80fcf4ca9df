// SPDX-License-Identifier: Apache-2.0
// clock: nanoseconds that all threads and processes of a machine count alike; they never go back.
#pragma once

// not <chrono>, which costs every program a tenth of a second
#include <time.h>

#include <cstdint>

namespace shardwise::inline v0_1::runtime {

inline std::int64_t now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

struct time_span {
  std::int64_t begin = -1, end = -1;  // -1: it has not come
};

}  // namespace shardwise::inline v0_1::runtime
