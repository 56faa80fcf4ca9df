// SPDX-License-Identifier: Apache-2.0
// Thirty-two checkpoints lie in each other.
// expect: more than 31 checkpoints lie in each other
// not(nvcc): it evaluates a tree of modules in a time of 2^depth (22 levels 17 s, 32 levels hours)

#include <shardwise/graph/functions/pointwise_functions.hpp>

#include "declared_step.hpp"

template <int Depth>
struct nested {
  template <class Bound = sw::unbound>
  struct of : sw::module<of<Bound>, Bound> {
    template <class B>
    using inner_of = typename nested<Depth - 1>::template of<B>;
    SHARDWISE_MEMBERS(Bound, (inner_of<sw::unbound>, in));
    constexpr auto forward(const auto& x) const { return in(x); }
  };
};
template <>
struct nested<0> {
  template <class Bound = sw::unbound>
  struct of : sw::module<of<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, in));
    constexpr auto forward(const auto& x) const { return sw::relu(in(x)); }
  };
};
template <class B>
using model = nested<31>::of<B>;
#define SHARDWISE_EIGHT(p)                                                                                 \
  sw::at<p "in", sw::checkpoint>, sw::at<p "in.in", sw::checkpoint>, sw::at<p "in.in.in", sw::checkpoint>, \
      sw::at<p "in.in.in.in", sw::checkpoint>, sw::at<p "in.in.in.in.in", sw::checkpoint>,                 \
      sw::at<p "in.in.in.in.in.in", sw::checkpoint>, sw::at<p "in.in.in.in.in.in.in", sw::checkpoint>,     \
      sw::at<p "in.in.in.in.in.in.in.in", sw::checkpoint>
#define SHARDWISE_BELOW "in.in.in.in.in.in.in.in."
#ifdef SHARDWISE_FAIL
using plan =
    sw::plan<SHARDWISE_EIGHT(""), SHARDWISE_EIGHT(SHARDWISE_BELOW), SHARDWISE_EIGHT(SHARDWISE_BELOW SHARDWISE_BELOW),
             SHARDWISE_EIGHT(SHARDWISE_BELOW SHARDWISE_BELOW SHARDWISE_BELOW)>;
#else
using plan = sw::plan<SHARDWISE_EIGHT(""), SHARDWISE_EIGHT(SHARDWISE_BELOW)>;
#endif
constexpr auto bytes = step<model, plan>::peak_bytes;
