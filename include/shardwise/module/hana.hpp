// SPDX-License-Identifier: Apache-2.0
// Modules and Boost.Hana: members that BOOST_HANA_DEFINE_STRUCT or BOOST_HANA_ADAPT_STRUCT registers are a module's, and a module of
// SHARDWISE_MEMBERS is a Hana struct. To be included before the first such module is bound. Apart from the other headers, because
// Hana's cost every program a twentieth of a second in g++ and 0.16 s in nvcc.
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

#include <shardwise/module/reflection.hpp>

namespace shardwise::inline v0_1::detail {

namespace hana = boost::hana;

template <class M>
  requires(!listed<M> && hana::Struct<M>::value)
struct reflection<M> {
  static constexpr bool registered = true;
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

// The members of SHARDWISE_MEMBERS as Hana sees a struct.
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
