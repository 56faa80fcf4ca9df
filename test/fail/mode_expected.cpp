// SPDX-License-Identifier: Apache-2.0
// An eager model is asked for in a mode that is none.
// expect: with_mode: what is given where the mode belongs is none
#include <shardwise/shardwise.hpp>

#include "small_models.hpp"

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
#ifdef SHARDWISE_FAIL
using mode = sw::data_parallel<dp>;
#else
using mode = sw::eval_mode;
#endif
void judge(const sw::bind_eager<one_linear, sw::plan<>, mesh>& model) { (void)sw::with_mode<mode>(model); }
