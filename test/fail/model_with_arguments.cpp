// SPDX-License-Identifier: Apache-2.0
// A model is given with its arguments. A class template is asked for, and no C++20 template takes both, so that the
// compilers answer in their own words.
// expect(g++): expected a class template, got .model<>
// expect(clang): must be a class template
// expect(nvcc): template

#include "declared_step.hpp"

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, net));
  constexpr auto forward(const auto& x) const { return net(x); }
};
#ifdef SHARDWISE_FAIL
constexpr auto bytes = sw::train_step<model<>, task, sw::plan<>, mesh, sw::adam<>>::peak_bytes;
#else
constexpr auto bytes = sw::train_step<model, task, sw::plan<>, mesh, sw::adam<>>::peak_bytes;
#endif
