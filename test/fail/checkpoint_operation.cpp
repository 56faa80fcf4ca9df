// SPDX-License-Identifier: Apache-2.0
// A checkpoint names an operation that nobody has.
// expect: plan: a checkpoint names what is no operation of the library or of the program
// expect(g++): nearest<
// expect(clang): nearest<
// expect(g++): matmul
// expect(clang): matmul
// expect(nvcc): 'm', 'a', 't', 'm', 'u', 'l'
#include <shardwise/graph/functions/pointwise_functions.hpp>

#include "declared_step.hpp"

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, net1), (sw::linear<8, 8>, net2));
  constexpr auto forward(const auto& x) const { return net2(sw::relu(net1(x))); }
};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"*", sw::checkpoint_except<"matmol">>>;
#else
using plan = sw::plan<sw::at<"*", sw::checkpoint_except<"matmul", "add">>>;
#endif
constexpr auto bytes = step<model, plan>::peak_bytes;
