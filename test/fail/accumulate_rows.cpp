// SPDX-License-Identifier: Apache-2.0
// Two ranks have two rows each, which are not three equal pieces.
// expect: accumulate: each rank's rows of an input (dim 0) are not cut into this many equal micro-batches
// expect(text): accumulate<3>
// expect(text): given: 4; required: 6
#include <small_step.hpp>

template <class Task, class... Entries>
using step = sw::train_step<one_linear, Task, sw::plan<sw::data_parallel<dp>, Entries...>, mesh>;
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step<mean_task, sw::accumulate<3>>::peak_bytes;
#else
constexpr auto bytes = step<mean_task, sw::accumulate<2>>::peak_bytes;
#endif
