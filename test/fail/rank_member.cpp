// SPDX-License-Identifier: Apache-2.0
// A backend's rank without a member that executors and eager tensors need.
// expect: backend: the rank type lacks the member that rank_member:: names
// expect: rank_member::agree

#include "model_rank.hpp"
#include "typed.hpp"

struct tp : sw::axis<2> {};

struct my_rank : test::model_rank<sw::mesh<tp>> {
  using collectives = test::model_collectives;
#ifdef SHARDWISE_FAIL
  void agree(std::uint64_t, const char*) = delete;
#endif
};
constexpr bool ok = sw::checked_host_rank<my_rank>::ok;
