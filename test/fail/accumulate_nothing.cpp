// SPDX-License-Identifier: Apache-2.0
// The only input is said to be whole.
// expect: accumulate: the task has no input that is cut
// expect(text): whole_inputs<0>
#include <small_step.hpp>

template <class Task, class... Entries>
using step = sw::train_step<one_linear, Task, sw::plan<sw::data_parallel<dp>, Entries...>, mesh>;
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step<mean_task, sw::accumulate<2, sw::whole_inputs<0>>>::peak_bytes;
#else
constexpr auto bytes = step<mean_task, sw::accumulate<2>>::peak_bytes;
#endif
