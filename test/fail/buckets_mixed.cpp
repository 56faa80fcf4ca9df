// SPDX-License-Identifier: Apache-2.0
// The model's gradients are in buckets, a layer's are not.
// expect: some put gradients into buckets and others do not
// expect(g++): plan_entry<
// expect(clang): plan_entry<
// expect(text): axis: "dp" of 2; plan_entry: data_parallel<dp, buckets<9>>, at<"net1", data_parallel<dp>>

#include "small_models.hpp"

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::data_parallel<dp, sw::buckets<9>>, sw::at<"net1", sw::data_parallel<dp>>>;
#else
using plan = sw::plan<sw::data_parallel<dp, sw::buckets<9>>, sw::at<"net1", sw::data_parallel<dp, sw::buckets<9>>>>;
#endif
using bound = sw::bind<two_linears, plan, mesh>;
constexpr auto members = sizeof(bound);
