// SPDX-License-Identifier: Apache-2.0
// SHARDWISE_MEMBERS: a module's members, each with its type, name and place said once.
#pragma once

#include <shardwise/module/parameter.hpp>
#include <shardwise/support/arguments.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

template <class T>
inline constexpr bool is_unbound = std::is_same_v<T, unbound>;
template <int Depth, int Index>
inline constexpr bool is_unbound<place<Depth, Index>> = true;  // a member written with Bound or a child of it
template <class Bound, class T>
using in_place_of_unbound = std::conditional_t<is_unbound<T>, Bound, T>;

// The module class T with Bound where it has `unbound`, found among its template arguments; `type` is T where they follow
// no pattern below, as where a template is an argument: such a module says it itself, as repeat does:
// template <class B> using rebound = ...;
template <class T, class Bound>
struct rebind_pattern {
  using type = T;
};
#define SHARDWISE_T(t) in_place_of_unbound<Bound, t>
template <template <class...> class M, class... T, class Bound>
struct rebind_pattern<M<T...>, Bound> {
  using type = M<SHARDWISE_T(T)...>;
};
// values, then types; then values again; then types again
#define SHARDWISE_X(parameters, declared, values)                                                        \
  template <template <parameters class, class...> class M, declared class T, class... More, class Bound> \
  struct rebind_pattern<M<values T, More...>, Bound> {                                                   \
    using type = M<values SHARDWISE_T(T), SHARDWISE_T(More)...>;                                         \
  };
#define SHARDWISE_Y(parameters, declared, values)                                                                         \
  template <template <parameters class, auto, auto...> class M, declared class T, auto V, auto... W, class Bound>         \
  struct rebind_pattern<M<values T, V, W...>, Bound> {                                                                    \
    using type = M<values SHARDWISE_T(T), V, W...>;                                                                       \
  };                                                                                                                      \
  template <template <parameters class, auto, class, class...> class M, declared class T, auto V, class U, class... More, \
            class Bound>                                                                                                  \
  struct rebind_pattern<M<values T, V, U, More...>, Bound> {                                                              \
    using type = M<values SHARDWISE_T(T), V, SHARDWISE_T(U), SHARDWISE_T(More)...>;                                       \
  };                                                                                                                      \
  template <template <parameters class, class, auto, auto...> class M, declared class T, class U, auto V, auto... W,      \
            class Bound>                                                                                                  \
  struct rebind_pattern<M<values T, U, V, W...>, Bound> {                                                                 \
    using type = M<values SHARDWISE_T(T), SHARDWISE_T(U), V, W...>;                                                       \
  };
#define SHARDWISE_Z(...) __VA_ARGS__,
#define SHARDWISE_XY(parameters, declared, values)                              \
  SHARDWISE_X(SHARDWISE_Z parameters, SHARDWISE_Z declared, SHARDWISE_Z values) \
  SHARDWISE_Y(SHARDWISE_Z parameters, SHARDWISE_Z declared, SHARDWISE_Z values)
SHARDWISE_Y(, , )
SHARDWISE_XY((auto), (auto A), (A))
SHARDWISE_XY((auto, auto), (auto A, auto B), (A, B))
SHARDWISE_XY((auto, auto, auto), (auto A, auto B, auto C), (A, B, C))
SHARDWISE_XY((auto, auto, auto, auto), (auto A, auto B, auto C, auto D), (A, B, C, D))
SHARDWISE_XY((auto, auto, auto, auto, auto), (auto A, auto B, auto C, auto D, auto E), (A, B, C, D, E))
SHARDWISE_XY((auto, auto, auto, auto, auto, auto), (auto A, auto B, auto C, auto D, auto E, auto F), (A, B, C, D, E, F))
#undef SHARDWISE_XY
#undef SHARDWISE_Z
#undef SHARDWISE_Y
#undef SHARDWISE_X
#undef SHARDWISE_T

template <class T, class Bound>
struct rebind {
  using type = typename rebind_pattern<T, Bound>::type;
  static_assert(raise<(std::is_same_v<T, type> ? problem::module_binding_hidden : problem::none), T>::ok);
};
template <class T, class Bound>
  requires requires { typename T::template rebound<Bound>; }
struct rebind<T, Bound> {
  using type = typename T::template rebound<Bound>;
};

template <class T>
concept module_list = requires { typename T::shardwise_list; };

// A member declared as D under the binding B of its place: a parameter's or buffer's tensor, a module bound; else D.
template <class D, class B>
struct placed_member {
  using type = D;
};
template <class D, class B>
  requires(reflected<D> || module_list<D>)
struct placed_member<D, B> {
  using type = typename rebind<D, B>::type;
};
template <class D, class B>
  requires is_tensor_decl<D>
struct placed_member<D, B> {
  using type = typename tensor_of_module<D, B>::type;
};
template <class Decl, class Place, class B>
struct placed_member<placed_tensor<Decl, Place>, B> {
  using type = placed_tensor<Decl, B>;
};

// Member I, written as T, of a module under Bound. Under a plan's binding the unbound module says what it is.
template <class Bound, int I, class T>
struct bound_member : placed_member<T, typename child_of<Bound, I>::type> {};
template <int I, class T>
struct bound_member<unbound, I, T> {
  using type = T;
};
template <class Ctx, class Plan, auto State, class M, int I, class T>
struct bound_member<binding<Ctx, Plan, State, M>, I, T>
    : placed_member<member_type<M, I>, typename child_of<binding<Ctx, Plan, State, M>, I>::type> {};

// A member's type as it is written; a module's template alone gets the sentence and its unbound arguments.
template <class T>
std::type_identity<T> member_as();
template <template <class> class M>
struct member_template {
  static_assert(raise<problem::member_template, M<unbound>>::ok);
  using type = M<unbound>;
};
template <template <class> class M, class Given = member_template<M>>
  requires(sizeof(Given) > 0)
std::type_identity<typename Given::type> member_as();

}  // namespace detail

struct given_member;  // a fact: a member stands where its module's binding belongs

// SHARDWISE_MEMBERS(Bound, (type, name), ...): the members of the module bound by Bound, in public:
//
//   template <class Bound = sw::unbound>
//   struct mlp : sw::module<mlp<Bound>, Bound> {
//     SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, net1), (sw::linear<16, 10>, net2));
//     constexpr auto forward(const auto& x) const { return net2(sw::relu(net1(x))); }
//   };
//
// Types are written unbound: layers, modules, lists (sw::repeat<N, block>), sw::parameter<shape, init>, sw::buffer<shape,
// init>, sw::absent. They may have commas. At most 32 members. A module's binding is the template argument that defaults to
// sw::unbound; where it cannot be told from the others, a sentence says what to declare. With
// module/hana.hpp the module is also a Boost.Hana struct.
#define SHARDWISE_MEMBERS(Bound, ...) \
  SHARDWISE_CONCAT(SHARDWISE_MEMBERS_IF_, SHARDWISE_IS_TUPLE(Bound))(Bound __VA_OPT__(, ) __VA_ARGS__)

#define SHARDWISE_IS_TUPLE(x) SHARDWISE_SECOND(SHARDWISE_TUPLE x, 0, )
#define SHARDWISE_SECOND(...) SHARDWISE_SECOND_OF(__VA_ARGS__)
#define SHARDWISE_SECOND_OF(a, b, ...) b
#define SHARDWISE_TUPLE(...) , 1
// The first argument is a member.
#define SHARDWISE_MEMBERS_IF_1(...) \
  static_assert(::shardwise::raise<::shardwise::problem::child_of_no_binding, ::shardwise::given_member>::ok)
#define SHARDWISE_MEMBERS_IF_0(Bound, ...) SHARDWISE_CONCAT(SHARDWISE_MEMBERS_OF, __VA_OPT__(_SOME))(Bound, __VA_ARGS__)
#define SHARDWISE_MEMBERS_OF(...) static_assert(true)  // a module without members
#define SHARDWISE_MEMBERS_OF_SOME(Bound, ...)                                                                              \
  SHARDWISE_MEMBERS_EACH(SHARDWISE_MEMBER_DATA, Bound, SHARDWISE_COUNT(__VA_ARGS__), __VA_ARGS__)                          \
  struct shardwise_members {                                                                                               \
    using count = ::std::integral_constant<int, SHARDWISE_COUNT(__VA_ARGS__)>;                                             \
    template <int I, class = void>                                                                                         \
    struct at;                                                                                                             \
    SHARDWISE_MEMBERS_EACH(SHARDWISE_MEMBER_ENTRY, Bound, SHARDWISE_COUNT(__VA_ARGS__), __VA_ARGS__)                       \
  };                                                                                                                       \
  struct hana_accessors_impl {                                                                                             \
    template <class Shardwise = shardwise_members>                                                                         \
    static constexpr auto apply() {                                                                                        \
      return ::shardwise::detail::hana_accessors<Shardwise>(::std::make_integer_sequence<int, Shardwise::count::value>{}); \
    }                                                                                                                      \
  }

// A function takes a type or a template, which a class cannot.
#define SHARDWISE_MEMBER_TYPE(member) typename decltype(::shardwise::detail::member_as<SHARDWISE_BUT_LAST member>())::type
#define SHARDWISE_MEMBER_DATA(Bound, index, member) \
  typename ::shardwise::detail::bound_member<Bound, index, SHARDWISE_MEMBER_TYPE(member)>::type SHARDWISE_LAST member;
#define SHARDWISE_MEMBER_ENTRY(Bound, index, member)                                           \
  template <class Shardwise>                                                                   \
  struct at<index, Shardwise> {                                                                \
    using type = SHARDWISE_MEMBER_TYPE(member);                                                \
    static constexpr const char* name() { return SHARDWISE_STRINGIZE(SHARDWISE_LAST member); } \
    template <class ShardwiseT>                                                                \
    static constexpr auto& get(ShardwiseT& m) {                                                \
      return m.SHARDWISE_LAST member;                                                          \
    }                                                                                          \
  };

// F(Bound, index, member) for each of n members.
#define SHARDWISE_MEMBERS_EACH(F, Bound, n, ...) SHARDWISE_CONCAT(SHARDWISE_MEMBERS_EACH_, n)(F, Bound, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_1(F, B, n, m) F(B, (n - 1), m)
#define SHARDWISE_MEMBERS_EACH_2(F, B, n, m, ...) F(B, (n - 2), m) SHARDWISE_MEMBERS_EACH_1(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_3(F, B, n, m, ...) F(B, (n - 3), m) SHARDWISE_MEMBERS_EACH_2(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_4(F, B, n, m, ...) F(B, (n - 4), m) SHARDWISE_MEMBERS_EACH_3(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_5(F, B, n, m, ...) F(B, (n - 5), m) SHARDWISE_MEMBERS_EACH_4(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_6(F, B, n, m, ...) F(B, (n - 6), m) SHARDWISE_MEMBERS_EACH_5(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_7(F, B, n, m, ...) F(B, (n - 7), m) SHARDWISE_MEMBERS_EACH_6(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_8(F, B, n, m, ...) F(B, (n - 8), m) SHARDWISE_MEMBERS_EACH_7(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_9(F, B, n, m, ...) F(B, (n - 9), m) SHARDWISE_MEMBERS_EACH_8(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_10(F, B, n, m, ...) F(B, (n - 10), m) SHARDWISE_MEMBERS_EACH_9(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_11(F, B, n, m, ...) F(B, (n - 11), m) SHARDWISE_MEMBERS_EACH_10(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_12(F, B, n, m, ...) F(B, (n - 12), m) SHARDWISE_MEMBERS_EACH_11(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_13(F, B, n, m, ...) F(B, (n - 13), m) SHARDWISE_MEMBERS_EACH_12(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_14(F, B, n, m, ...) F(B, (n - 14), m) SHARDWISE_MEMBERS_EACH_13(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_15(F, B, n, m, ...) F(B, (n - 15), m) SHARDWISE_MEMBERS_EACH_14(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_16(F, B, n, m, ...) F(B, (n - 16), m) SHARDWISE_MEMBERS_EACH_15(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_17(F, B, n, m, ...) F(B, (n - 17), m) SHARDWISE_MEMBERS_EACH_16(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_18(F, B, n, m, ...) F(B, (n - 18), m) SHARDWISE_MEMBERS_EACH_17(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_19(F, B, n, m, ...) F(B, (n - 19), m) SHARDWISE_MEMBERS_EACH_18(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_20(F, B, n, m, ...) F(B, (n - 20), m) SHARDWISE_MEMBERS_EACH_19(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_21(F, B, n, m, ...) F(B, (n - 21), m) SHARDWISE_MEMBERS_EACH_20(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_22(F, B, n, m, ...) F(B, (n - 22), m) SHARDWISE_MEMBERS_EACH_21(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_23(F, B, n, m, ...) F(B, (n - 23), m) SHARDWISE_MEMBERS_EACH_22(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_24(F, B, n, m, ...) F(B, (n - 24), m) SHARDWISE_MEMBERS_EACH_23(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_25(F, B, n, m, ...) F(B, (n - 25), m) SHARDWISE_MEMBERS_EACH_24(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_26(F, B, n, m, ...) F(B, (n - 26), m) SHARDWISE_MEMBERS_EACH_25(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_27(F, B, n, m, ...) F(B, (n - 27), m) SHARDWISE_MEMBERS_EACH_26(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_28(F, B, n, m, ...) F(B, (n - 28), m) SHARDWISE_MEMBERS_EACH_27(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_29(F, B, n, m, ...) F(B, (n - 29), m) SHARDWISE_MEMBERS_EACH_28(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_30(F, B, n, m, ...) F(B, (n - 30), m) SHARDWISE_MEMBERS_EACH_29(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_31(F, B, n, m, ...) F(B, (n - 31), m) SHARDWISE_MEMBERS_EACH_30(F, B, n, __VA_ARGS__)
#define SHARDWISE_MEMBERS_EACH_32(F, B, n, m, ...) F(B, (n - 32), m) SHARDWISE_MEMBERS_EACH_31(F, B, n, __VA_ARGS__)

}  // namespace shardwise::inline v0_1
