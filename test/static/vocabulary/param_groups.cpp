// SPDX-License-Identifier: Apache-2.0
// Names of groups of parameters: numbers count from 1 in their order, 0 is the main group, which has no name.

#include <shardwise/vocabulary/param_groups.hpp>

namespace sw = shardwise;

namespace {

using three = sw::group_names<"no_decay", "embedding", "head">;
static_assert(three::count == 3 && three::find("no_decay") == 1 && three::find("embedding") == 2 &&
              three::find("head") == 3);
static_assert(three::find("") == 0 && three::find("hea") == 0 && three::find("heads") == 0);
static_assert(three::name(1) == "no_decay" && three::name(2) == "embedding" && three::name(3) == "head");
static_assert(three::name(0).empty() && three::name(4).empty());
static_assert(three::number<"embedding">() == 2 && three::number<"head">() == 3);

using none = sw::group_names<>;
static_assert(none::count == 0 && none::find("head") == 0 && none::name(1).empty());
static_assert(none::all_in<none> && none::all_in<three> && !three::all_in<none>);
static_assert(sw::group_names<"head", "no_decay">::all_in<three> && !sw::group_names<"head", "tail">::all_in<three> &&
              three::all_in<three>);

// What an error says of them.
template <sw::problem P, class... Facts>
constexpr bool says(std::string_view wanted) {
  constexpr std::string_view all = sw::message<P, Facts...>::view();
  const std::size_t sentence = sw::sentence(P).size();
  return all.substr(0, sentence) == sw::sentence(P) && all.substr(sentence) == wanted;
}
#if !defined(__CUDACC__)  // nvcc does not specialise on strings
static_assert(says<sw::problem::param_group_unknown, sw::group_named<"decay">, three>(
    " Here: asked for: \"decay\"; groups: \"no_decay\", \"embedding\", \"head\"."));
#endif

}  // namespace
