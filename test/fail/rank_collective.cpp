// SPDX-License-Identifier: Apache-2.0
// A backend whose reduce-scatter has another signature: it does not compile, instead of failing when a program reduces.
// expect: backend: the rank type lacks the member that rank_member:: names
// expect: rank_member::reduce_scatter

#include "model_rank.hpp"
#include "typed.hpp"

struct tp : sw::axis<2> {};

struct my_collectives : test::model_collectives {
#ifdef SHARDWISE_FAIL
  template <class T>
  static void reduce_scatter(const T*, T*, int) {}
#endif
};
struct my_rank : test::model_rank<sw::mesh<tp>> {
  using collectives = my_collectives;
};
constexpr bool ok = sw::checked_host_rank<my_rank>::ok;
