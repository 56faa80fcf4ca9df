// SPDX-License-Identifier: Apache-2.0
// Proofs while compiling: one constant expression for each placement that the rule of a case admits.
//
//   static_assert(sw::laws::holds<sw::laws::customs<mine::swiglu, mine::swiglu_gate, mine::swiglu_up>,
//                                 sw::shape<5, 3>, sw::shape<5, 3>> > 0);
//
// proves the first of the custom operations on operands of these shapes, on meshes of one axis of 2 and of 3 ranks and of two
// axes: its rows and its kernel agree with one device, and so do its adjoint's, whose custom operations are named behind it. Take
// extents that the ranks do not divide, and few elements (at most 72 a tensor).
#pragma once

#include <utility>

#include <shardwise/laws/placings.hpp>

namespace shardwise::inline v0_1::laws {

// Compilers print the operation, the number of ranks, the case, the placement's number and what failed.
template <class Op, int Ranks, class Case, int Placing, failure Found>
struct proof {
  static_assert(Found == failure::none,
                "a sharding rule admits a placement under which ranks do not compute what one device does");
  static constexpr int count = 1;
};

// Case: `value`, a program; `operation`, what is proved; `used`, the customs whose kernels it runs. With several results, Unread
// is the one without reader and cotangent, -1: all have both.
template <class Case, int Unread = -1>
struct one_device {
  static constexpr reference value = solve<typename Case::used>(Case::value, Unread);
  static constexpr int count = proof<typename Case::operation, 1, Case, -1, value.wrong>::count;
};
template <class Case, int Ranks>
inline constexpr placings placings_on = placings_of(Case::value, Ranks);
// Law: the kernel runs with any one of its results unwanted, and so does the adjoint.
template <class Case,
          class Results = std::make_integer_sequence<int, (Case::value.results() > 1 ? Case::value.results() : 0)>>
struct unread_results;
template <class Case, int... Unread>
struct unread_results<Case, std::integer_sequence<int, Unread...>> {
  template <int K>
  static constexpr failure alone = run_without<typename Case::used>(Case::value, K);
  static constexpr int count =
      (0 + ... + (proof<typename Case::operation, 1, Case, -1, alone<Unread>>::count + one_device<Case, Unread>::count));

  template <int Ranks, int Placing>
  struct placed {
    template <int K>
    static constexpr failure found = prove<typename Case::used>(
        Case::value, placings_on<Case, Ranks>.item[Placing], ranks_of{1, {Ranks, 1, 1, 1}}, one_device<Case, K>::value, K);
    static constexpr int count = (0 + ... + proof<typename Case::operation, Ranks, Case, Placing, found<Unread>>::count);
  };
};

template <class Case, int Ranks>
struct on_one_axis {
  static constexpr ranks_of mesh{1, {Ranks, 1, 1, 1}};
  static constexpr placings all = placings_of(Case::value, Ranks);

  template <int I>
  struct nth {
    static constexpr failure found = prove<typename Case::used>(Case::value, all.item[I], mesh, one_device<Case>::value);
    static constexpr int without = unread_results<Case>::template placed<Ranks, I>::count;
    static_assert(without >= 0);  // they are part of this placement's proof
    static constexpr int count = proof<typename Case::operation, Ranks, Case, I, found>::count;
  };
  template <int... I>
  static constexpr int prove_all(std::integer_sequence<int, I...>) {
    return (0 + ... + nth<I>::count);
  }
  static constexpr int count = prove_all(std::make_integer_sequence<int, all.count>{});
};

// Rules hold on each axis alone; that they combine is sampled here.
template <class Case, int Ranks>
struct on_two_axes {
  static constexpr ranks_of mesh{2, {2, Ranks, 1, 1}};
  using first = on_one_axis<Case, 2>;
  using second = on_one_axis<Case, Ranks>;

  template <int I>
  struct nth {
    static constexpr placing at = both_axes(first::all.item[I], second::all.item[(3 * I + 1) % second::all.count]);
    static constexpr bool admitted = admits(Case::value, at, mesh);
    static constexpr failure found =
        admitted ? prove<typename Case::used>(Case::value, at, mesh, one_device<Case>::value) : failure::none;
    static constexpr int count = admitted ? proof<typename Case::operation, 2 * Ranks, Case, I, found>::count : 0;
  };
  template <int... I>
  static constexpr int prove_all(std::integer_sequence<int, I...>) {
    return (0 + ... + nth<I>::count);
  }
  static constexpr int count = prove_all(std::make_integer_sequence<int, first::all.count>{});
};

// --- a user's own operation --------------------------------------------------------------------------------------------

namespace detail {

template <std::int64_t... E>
constexpr leaf leaf_of(shape<E...>) {
  return tensor_of({static_cast<int>(E)...});
}

template <class Customs>
struct first_custom;
template <const custom_operation& Op, const custom_operation&... More>
struct first_custom<customs<Op, More...>> {
  static constexpr const custom_operation* value = &Op;
  using tag = shardwise::detail::custom_tag<Op>;
};

}  // namespace detail

// The first of Customs on tensors of these shapes. Attributes as those of `call`; for operands that are indices, or of few
// different values, write a case of your own.
template <class Customs, op_attr Attributes, class... Shape>
struct custom_case {
  using used = Customs;
  using operation = typename detail::first_custom<Customs>::tag;
  static constexpr program value = apply(detail::first_custom<Customs>::value, {detail::leaf_of(Shape{})...}, Attributes);
};

// How many placements were proved. What fails does not compile.
template <class Case>
inline constexpr int holds_case = (unread_results<Case>::count >= 0 ? one_device<Case>::count : 0) +
                                  on_one_axis<Case, 2>::count + on_one_axis<Case, 3>::count + on_two_axes<Case, 3>::count;
template <class Customs, class... Shape>
inline constexpr int holds = holds_case<custom_case<Customs, op_attr{}, Shape...>>;

// The operation of a local_map on tensors of these shapes, as Map places them, on Map's own mesh (of at most two axes and six
// ranks): true, or it does not compile.
template <class Customs, class Map, class... Shape>
struct mapped_case : custom_case<Customs, op_attr{}, Shape...> {
  using base = custom_case<Customs, op_attr{}, Shape...>;
  static_assert(Map::mesh_type::size <= max_ranks && Map::mesh_type::axes <= 2,
                "shardwise: local_map is proved on at most two axes and six ranks.");
  static constexpr ranks_of mesh = [] {
    ranks_of m;
    const spec s = shardwise::detail::mesh_spec<typename Map::mesh_type>(dtype::f32);
    m.axes = s.axes;
    for (int a = 0; a < s.axes; ++a) m.size[a] = s.axis_size[a];
    return m;
  }();
  static constexpr placing at = [] {
    placing p;
    for (int k = 0; k < Map::operands; ++k)
      for (int a = 0; a < mesh.axes; ++a) {
        placement want = Map::in[k].at[a];
        if (want.is_shard() && want.dim < 0) want = split_along(want.dim + base::value.leaves[k].rank, want);
        p.at[k][a] = want;
      }
    return p;
  }();
  static constexpr failure found = [] {
    // one device computes the same, with all operands whole: a record without rows gives the shape alone there
    constexpr const program& p = base::value;
    reference alone;
    ranks_of one = mesh;
    for (std::int32_t& n : one.size) n = 1;
    alone.wrong = run_program<true, Customs>(p, at, one, alone);
    return alone.wrong != failure::none ? alone.wrong : prove<Customs>(p, at, mesh, alone);
  }();
};
template <class Customs, class Map, class... Shape>
inline constexpr bool holds_local_map = proof<typename detail::first_custom<Customs>::tag, Map::mesh_type::size, Map, 0,
                                              mapped_case<Customs, Map, Shape...>::found>::count == 1;

}  // namespace shardwise::inline v0_1::laws
