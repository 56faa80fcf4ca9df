// SPDX-License-Identifier: Apache-2.0
// Named values of a task: each is found by its name, in any order.
#include <shardwise/module/outputs.hpp>

#include "typed.hpp"

namespace {

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
using loss = typed<float, sw::shape<>, mesh>;
using hits = typed<float, sw::shape<3>, mesh, sw::shard<0>>;

constexpr auto both = sw::outputs(sw::named<"loss">(loss{}), sw::named<"hits">(hits{}));
static_assert(std::is_same_v<std::remove_const_t<decltype(both)>,
                             sw::named_outputs<sw::named_output<"loss", loss>, sw::named_output<"hits", hits>>>);
static_assert(std::is_same_v<decltype(both.get<"loss">()), const loss&> &&
              std::is_same_v<decltype(both.get<"hits">()), const hits&>);
static_assert(&both.get<"loss">() == &std::get<0>(both.all).value && &both.get<"hits">() == &std::get<1>(both.all).value);

// Names have an order, which is that of the values.
using names = decltype(both)::names;
static_assert(names::count == 2 && names::find("loss") == 0 && names::find("hits") == 1 && names::find("hit") == -1);
static_assert(names::name(0) == "loss" && names::name(1) == "hits" && names::name(2).empty() && names::distinct());
static_assert(!sw::named_outputs<sw::named_output<"a", loss>, sw::named_output<"b", loss>,
                                 sw::named_output<"a", hits>>::names::distinct());

}  // namespace
