// SPDX-License-Identifier: Apache-2.0
// A plan of 33 entries.
// expect: plan: more than 32 entries

#include <shardwise/module/style.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using e = sw::at<"net?", sw::colwise<tp>>;
#ifdef SHARDWISE_FAIL
constexpr std::size_t count = 33;
#else
constexpr std::size_t count = 32;
#endif
template <std::size_t... I>
constexpr int entries_of(std::index_sequence<I...>) {
  return sw::plan<std::enable_if_t<(I >= 0), e>...>::entries;
}
constexpr int entries = entries_of(std::make_index_sequence<count>{});
