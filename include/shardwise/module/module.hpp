// SPDX-License-Identifier: Apache-2.0
// module: the base of all modules: a call runs the plan's styles around `forward` and marks what it records with a name.
#pragma once

#include <array>
#include <tuple>

#include <shardwise/graph/calls.hpp>
#include <shardwise/module/members.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

// While alive, nodes recorded through the tensor's builder belong to this call of module `s`.
struct scope_mark {
  int* current = nullptr;
  int before = -1;
  template <class X>
  constexpr scope_mark(const X& x, int s, const checkpoint_policy* checkpoint) {
    if constexpr (requires { x.b->current_scope; }) {
      if (!x.b) return;
      current = &x.b->current_scope;
      before = *current;
      *current = scope_of_call(*x.b, s, checkpoint);
    }
  }
  constexpr ~scope_mark() {
    if (current) *current = before;
  }
  scope_mark(const scope_mark&) = delete;
  scope_mark& operator=(const scope_mark&) = delete;
};

// Number of parameters, and of buffers, of an unbound module type.
template <class M>
constexpr int parameter_count();
template <class M>
constexpr int buffer_count();

// Whether D has a member of the name forward, told without instantiating it: a second one would make the name ambiguous.
struct another_forward {
  void forward();
};
template <class D, bool Final = std::is_final_v<D>>
struct two_forwards : D, another_forward {};
template <class D>
struct two_forwards<D, true> {};
template <class D>
inline constexpr bool has_forward = !requires { &two_forwards<D>::forward; };

// Whether the parameters of a module that holds tensors are stored in shards: nothing gathers them when it is called.
template <class Bound>
inline constexpr bool holds_shards = false;
template <class Bound>
  requires requires { typename Bound::plan_type; } && (!requires { typename Bound::context::records; })
inline constexpr bool holds_shards<Bound> = !std::is_void_v<typename owning_group<Bound>::style>;

// Whether its parameters are stored in another type than they are used in: nothing casts them.
template <class Bound>
inline constexpr bool holds_masters = false;
template <class Bound>
  requires requires { typename Bound::plan_type; } && (!requires { typename Bound::context::records; })
inline constexpr bool holds_masters<Bound> = precision_of<Bound>::value.said;

// What a module lacks when it is called: a binding, or a forward.
template <class Derived, class Bound>
constexpr problem call_problem() {
  if constexpr (!has_forward<Derived>) return problem::module_forward_missing;
  else if constexpr (!std::is_same_v<Bound, unbound>)
    return holds_shards<Bound> ? problem::fully_shard_eager : holds_masters<Bound> ? problem::mixed_eager : problem::none;
  else if constexpr (parameter_count<Derived>() + buffer_count<Derived>() > 0) return problem::module_unbound;
  else return problem::none;
}

template <class X>
struct mesh_called_on {
  using type = void;
};
template <tensor X>
struct mesh_called_on<X> {
  using type = typename X::mesh_type;
};

template <class Bound>
struct mesh_of_binding {
  using type = void;
};
template <class Bound>
  requires requires { typename Bound::context::mesh_type; }
struct mesh_of_binding<Bound> {
  using type = typename Bound::context::mesh_type;
};

}  // namespace detail

// struct mlp : sw::module<mlp<Bound>, Bound> { SHARDWISE_MEMBERS(Bound, ...); constexpr auto forward(...) const; };
template <class Derived, class Bound>
struct module {
  using bound = Bound;
  using shardwise_module = void;
  static constexpr module_kind kind = module_kind::other;

  int scope = -1;

  template <class X, class... More>
  constexpr auto operator()(const X& x, const More&... more) const {
    constexpr problem wrong = detail::call_problem<Derived, Bound>();
    if constexpr (!tensor<X>) {
      detail::refused<problem::module_needs_tensor, detail::no_node, Derived, X>(more...);
      return detail::unresolved<typename detail::mesh_of_binding<Bound>::type>{};
    } else {
      detail::scope_mark mark(x, scope, detail::checkpoint_of<Bound>());
      const detail::call_watch watch(this, x, more...);
      if constexpr (wrong != problem::none) return detail::refused<wrong, detail::no_node, Derived>(x, more...);
      else if constexpr (!detail::precision_of<Bound>::value.said)
        return call(watch, detail::run_hook<detail::hook::enter, Bound>(x), more...);
      else
        return call(watch, detail::run_hook<detail::hook::enter, Bound>(detail::as_called_with<Bound>(x)),
                    detail::as_called_with<Bound>(more)...);
    }
  }

 private:
  template <class X, class... More>
  constexpr auto call(const detail::call_watch& watch, const X& in, const More&... more) const {
    if constexpr (!detail::resolved<X>) {
      return in;
    } else {
      // on an object that may change first: what does not compile in the body is then said once, where it stands
      constexpr bool returns = !std::is_void_v<decltype(std::declval<Derived&>().forward(in, more...))>;
      constexpr bool reads = requires(const Derived& d) { d.forward(in, more...); };
      if constexpr (returns && reads) {
        constexpr detail::precision types = detail::precision_of<Bound>::value;
        if constexpr (types.output < 0) {
          auto out = detail::run_hook<detail::hook::leave, Bound>(static_cast<const Derived&>(*this).forward(in, more...));
          watch.leave(out);
          return out;
        } else {
          auto out = detail::as_returned<Bound>(
              detail::run_hook<detail::hook::leave, Bound>(static_cast<const Derived&>(*this).forward(in, more...)));
          watch.leave(out);
          return out;
        }
      } else {
        return detail::refused<(!returns ? problem::module_forward_void : problem::module_forward_const), detail::no_node,
                               Derived>(in);
      }
    }
  }
};

namespace detail {

template <class Bound, template <class> class Block, int N>
struct repeat_states {
  using traits = plan_traits<typename Bound::plan_type>;
  static constexpr auto at(int i) { return traits::advance(Bound::state, index_name(i).view()); }
  static constexpr bool equal = [] {
    const auto first = at(0);
    for (int i = 1; i < N; ++i)
      if (!(at(i) == first)) return false;
    return true;
  }();
};

template <class Bound, template <class> class Block, int I>
struct repeat_element {
  static constexpr auto state = plan_traits<typename Bound::plan_type>::advance(Bound::state, index_name(I).view());
  using type = Block<binding<typename Bound::context, typename Bound::plan_type, state, Block<unbound>>>;
};

template <class Bound, template <class> class Block, class Index>
struct repeat_tuple;
template <class Bound, template <class> class Block, std::size_t... I>
struct repeat_tuple<Bound, Block, std::index_sequence<I...>> {
  using type = std::tuple<typename repeat_element<Bound, Block, static_cast<int>(I)>::type...>;
};

// Elements of the list: an array where the plan treats them all alike, else a tuple.
template <class Bound, template <class> class Block, int N, bool Equal>
struct repeat_storage {
  using type = std::array<typename repeat_element<Bound, Block, 0>::type, N>;
};
template <class Bound, template <class> class Block, int N>
struct repeat_storage<Bound, Block, N, false> {
  using type = typename repeat_tuple<Bound, Block, std::make_index_sequence<N>>::type;
};

}  // namespace detail

// N modules of one kind, called one after the other; in paths they are named 0 .. N-1. What is given beside the first argument is given
// to each of them: layers(x, position).
template <int N, template <class> class Block, class Bound = unbound>
struct repeat {
  using bound = Bound;
  using shardwise_list = void;
  static constexpr int size = N;
  static constexpr bool uniform = detail::repeat_states<Bound, Block, N>::equal;
  using element_unbound = Block<unbound>;

  typename detail::repeat_storage<Bound, Block, N, uniform>::type items{};

  template <class X, class... More>
  constexpr auto operator()(const X& x, const More&... more) const {
    if constexpr (keeps_type<X, More...>()) {
      X h = x;
      for (const auto& block : items) h = block(h, more...);
      return h;
    } else {
      return from<0>(x, more...);
    }
  }

 private:
  // Whether all elements map X to X. A tuple has no items[0], and && alone would still look at it.
  template <class X, class... More>
  static constexpr bool keeps_type() {
    if constexpr (uniform)
      return std::is_same_v<
          decltype(std::declval<const repeat&>().items[0](std::declval<const X&>(), std::declval<const More&>()...)), X>;
    else return false;
  }

  template <int I, class X, class... More>
  constexpr auto from(const X& x, const More&... more) const {
    if constexpr (I == N) {
      return x;
    } else {
      const auto y = std::get<I>(items)(x, more...);
      // past the first block types usually settle: then a loop does the rest
      if constexpr (I + 1 < N && keeps_type<std::remove_const_t<decltype(y)>, More...>()) {
        auto h = y;
        for (int i = I + 1; i < N; ++i) h = items[static_cast<std::size_t>(i)](h, more...);
        return h;
      } else {
        return from<I + 1>(y, more...);
      }
    }
  }
};

template <int N, template <class> class Block>
struct repeat<N, Block, unbound> {
  using bound = unbound;
  using shardwise_list = void;
  static constexpr int size = N;
  using element_unbound = Block<unbound>;
  template <class B>
  using rebound = repeat<N, Block, B>;

  template <class X, class... More>
  constexpr auto operator()(const X& x, const More&... more) const {
    detail::refused<problem::module_unbound, detail::no_node, repeat>(x, more...);
    return detail::unresolved<typename detail::mesh_called_on<X>::type>{};
  }
};
template <int N, template <class> class Block, int Depth, int Index>
struct repeat<N, Block, detail::place<Depth, Index>> {
  using bound = detail::place<Depth, Index>;
  using shardwise_list = void;
  using element_placed = Block<detail::place<Depth + 1, -2>>;
};

namespace detail {

// Walks a bound module beside its unbound type, in declaration order: module(m, name, index) -> scope id when entered,
// leaf<decl>(tensor, name) for every parameter and buffer, and then in_group<its binding, decl>(tensor) if the visitor is of_groups;
// object(m) for every module if it asks. Names are literals; list elements have an index and a null name.
template <class M, class T, class Visitor>
constexpr void visit_module(T& m, const char* name, int index, Visitor& v);

template <class M, class T, class Visitor, int... I>
constexpr void visit_members(T& m, Visitor& v, std::integer_sequence<int, I...>) {
  (
      [&] {
        using declared = member_type<M, I>;
        constexpr const char* name = member_name<M, I>();
        if constexpr (is_tensor_decl<declared>) {
          v.template leaf<declared>(member<I>(m), name);
          if constexpr (requires { typename Visitor::of_groups; })
            v.template in_group<parameter_binding<typename T::bound, I>, declared>(member<I>(m));
        } else if constexpr (reflected<declared> || module_list<declared>) visit_module<declared>(member<I>(m), name, -1, v);
      }(),
      ...);
}

template <class M, class T, class Visitor, std::size_t... I>
constexpr void visit_tuple(T& items, Visitor& v, std::index_sequence<I...>) {
  (visit_module<typename M::element_unbound>(std::get<I>(items), nullptr, static_cast<int>(I), v), ...);
}

template <class M, class T, class Visitor>
constexpr void visit_module(T& m, const char* name, int index, Visitor& v) {
  const int outer = v.enter(name, index);
  if constexpr (module_list<M>) {
    if constexpr (T::uniform) {
      int i = 0;
      for (auto& item : m.items) visit_module<typename M::element_unbound>(item, nullptr, i++, v);
    } else {
      visit_tuple<M>(m.items, v, std::make_index_sequence<M::size>{});
    }
  } else {
    if constexpr (!std::is_const_v<T>) m.scope = v.current();
    if constexpr (requires { v.object(m); }) v.object(m);
    visit_members<M>(m, v, std::make_integer_sequence<int, member_count<M>>{});
  }
  v.exit(outer);
}

template <class M, bool Buffers>
constexpr int tensor_count();
template <class M, bool Buffers, int... I>
constexpr int count_members(std::integer_sequence<int, I...>) {
  return (0 + ... + tensor_count<member_type<M, I>, Buffers>());
}
template <class M, bool Buffers>
constexpr int tensor_count() {
  if constexpr (is_tensor_decl<M>) return is_buffer_decl<M>::value == Buffers ? 1 : 0;
  else if constexpr (module_list<M>) return M::size * tensor_count<typename M::element_unbound, Buffers>();
  else if constexpr (reflected<M>) return count_members<M, Buffers>(std::make_integer_sequence<int, member_count<M>>{});
  else return 0;
}
template <class M>
constexpr int parameter_count() {
  return tensor_count<M, false>();
}
template <class M>
constexpr int buffer_count() {
  return tensor_count<M, true>();
}

template <class M>
constexpr int module_count();
template <class M, int... I>
constexpr int count_modules(std::integer_sequence<int, I...>) {
  return (1 + ... + module_count<member_type<M, I>>());
}
template <class M>
constexpr int module_count() {
  if constexpr (module_list<M>) return 1 + M::size * module_count<typename M::element_unbound>();
  else if constexpr (reflected<M>) return count_modules<M>(std::make_integer_sequence<int, member_count<M>>{});
  else return 0;
}

}  // namespace detail

}  // namespace shardwise::inline v0_1
