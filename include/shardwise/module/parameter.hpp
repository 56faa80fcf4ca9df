// SPDX-License-Identifier: Apache-2.0
// parameter: a leaf of a module: unbound it declares shape and initial values, bound it is the context's tensor.
#pragma once

#include <cstdint>

#include <shardwise/module/binding.hpp>
#include <shardwise/vocabulary/init.hpp>

namespace shardwise {

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

// A member that a configuration leaves out: std::conditional_t<Bias, sw::parameter<...>, sw::absent>.
struct absent {};

namespace detail {

template <class S, class I>
struct is_parameter_decl<parameter_decl<S, I>> : std::true_type {};

// Placements of a parameter: replicate, overridden by whole-model styles (reduced), then by the module's styles.
template <class PB, class Shape>
constexpr spec parameter_spec() {
  using bound = typename PB::parent;
  using mesh_type = typename bound::context::mesh_type;
  spec s = mesh_spec<mesh_type>(bound::context::type);
  set_extents<Shape>(s);
  constexpr const char* name = member_name<typename bound::unbound_module, PB::index>();
  for_each_style<bound>(typename bound::plan_type{}, [&]<class Style>() {
    constexpr int a = mesh_type::template index_of<typename Style::axis>;
    if constexpr (a >= 0) {
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

constexpr finding check_parameter(const spec& s) {
  for (int a = 0; a < s.axes; ++a)
    if (s.place[a].is_partial()) return {problem::parameter_partial, 0, -1, a};
  return check_placements(s);
}

// The entries of a plan that name a module, by the bits of plan_traits::matched.
template <unsigned Hit, class Plan>
struct entries_naming;
template <unsigned Hit, class... E>
struct entries_naming<Hit, plan<E...>> {
  template <std::size_t... K>
  static constexpr auto list(std::index_sequence<K...>) {
    return typename joined_lists<type_list<>, std::conditional_t<((Hit >> K) & 1U) != 0, type_list<plan_entry<E>>, type_list<>>...>::type{};
  }
  using type = decltype(list(std::index_sequence_for<E...>{}));
};

// A parameter that cannot be placed: its name, its module, and the plan's entries that place it, with their paths.
template <finding F, class PB, class Shape>
struct placed_as {
  using bound = typename PB::parent;
  using entries = typename entries_naming<plan_traits<typename bound::plan_type>::matched(bound::state), typename bound::plan_type>::type;
  using own = type_list<typename name_of_member<typename bound::unbound_module, PB::index>::type, Shape, typename bound::unbound_module>;
  static constexpr bool ok = raise_list<
      F.what, typename joined_lists<own, entries, typename finding_facts<F, typename bound::context::mesh_type>::type>::type>::ok;
};
template <finding F, class PB, class Shape>
  requires(F.what == problem::none)
struct placed_as<F, PB, Shape> {
  static constexpr bool ok = true;
};

template <class Shape, class Init, class PB>
struct parameter_of {
  static constexpr spec built = parameter_spec<PB, Shape>();
  static constexpr finding error = check_parameter(built);
  static_assert(placed_as<error, PB, Shape>::ok);
  using type = typename PB::parent::context::template tensor<built>;
};
template <class Shape, class Init>
struct parameter_of<Shape, Init, unbound> {
  using type = parameter_decl<Shape, Init>;
};

// A parameter while its module's declaration is checked.
template <class Shape, class Init, class Place>
struct placed_parameter {};
template <class Shape, class Init, int Depth, int Index>
struct parameter_of<Shape, Init, place<Depth, Index>> {
  using type = placed_parameter<Shape, Init, place<Depth, Index>>;
};

}  // namespace detail

// A member that is trained: its extents, and init::* for its first values.
template <class Shape, class Init, class PB = unbound>
using parameter = typename detail::parameter_of<Shape, Init, PB>::type;

}  // namespace shardwise
