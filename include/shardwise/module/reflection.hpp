// SPDX-License-Identifier: Apache-2.0
// What the library knows of a module's members: their number, declared types, names and places, as SHARDWISE_MEMBERS registers them.
// module/hana.hpp has the same for members that Boost.Hana's macros register.
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include <shardwise/support/message.hpp>

namespace shardwise::inline v0_1::detail {

template <class T>
concept reflected = requires { typename T::shardwise_module; };

// Registered by SHARDWISE_MEMBERS.
template <class M>
concept listed = requires { typename M::shardwise_members; };

// Registered by BOOST_HANA_DEFINE_STRUCT, be module/hana.hpp there or not.
template <class M>
concept says_hana = !listed<M> && requires { typename M::hana_accessors_impl; };

// A module that registers nothing has no members. module/hana.hpp reads what Hana's macros register.
template <class M>
struct reflection {
  static constexpr bool registered = false;
  static constexpr int count = 0;
};
template <listed M>
struct reflection<M> {
  static constexpr bool registered = true;
  static constexpr int count = M::shardwise_members::count::value;
  template <int I>
  using type = typename M::shardwise_members::template at<I>::type;
  template <int I>
  static constexpr const char* name = M::shardwise_members::template at<I>::name();
  template <int I, class T>
  static constexpr auto& get(T& m) {
    return M::shardwise_members::template at<I>::get(m);
  }
};
// Whether a module says what its members are; one without data need not.
template <class M>
inline constexpr bool registers = reflection<M>::registered;

template <class M>
inline constexpr int member_count = reflection<M>::count;
template <class M, int I>
using member_type = typename reflection<M>::template type<I>;

// Name of member I, with static lifetime.
template <class M, int I>
constexpr const char* member_name() {
  return reflection<M>::template name<I>;
}
template <int I, class M>
constexpr auto& member(M& m) {
  return reflection<std::remove_const_t<M>>::template get<I>(m);
}
// Its type in M as it stands: bound, where member_type of an M that SHARDWISE_MEMBERS registers is as written.
template <class M, int I>
using actual_member = std::remove_cvref_t<decltype(member<I>(std::declval<M&>()))>;

// The members of SHARDWISE_MEMBERS as Hana sees a struct: module/hana.hpp.
template <class Members, int... I>
constexpr auto hana_accessors(std::integer_sequence<int, I...>);

}  // namespace shardwise::inline v0_1::detail

namespace shardwise::inline v0_1 {

// What errors print of a member: its name.
template <fixed_string Name>
struct member_named;
template <fixed_string Name>
struct fact<member_named<Name>> : detail::quoted_fact<"member", Name> {};

namespace detail {
template <class M, int I>
struct name_of_member {
  static constexpr std::string_view view = member_name<M, I>();
  static constexpr auto text = exact_string<view.size()>(view);
  using type = member_named<text>;
};
}  // namespace detail

}  // namespace shardwise::inline v0_1
