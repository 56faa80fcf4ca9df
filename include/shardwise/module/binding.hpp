// SPDX-License-Identifier: Apache-2.0
// binding: how a plan reaches a module. A module is a class template over its binding; children derive theirs by place.
#pragma once

#include <shardwise/graph/functions/pointwise_functions.hpp>
#include <shardwise/module/reflection.hpp>
#include <shardwise/module/fully_shard.hpp>

namespace shardwise::inline v0_1 {

// The binding of a model that is only described: its parameters declare shapes and initial values.
struct unbound {};
template <>
inline constexpr bool unwritten<unbound> = true;

namespace detail {
// The binding under which a model's declaration is checked (declared.hpp): it says at which member of its module, and how
// deep, it was handed down. Index -1: the model itself; -2: an element of a list.
template <int Depth, int Index>
struct place {};
}  // namespace detail
template <int Depth, int Index>
inline constexpr bool unwritten<detail::place<Depth, Index>> = true;

// Ctx: what parameters become (sym, dtensor) and on which mesh; State: where the plan's paths stand; M: the unbound
// module type, whose reflection names the children. Equal members under equal states share one binding.
template <class Ctx, class Plan, auto State, class M>
struct binding {
  using context = Ctx;
  using plan_type = Plan;
  using unbound_module = M;
  static constexpr auto state = State;
};
template <class Ctx, class Plan, auto State, class M>
inline constexpr bool unwritten<binding<Ctx, Plan, State, M>> = true;

namespace detail {

// The parameter or buffer of the module bound by Parent that stands at member I.
template <class Parent, int I>
struct parameter_binding {
  using parent = Parent;
  static constexpr int index = I;
};

template <class T>
struct is_parameter_decl : std::false_type {};
template <class T>
struct is_buffer_decl : std::false_type {};
template <class T>
inline constexpr bool is_tensor_decl = is_parameter_decl<T>::value || is_buffer_decl<T>::value;

template <class Bound, int I>
struct child_of {  // Bound is no binding
  static_assert(raise<problem::child_of_no_binding, Bound>::ok);
  using type = unbound;
};
template <int I>
struct child_of<unbound, I> {
  using type = unbound;
};
template <int Depth, int Index, int I>
struct child_of<place<Depth, Index>, I> {
  using type = place<Depth + 1, I>;
};

template <class Bound, int I, class Member>
struct bind_member {
  static constexpr auto state = plan_traits<typename Bound::plan_type>::advance(
      Bound::state, std::string_view(member_name<typename Bound::unbound_module, I>()));
  using type = binding<typename Bound::context, typename Bound::plan_type, state, Member>;
};
template <class Bound, int I, class Member>
  requires is_tensor_decl<Member>
struct bind_member<Bound, I, Member> {
  using type = parameter_binding<Bound, I>;
};

template <class Ctx, class Plan, auto State, class M, int I>
  requires(I >= 0 && I < member_count<M>)
struct child_of<binding<Ctx, Plan, State, M>, I> {
  using type = typename bind_member<binding<Ctx, Plan, State, M>, I, member_type<M, I>>::type;
};
// No registered member stands there: what is handed this is none, and says so when it is called.
template <class Ctx, class Plan, auto State, class M, int I>
  requires(I < 0 || I >= member_count<M>)
struct child_of<binding<Ctx, Plan, State, M>, I> {
  using type = unbound;
};

// --- styles that apply to a bound module, in plan order ---------------------------------------------------------------

template <class F, class... S>
constexpr void visit_styles(style_list<S...>, F&& f) {
  (f.template operator()<S>(), ...);
}

// Calls f.operator()<Style>() for the whole-model styles, then for those whose entries match this module.
template <class Bound, class F, class... E>
constexpr void for_each_style(plan<E...>, F&& f) {
  constexpr unsigned hit = plan_traits<plan<E...>>::matched(Bound::state);
  int e = 0;
  [[maybe_unused]] auto whole = [&]<class Entry>() {
    if constexpr (!entry_traits<Entry>::is_entry && !is_setting<Entry> && !is_of_program<Entry>)
      f.template operator()<Entry>();
  };
  [[maybe_unused]] auto named = [&]<class Entry>() {
    if constexpr (entry_traits<Entry>::is_entry)
      if ((hit >> e) & 1U) visit_styles(typename entry_traits<Entry>::styles{}, f);
    ++e;
  };
  (whole.template operator()<E>(), ...);
  (named.template operator()<E>(), ...);
}

// The fully_shard of entry K of a plan; void: it has none.
template <int K, class... E>
struct sharding_of_entry {
  using type = void;
};
template <int K, class First, class... E>
struct sharding_of_entry<K, First, E...> : sharding_of_entry<K - 1, E...> {};
template <class First, class... E>
struct sharding_of_entry<0, First, E...> {
  using type = typename entry_traits<First>::sharding;
};

// The group that has the parameters of the module bound by Bound: its fully_shard, void for none, and how far below the model
// its module stands.
template <class Plan, auto State>
struct group_at;
template <class... E, auto State>
struct group_at<plan<E...>, State> {
  static constexpr int entry = plan_traits<plan<E...>>::owner_at(State);
  using style = typename sharding_of_entry<entry, E...>::type;
  static constexpr int depth =
      entry < 0 || plan_traits<plan<E...>>::depth(entry) < 0 ? 0 : plan_traits<plan<E...>>::depth(entry);
};
template <class Bound>
using owning_group = group_at<typename Bound::plan_type, Bound::state>;

// What a plan says of the element types of the module, or the parameter, with this state, and whether the entry names the module
// itself.
template <class Plan, auto State, bool Any = plan_traits<Plan>::any_mixed>
struct precision_at {
  static constexpr precision value{};
  static constexpr bool named = false;
};
template <class Plan, auto State>
struct precision_at<Plan, State, true> {
  using traits = plan_traits<Plan>;
  static constexpr int entry = traits::mixing_at(State);
  static constexpr precision value = entry < 0 ? precision{} : traits::elements[entry < 0 ? 0 : entry];
  static constexpr bool named = entry >= 0 && State.at[entry < 0 ? 0 : entry] == traits::segments[entry < 0 ? 0 : entry];
};
template <class Bound>
struct precision_of {
  static constexpr precision value{};
  static constexpr bool named = false;
};
template <class Bound>
  requires requires { typename Bound::plan_type; }
struct precision_of<Bound> : precision_at<typename Bound::plan_type, Bound::state> {};

// The chain of transformations that the matching entries' styles make of a value.
enum class hook { enter, after_product, leave };

template <hook H, class Style, class X>
constexpr auto apply_style(const X& x) {
  // a style without its axis is an error of the plan already
  if constexpr (!X::mesh_type::template has<typename Style::axis> || !resolved<X>) return x;
  else if constexpr (H == hook::enter) return Style::enter(x);
  else if constexpr (H == hook::after_product) return Style::after_product(x);
  else return Style::leave(x);
}
template <hook H, class X>
constexpr auto apply_styles(style_list<>, const X& x) {
  return x;
}
template <hook H, class S, class... R, class X>
constexpr auto apply_styles(style_list<S, R...>, const X& x) {
  return apply_styles<H>(style_list<R...>{}, apply_style<H, S>(x));
}
template <hook H, unsigned Hit, int E, class X>
constexpr auto apply_entries(plan<>, const X& x) {
  return x;
}
template <hook H, unsigned Hit, int E, class Entry, class... R, class X>
constexpr auto apply_entries(plan<Entry, R...>, const X& x) {
  if constexpr ((Hit >> E) & 1U)
    return apply_entries<H, Hit, E + 1>(plan<R...>{}, apply_styles<H>(typename entry_traits<Entry>::styles{}, x));
  else return apply_entries<H, Hit, E + 1>(plan<R...>{}, x);
}

template <hook H, class Bound, class X>
constexpr auto run_hook(const X& x) {
  if constexpr (requires { typename Bound::plan_type; }) {
    constexpr unsigned hit = plan_traits<typename Bound::plan_type>::matched(Bound::state);
    if constexpr (hit == 0) return x;
    else return apply_entries<H, hit, 0>(typename Bound::plan_type{}, x);
  } else {
    return x;
  }
}

// What a bound module is called with, and what its call returns, in the types that its plan says.
template <class Bound, class X>
constexpr auto as_called_with(const X& x) {
  constexpr precision p = precision_of<Bound>::value;
  if constexpr (!p.said || !p.casts_inputs || !tensor<X>) {
    return x;
  } else {
    if constexpr (!resolved<X>) return x;
    else if constexpr (!is_floating(X::sp.type)) return x;
    else return cast<element_t<p.parameters>>(x);
  }
}
template <class Bound, class X>
constexpr auto as_returned(const X& x) {
  constexpr precision p = precision_of<Bound>::value;
  if constexpr (!p.said || p.output < 0 || !precision_of<Bound>::named) {
    return x;
  } else if constexpr (!tensor<X>) {
    static_assert(raise<problem::mixed_result, typename Bound::unbound_module, X>::ok);
    return x;
  } else {
    if constexpr (!resolved<X>) return x;
    else if constexpr (!is_floating(X::sp.type)) return x;
    else return cast<element_t<static_cast<dtype>(p.output)>>(x);
  }
}

// The checkpoint of a bound module's calls, null: none.
template <class Bound>
constexpr const checkpoint_policy* checkpoint_of() {
  return nullptr;
}
template <class Bound>
  requires(plan_traits<typename Bound::plan_type>::checkpoints != 0)
constexpr const checkpoint_policy* checkpoint_of() {
  constexpr const checkpoint_policy* said = plan_traits<typename Bound::plan_type>::checkpoint_at(Bound::state);
  return said;
}

// The mode of a bound module: what the plan says, or else what it is bound for.
template <class Bound>
constexpr run_mode mode_of() {
  return run_mode::unsaid;
}
template <class Bound>
  requires requires { Bound::context::mode; }
constexpr run_mode mode_of() {
  constexpr run_mode said = plan_traits<typename Bound::plan_type>::mode_at(Bound::state);
  return said == run_mode::unsaid ? Bound::context::mode : said;
}

template <class Bound>
struct module_of_binding {
  using type = Bound;
};
template <class Bound>
  requires requires { typename Bound::unbound_module; }
struct module_of_binding<Bound> {
  using type = typename Bound::unbound_module;
};
template <class Bound>
struct said_mode {
  static constexpr run_mode value = mode_of<Bound>();
  static constexpr problem wrong = value == run_mode::unsaid ? problem::mode_unsaid : problem::none;
  static_assert(raise<wrong, typename module_of_binding<Bound>::type>::ok);
};

}  // namespace detail

// Whether the module bound by Bound trains: if constexpr (sw::training<Bound>) in its forward. That of a module that no program
// has bound does not compile.
template <class Bound>
inline constexpr bool training = detail::said_mode<Bound>::value == run_mode::train;

// The binding of member I of the module bound by Bound, I its place among the registered members, from 0: what a module
// that registers them by BOOST_HANA_DEFINE_STRUCT hands to each. SHARDWISE_MEMBERS hands it by itself.
template <class Bound, int I>
using child = typename detail::child_of<Bound, I>::type;

}  // namespace shardwise::inline v0_1
