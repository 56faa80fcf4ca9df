// SPDX-License-Identifier: Apache-2.0
// What the library knows of a module's members: their number, declared types, names and places, as SHARDWISE_MEMBERS or
// BOOST_HANA_DEFINE_STRUCT registers them.
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include <boost/hana/accessors.hpp>
#include <boost/hana/at.hpp>
#include <boost/hana/concept/struct.hpp>
#include <boost/hana/define_struct.hpp>
#include <boost/hana/first.hpp>
#include <boost/hana/length.hpp>
#include <boost/hana/pair.hpp>
#include <boost/hana/second.hpp>
#include <boost/hana/string.hpp>
#include <boost/hana/tuple.hpp>

#include <shardwise/support/message.hpp>

namespace shardwise::inline v0_1::detail {

namespace hana = boost::hana;

template <class T>
concept reflected = requires { typename T::shardwise_module; };

// Registered by SHARDWISE_MEMBERS.
template <class M>
concept listed = requires { typename M::shardwise_members; };

// A module that registers nothing has no members.
template <class M>
struct reflection {
  static constexpr int count = 0;
};
template <listed M>
struct reflection<M> {
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
template <class M>
  requires(!listed<M> && hana::Struct<M>::value)
struct reflection<M> {
  static constexpr int count = static_cast<int>(decltype(hana::length(hana::accessors<M>()))::value);
  template <int I>
  using entry = std::remove_cvref_t<decltype(hana::at_c<I>(hana::accessors<M>()))>;
  template <int I>
  using accessor = std::remove_cvref_t<decltype(hana::second(std::declval<entry<I>>()))>;
  template <int I>
  using type = std::remove_cvref_t<decltype(std::declval<accessor<I>>()(std::declval<const M&>()))>;
  template <int I>
  static constexpr const char* name = std::remove_cvref_t<decltype(hana::first(std::declval<entry<I>>()))>::c_str();
  // Accessors hold nothing: one made here spares evaluating the tuple of all of them for every member.
  template <int I, class T>
  static constexpr auto& get(T& m) {
    return accessor<I>{}(m);
  }
};

// Whether a module says what its members are; one without data need not.
template <class M>
inline constexpr bool registers = listed<M> || hana::Struct<M>::value;

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

// The members of SHARDWISE_MEMBERS as Hana sees a struct; compiled only where Hana is asked.
template <class Members, int I>
struct hana_accessor {
  template <class T>
  constexpr decltype(auto) operator()(T&& m) const {
    auto& at = Members::template at<I>::get(m);
    if constexpr (std::is_lvalue_reference_v<T>) return (at);
    else return static_cast<std::remove_reference_t<decltype(at)>&&>(at);
  }
};
constexpr std::size_t text_size(const char* s) {
  std::size_t n = 0;
  while (s[n] != '\0') ++n;
  return n;
}
template <class Member, std::size_t... C>
constexpr auto hana_name(std::index_sequence<C...>) {
  return hana::string_c<Member::name()[C]...>;
}
template <class Members, int... I>
constexpr auto hana_accessors(std::integer_sequence<int, I...>) {
  return hana::make_tuple(hana::make_pair(
      hana_name<typename Members::template at<I>>(std::make_index_sequence<text_size(Members::template at<I>::name())>{}),
      hana_accessor<Members, I>{})...);
}

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
