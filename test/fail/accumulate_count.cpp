// SPDX-License-Identifier: Apache-2.0
// A batch is cut into no pieces.
// expect: accumulate: the number of micro-batches is less than 1
// expect(text): accumulate<0>
#include <small_step.hpp>

template <class Task, class... Entries>
using step = sw::train_step<one_linear, Task, sw::plan<sw::data_parallel<dp>, Entries...>, mesh>;
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step<mean_task, sw::accumulate<0>>::peak_bytes;
#else
constexpr auto bytes = step<mean_task, sw::accumulate<1>>::peak_bytes;
#endif
