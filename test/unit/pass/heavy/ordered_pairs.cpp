// SPDX-License-Identifier: Apache-2.0
// Every two passes that rewrite a program, one after the other in both orders where both are admitted: the small transformer
// trains to the values of the step without them, in an arena of which nothing is read that was not written.
#include <accumulated.hpp>
#include <doctest/doctest.h>

#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/support/type_name.hpp>

namespace {

namespace acc = test::accumulated;
namespace sw = shardwise;
using acc::dp;
using acc::tp;

using cut = acc::with<acc::attention_and_mlp<tp<2>>, sw::data_parallel<dp<2>>>;
template <class... P>
using step = acc::step<cut, sw::mesh<dp<2>, tp<2>>, acc::batch_axes<dp<2>>, sw::pipeline<P...>>;

const acc::history& plain() {
  static const acc::history h = acc::train<step<>>(3);
  return h;
}
template <class... P>
void check() {
  CHECK_MESSAGE(acc::difference(acc::train<step<P...>>(3), plain()) <= 1e-11, sw::type_name<sw::pipeline<P...>>());
}

struct program {
  static constexpr const auto& value = step<>::program;
};
template <class A, class B>
int in_this_order() {
  if constexpr (sw::can_apply<B, sw::apply_pass<A, program>>) {
    check<A, B>();
    return 1;
  } else {
    return 0;
  }
}
template <class A, class... B>
int before_each() {
  return (0 + ... + in_this_order<A, B>());
}
template <class... P>
int each_before_each() {
  return (0 + ... + before_each<P, P...>());
}

TEST_CASE("passes in pairs") {
  CHECK((each_before_each<sw::cancel_redistributions, sw::merge_common, sw::merge_products, sw::join_norm_adjoints,
                          sw::fuse_kernels, sw::rematerialise<50>, sw::rematerialise<0>, sw::schedule_comm_wait,
                          sw::comm_fusion_in_place<1>, sw::fused_optimizer>()) == 71);
}

}  // namespace
