// SPDX-License-Identifier: Apache-2.0
// What is wrong with how a model's modules are declared, found before a plan binds it: bases, members, children's places.
#pragma once

#include <shardwise/module/module.hpp>

namespace shardwise::inline v0_1 {

// What the errors print beside a member's name: the index that it is bound with, the one that it must have.
template <int Index>
struct given;
template <int Index>
struct required;
// The member is handed the binding of its module instead of a child of it.
struct given_own_binding;

template <class M>
  requires detail::reflected<M>
struct fact<M> : detail::type_fact<"class", M> {};
template <int Index>
struct fact<given<Index>> : detail::number_fact<"given", Index> {};
template <int Index>
struct fact<required<Index>> : detail::number_fact<"required", Index> {};
template <>
struct fact<given_own_binding> : detail::fact_named<"given"> {
  template <class Said, class Sink>
  static constexpr void put(Sink& out) {
    text::put(out, "Bound, the module's own");
  }
};

namespace detail {

template <class B>
struct bound_at {  // what a member under a place was handed
  using type = void;
};
template <class Decl, class Place>
struct bound_at<placed_tensor<Decl, Place>> {
  using type = Place;
};
template <class M>
  requires requires { typename M::bound; }
struct bound_at<M> {
  using type = typename M::bound;
};

template <class Own, class Given>
struct given_index {
  using type = given_own_binding;
};
template <class Own, int Depth, int Index>
  requires(!std::is_same_v<Own, place<Depth, Index>>)
struct given_index<Own, place<Depth, Index>> {
  using type = given<Index>;
};

// U: a module as it is described; B: the same under the place At.
template <class U, class B, class At>
struct declared;

template <class U, class B, class At>
constexpr bool derives_from_module() {
  if constexpr (requires { typename B::bound; })
    return std::is_same_v<typename B::bound, At> && std::is_base_of_v<module<B, At>, B>;
  else return false;
}

template <class U, class At, int I, class D, class B>
constexpr problem member_problem() {
  using expected = typename child_of<At, I>::type;
  using handed = typename bound_at<B>::type;
  constexpr bool module_like = reflected<D> || module_list<D>;
  if constexpr (std::is_same_v<D, absent>) return problem::none;
  else if constexpr (!module_like && !is_tensor_decl<D>) return problem::module_member_kind;
  else if constexpr (std::is_same_v<handed, expected>) return problem::none;
  else if constexpr (std::is_same_v<D, B>) return problem::child_forgotten;
  else if constexpr (std::is_same_v<handed, unbound>)
    return problem::none;  // its base loses the binding: said by `declared`
  else return problem::child_index;
}

template <class U, class At, int I>
struct declared_member {
  template <class B>
  static constexpr bool check() {
    using D = member_type<U, I>;
    using M = actual_member<B, I>;
    constexpr problem wrong = member_problem<U, At, I, D, M>();
    if constexpr (listed<U> && wrong == problem::child_forgotten) {
      return false;  // SHARDWISE_MEMBERS has said why
    } else if constexpr (wrong == problem::module_member_kind) {
      return !raise<wrong, U, typename name_of_member<U, I>::type, D>::ok;
    } else if constexpr (wrong == problem::child_forgotten) {
      return !raise<wrong, U, typename name_of_member<U, I>::type, D, required<I>>::ok;
    } else if constexpr (wrong == problem::child_index) {
      return !raise<wrong, U, typename name_of_member<U, I>::type,
                    typename given_index<At, typename bound_at<M>::type>::type, required<I>>::ok;
    } else if constexpr (reflected<D> || module_list<D>) {
      return declared<D, M, typename child_of<At, I>::type>::ok;
    } else {
      return true;
    }
  }
};

template <class U, class B, class At, int... I>
constexpr bool members_declared(std::integer_sequence<int, I...>) {
  return (true && ... && declared_member<U, At, I>::template check<B>());
}

template <class U, class B, class At>
struct declared {
  static constexpr problem wrong = !derives_from_module<U, B, At>() ? problem::module_base
                                   : !registers<U> && says_hana<U>  ? problem::hana_not_included
                                   : !registers<U> && sizeof(U) > sizeof(module<U, unbound>)
                                       ? problem::module_members_missing
                                       : problem::none;
  static constexpr bool ok = [] {
    if constexpr (wrong != problem::none) return !raise<wrong, U>::ok;
    else return members_declared<U, B, At>(std::make_integer_sequence<int, member_count<U>>{});
  }();
};
template <class U, class B, int Depth, int Index>
  requires module_list<U>
struct declared<U, B, place<Depth, Index>> {
  static constexpr bool ok = declared<typename U::element_unbound, typename B::element_placed, place<Depth + 1, -2>>::ok;
};

template <template <class> class Model>
using declared_model = declared<Model<unbound>, Model<place<0, -1>>, place<0, -1>>;

// In place of a model that is not declared as it must be, so that this stays the only error.
template <class Ctx, class Plan>
struct broken_model {
  using shardwise_module = void;
  using bound = binding<Ctx, Plan, plan_traits<Plan>::root(), broken_model>;
  static constexpr module_kind kind = module_kind::other;
  int scope = -1;
  template <class... X>
  constexpr auto operator()(const X&...) const {
    return unresolved<typename Ctx::mesh_type>{};
  }
};

}  // namespace detail

}  // namespace shardwise::inline v0_1
