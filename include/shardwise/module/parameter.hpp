// SPDX-License-Identifier: Apache-2.0
// parameter, buffer: the tensors of a module: unbound they declare shape and initial values, bound they are the context's
// tensors.
#pragma once

#include <cstdint>

#include <shardwise/module/binding.hpp>
#include <shardwise/vocabulary/init.hpp>

namespace shardwise::inline v0_1 {

namespace init {
struct zeros {
  static constexpr init_kind kind = init_kind::zeros;
  static constexpr double scale = 0;
};
struct ones {
  static constexpr init_kind kind = init_kind::ones;
  static constexpr double scale = 1;
};
// Mean 0, standard deviation Num / Den.
template <int Num, int Den>
struct normal {
  static constexpr init_kind kind = init_kind::normal;
  static constexpr double scale = static_cast<double>(Num) / Den;
};
// Uniform in +-1 / sqrt(FanIn), as torch.nn.Linear.
template <int FanIn>
struct uniform_fan {
  static constexpr init_kind kind = init_kind::uniform;
  static constexpr double scale = [] {
    double x = 1, a = FanIn;
    for (int i = 0; i < 60; ++i) x = 0.5 * (x + a / x);
    return 1 / x;
  }();
};
}  // namespace init

template <class Shape, class Init>
struct parameter_decl {
  using shardwise_declaration = void;
  using shape_type = Shape;
  using init_type = Init;
};

template <class Shape, class Init>
struct buffer_decl {
  using shardwise_declaration = void;
  using shape_type = Shape;
  using init_type = Init;
};

// A member that a configuration leaves out: std::conditional_t<Bias, sw::parameter<...>, sw::absent>.
struct absent {};

namespace detail {

template <class S, class I>
struct is_parameter_decl<parameter_decl<S, I>> : std::true_type {};
template <class S, class I>
struct is_buffer_decl<buffer_decl<S, I>> : std::true_type {};

// Placements of a module's tensor: replicate, overridden by whole-model styles (reduced), then by the module's styles. A
// buffer, too, is reduced where the batch is split: that is what a tensor beside a split one must be, and what makes it so
// costs nothing.
template <class PB, class Shape>
constexpr spec parameter_spec() {
  using bound = typename PB::parent;
  using mesh_type = typename bound::context::mesh_type;
  spec s = mesh_spec<mesh_type>(bound::context::type);
  set_extents<Shape>(s);
  constexpr const char* name = member_name<typename bound::unbound_module, PB::index>();
  for_each_style<bound>(typename bound::plan_type{}, [&]<class Style>() {
    constexpr int a = mesh_type::template index_of<typename Style::axis>;
    if constexpr (a >= 0 && !is_sharding<Style>) {
      if constexpr (Style::whole_model) {
        s.place[a] = reduced_value();
      } else {
        const maybe_placement p = Style::parameter(bound::unbound_module::kind, name, s.rank);
        if (p.given) s.place[a] = p.value;
      }
    }
  });
  normalise(s);
  return s;
}

// The mesh axes, as bits, over which the optimizer's states of a parameter are split while it is whole itself: those of several
// ranks where the style that places it says so. A parameter without dims has no rows to split.
template <class PB, class Shape>
constexpr unsigned axes_of_states() {
  using bound = typename PB::parent;
  using mesh_type = typename bound::context::mesh_type;
  unsigned axes = 0;
  spec s = mesh_spec<mesh_type>(bound::context::type);
  set_extents<Shape>(s);
  if (s.rank == 0) return 0;
  constexpr const char* name = member_name<typename bound::unbound_module, PB::index>();
  for_each_style<bound>(typename bound::plan_type{}, [&]<class Style>() {
    constexpr int a = mesh_type::template index_of<typename Style::axis>;
    if constexpr (a >= 0 && !is_sharding<Style>) {
      constexpr unsigned bit = 1U << a;
      if constexpr (requires { Style::splits_states; }) axes = Style::splits_states ? axes | bit : axes & ~bit;
      else if (Style::parameter(bound::unbound_module::kind, name, s.rank).given) axes &= ~bit;
      if (Style::axis::size == 1) axes &= ~bit;
    }
  });
  return axes;
}

// How a tensor of a group is placed where it is used, and how it is stored between uses: by rows over the axes of its group's
// fully_shard, the inner one first, behind all axes that split them otherwise; `part` is over the inner one alone. Where the
// batch is split, it is used whole and reduced.
struct tensor_placing {
  spec used, stored, part;
  finding error;
};
template <class Sharding, class Mesh>
constexpr tensor_placing placed_in_group(const spec& s, bool is_buffer) {
  tensor_placing r{s, s, s, {}};
  constexpr int axis = Mesh::template index_of<typename Sharding::axis>;
  constexpr int inner = Mesh::template index_of<typename Sharding::inner>;
  constexpr int copies = Mesh::template index_of<typename Sharding::replicated>;
  for (const int a : {axis, inner, copies}) {
    if (a < 0) continue;  // none, or said by plan_check
    if (!s.place[a].is_whole() && !r.error) r.error = {problem::fully_shard_placed, 0, -1, a};
    r.used.place[a] = reduced_value();
  }
  if constexpr (Sharding::flat) {
    for (int a = 0; a < s.axes && !is_buffer; ++a)
      if (!s.place[a].is_whole() && !r.error) r.error = {problem::flat_parameters_placed, 0, -1, a};
    if (!is_buffer) r.used.offset = 1;  // a view of the flat one
    r.stored = r.part = r.used;
    return r;
  }
  r.stored = r.part = r.used;
  if (axis < 0 || is_buffer || s.rank == 0 || r.error) return r;
  const auto split = [](spec& whole, int a) {
    whole.place[a] = strided_shard_value(0, last_factor(whole, a, 0));
    normalise(whole);
  };
  if (inner >= 0) split(r.part, inner);
  r.stored = r.part;
  split(r.stored, axis);
  r.error = check_placements(r.stored);
  return r;
}
template <class PB, class Shape, bool Buffer>
struct tensor_in_group {
  using bound = typename PB::parent;
  using sharding = typename owning_group<bound>::style;
  static constexpr tensor_placing value = [] {
    const spec s = parameter_spec<PB, Shape>();
    if constexpr (std::is_void_v<sharding>) return tensor_placing{s, s, s, {}};
    else return placed_in_group<sharding, typename bound::context::mesh_type>(s, Buffer);
  }();
  static constexpr bool in_shards = !(value.stored == value.used);
  static constexpr bool is_flat = !Buffer && is_flat_sharding<sharding>;
};

// How a parameter is used: in another element type than it is stored in, or in that; and in which type its gradient is summed.
template <class PB>
struct parameter_precision {
  using bound = typename PB::parent;
  using plan_type = typename bound::plan_type;
  static constexpr auto state = plan_traits<plan_type>::advance(
      bound::state, std::string_view(member_name<typename bound::unbound_module, PB::index>()));
  static constexpr precision says = precision_at<plan_type, state>::value;
  static constexpr dtype stored = bound::context::type, used = says.said ? says.parameters : stored;
  static constexpr dtype summed = says.reduce < 0 ? stored : static_cast<dtype>(says.reduce);
};
constexpr spec of_type(spec s, dtype t) {
  s.type = t;
  return s;
}

constexpr finding check_parameter(const spec& s, problem partial) {
  for (int a = 0; a < s.axes; ++a)
    if (s.place[a].is_partial()) return {partial, 0, -1, a};
  return check_placements(s);
}

// The entries of a plan that name a module, by the bits of plan_traits::matched.
template <unsigned Hit, class Plan>
struct entries_naming;
template <unsigned Hit, class... E>
struct entries_naming<Hit, plan<E...>> {
  template <std::size_t... K>
  static constexpr auto list(std::index_sequence<K...>) {
    return
        typename joined_lists<type_list<>,
                              std::conditional_t<((Hit >> K) & 1U) != 0, type_list<plan_entry<E>>, type_list<>>...>::type{};
  }
  using type = decltype(list(std::index_sequence_for<E...>{}));
};

// A tensor of a module that cannot be placed: its name, its module, and the plan's entries that place it, with their paths.
template <finding F, class PB, class Shape>
struct placed_as {
  using bound = typename PB::parent;
  using entries = typename entries_naming<plan_traits<typename bound::plan_type>::matched(bound::state),
                                          typename bound::plan_type>::type;
  using own = type_list<typename name_of_member<typename bound::unbound_module, PB::index>::type, Shape,
                        typename bound::unbound_module>;
  static constexpr bool ok = raise_list<
      F.what,
      typename joined_lists<own, entries, typename finding_facts<F, typename bound::context::mesh_type>::type>::type>::ok;
};
template <finding F, class PB, class Shape>
  requires(F.what == problem::none)
struct placed_as<F, PB, Shape> {
  static constexpr bool ok = true;
};

// What the gradients of a model have in a buffer's place.
struct no_gradient {};

template <class Ctx, spec S, bool Buffer>
struct tensor_in {
  using type = typename Ctx::template tensor<S>;
};
template <class Ctx, spec S>
  requires requires { typename Ctx::of_gradients; }
struct tensor_in<Ctx, S, true> {
  using type = no_gradient;
};

// Decl: a parameter_decl or buffer_decl.
template <class Decl, class PB>
struct tensor_of_module {
  static constexpr bool is_buffer = is_buffer_decl<Decl>::value;
  static constexpr bool in_groups = plan_traits<typename PB::parent::plan_type>::any_shards;
  using in_group = tensor_in_group<PB, typename Decl::shape_type, is_buffer>;
  static constexpr spec built = [] {
    if constexpr (in_groups) return in_group::value.used;
    else return parameter_spec<PB, typename Decl::shape_type>();
  }();
  static constexpr finding error = [] {
    if constexpr (in_groups)
      if (in_group::value.error) return in_group::value.error;
    return check_parameter(built, is_buffer ? problem::buffer_partial : problem::parameter_partial);
  }();
  static_assert(placed_as<error, PB, typename Decl::shape_type>::ok);
  using context = typename PB::parent::context;
  static constexpr bool records = requires { typename context::records; };
  static constexpr spec held = [] {
    if constexpr (in_groups && !records) return in_group::value.stored;
    else if constexpr (records && !is_buffer && plan_traits<typename PB::parent::plan_type>::any_mixed)
      return of_type(built, parameter_precision<PB>::used);
    else return built;
  }();
  using type = typename tensor_in<context, held, is_buffer>::type;
};
template <class Decl>
struct tensor_of_module<Decl, unbound> {
  using type = Decl;
};

// One while its module's declaration is checked.
template <class Decl, class Place>
struct placed_tensor {};
template <class Decl, int Depth, int Index>
struct tensor_of_module<Decl, place<Depth, Index>> {
  using type = placed_tensor<Decl, place<Depth, Index>>;
};

}  // namespace detail

// A member that is trained: its extents, and init::* for its first values.
template <class Shape, class Init, class PB = unbound>
using parameter = typename detail::tensor_of_module<parameter_decl<Shape, Init>, PB>::type;

// A member that lasts from step to step and is no parameter: a running statistic, a moving average. It is declared, placed,
// initialised, named and copied as a parameter is; it is not differentiated, and no optimizer sees it. In forward it is a
// tensor to read, and to write in place: lerp_(running_mean, mean, 0.1), copy_, add_, mul_, ... A program stores what was
// written last once, at its end; within it, what reads the buffer after the write reads the new value.
//
// Law: a write takes the value alone, as under torch.no_grad. No gradient flows through a buffer; a loss that would need one,
// since it reads a buffer behind a write of what depends on a parameter, is refused: it must read that value itself, or
// detach(buffer), which says that no gradient is wanted. What is
// written is placed as the buffer is: a mean over a split batch is redistributed first.
template <class Shape, class Init, class PB = unbound>
using buffer = typename detail::tensor_of_module<buffer_decl<Shape, Init>, PB>::type;

}  // namespace shardwise::inline v0_1
