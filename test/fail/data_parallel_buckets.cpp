// SPDX-License-Identifier: Apache-2.0
// Buckets of no mebibyte.
// expect: data_parallel: a bucket of gradients is to hold a number of mebibytes
// expect(g++): data_parallel<dp, .*buckets<0>
// expect(clang): data_parallel<dp, .*buckets<0>
// expect(text): style: data_parallel<dp, buckets<0>>

#include "small_models.hpp"

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::data_parallel<dp, sw::buckets<0>>>;
#else
using plan = sw::plan<sw::data_parallel<dp, sw::buckets<1>>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);
