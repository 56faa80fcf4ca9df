// SPDX-License-Identifier: Apache-2.0
// A call of an eager model that stores its parameters in float and computes in bf16.
// expect: mixed: a module of an eager model is called
// expect(text): class: one_linear

#include <shardwise/module/eager_gradient.hpp>
#include <shardwise/runtime/threads/threads.hpp>

#include "small_models.hpp"

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::data_parallel<dp>, sw::mixed<sw::bf16>>;
#else
using plan = sw::plan<sw::data_parallel<dp>>;
#endif
using model = sw::bind_eager<one_linear, plan, mesh>;
using x = sw::dtensor_of<float, sw::shape<4, 8>, mesh, sw::on<dp, sw::shard<0>>>;
void call(const model& m, const x& a) { (void)m(a); }
