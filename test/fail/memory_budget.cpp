// SPDX-License-Identifier: Apache-2.0
// A memory budget is a part of the activations' bytes.
// expect: rematerialise: The valid ranges for memory budget are 0 <= m <= 1
// expect: rematerialise<101>

#include <shardwise/pass/rematerialise/rematerialise.hpp>

namespace sw = shardwise;

#ifdef SHARDWISE_FAIL
constexpr sw::rematerialise<101> budget;
#else
constexpr sw::rematerialise<100> budget;
#endif
constexpr sw::rematerialise<0> least;
