// SPDX-License-Identifier: Apache-2.0
// The states of Adam copied to a program whose optimizer keeps a momentum alone.
// expect: copy_state: the two programs do not keep the same states of the same parameters
#include "grouped_step.hpp"

using adams = sw::train_step<two_linears, task, sw::plan<sw::data_parallel<dp>>, mesh, sw::adam<>>;
#ifdef SHARDWISE_FAIL
using other = sw::train_step<two_linears, task, sw::plan<sw::data_parallel<dp>>, mesh, sw::sgd<true>>;
#else
using other = sw::train_step<two_linears, task, sw::plan<sw::data_parallel<dp>>, mesh, sw::adamw<>>;
#endif

void copy(sw::executor<other>& to, const sw::executor<adams>& from) { to.copy_state(from); }
