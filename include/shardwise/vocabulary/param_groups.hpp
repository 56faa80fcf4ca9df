// SPDX-License-Identifier: Apache-2.0
// group_names: the groups of parameters that a program's optimizer tells apart, by name; see param_group.
#pragma once

#include <string_view>

#include <shardwise/support/diagnose.hpp>
#include <shardwise/support/fixed_string.hpp>

namespace shardwise::inline v0_1 {

// A group that is asked for.
template <fixed_string Name>
struct group_named;

// Number k, from 1, is Names...[k - 1]; number 0 is the main group, which has no name.
template <fixed_string... Names>
struct group_names {
  static constexpr int count = static_cast<int>(sizeof...(Names));

  // 0: there is none.
  static constexpr int find([[maybe_unused]] std::string_view name) {
    int at = 0, k = 0;
    ((++k, at = at == 0 && Names.view() == name ? k : at), ...);
    return at;
  }
  static constexpr std::string_view name([[maybe_unused]] int number) {
    std::string_view found;
    int k = 0;
    ((found = ++k == number ? Names.view() : found), ...);
    return found;
  }
  template <fixed_string Name>
  static constexpr int number() {
    constexpr int k = find(Name.view());
    static_assert(raise<(k == 0 ? problem::param_group_unknown : problem::none), group_named<Name>, group_names>::ok);
    return k;
  }
  // Whether each of these names is one of Other.
  template <class Other>
  static constexpr bool all_in = ((Other::find(Names.view()) > 0) && ... && true);
};

template <fixed_string Name>
struct fact<group_named<Name>> : detail::quoted_fact<"asked for", Name> {};
template <fixed_string... Names>
struct fact<group_names<Names...>> : detail::quoted_fact<"groups", Names...> {};

}  // namespace shardwise::inline v0_1
