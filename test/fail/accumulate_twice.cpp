// SPDX-License-Identifier: Apache-2.0
// A plan has two numbers of micro-batches.
// expect: plan: accumulate is given more than once
// expect(text): accumulate<2>
#include <small_step.hpp>

template <class Task, class... Entries>
using step = sw::train_step<one_linear, Task, sw::plan<sw::data_parallel<dp>, Entries...>, mesh>;
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step<mean_task, sw::accumulate<2>, sw::accumulate<1>>::peak_bytes;
#else
constexpr auto bytes = step<mean_task, sw::accumulate<2>>::peak_bytes;
#endif
