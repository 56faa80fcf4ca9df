// SPDX-License-Identifier: Apache-2.0
// A placement among the options of data_parallel.
// expect: data_parallel: an option is given that it does not have
// expect(g++): data_parallel<dp, .*reduced
// expect(clang): data_parallel<dp, .*reduced
// expect(text): style: data_parallel<dp, reduced>

#include "small_models.hpp"

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::data_parallel<dp, sw::reduced>>;
#else
using plan = sw::plan<sw::data_parallel<dp, sw::average_gradients>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);
