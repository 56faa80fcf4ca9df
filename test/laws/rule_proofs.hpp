// SPDX-License-Identifier: Apache-2.0
// Proves every sharding rule and its adjoint while compiling: one constant expression for each admitted placement.
#include <laws/rule_cases.hpp>

#include <utility>

namespace shardwise::laws {

// Compilers print the operation, the number of ranks, the case, the placement's number and what failed.
template <class Op, int Ranks, int Case, int Placing, failure Found>
struct proof {
  static_assert(Found == failure::none,
                "a sharding rule admits a placement under which ranks do not compute what one device does");
  static constexpr int count = 1;
};

template <int Case>
struct one_device {
  using op = typename shardwise::detail::op_tag<cases[Case].last().op>::type;
  static constexpr reference value = solve(cases[Case]);
  static constexpr int count = proof<op, 1, Case, -1, value.wrong>::count;
};

template <int Case, int Ranks>
struct on_one_axis {
  using op = typename shardwise::detail::op_tag<cases[Case].last().op>::type;
  static constexpr ranks_of mesh{1, {Ranks, 1, 1, 1}};
  static constexpr placings all = placings_of(cases[Case], Ranks);
  static_assert(!all.overflowed());

  template <int I>
  struct nth {
    static constexpr failure found = prove(cases[Case], all.item[I], mesh, one_device<Case>::value);
    static constexpr int count = proof<op, Ranks, Case, I, found>::count;
  };
  template <int... I>
  static constexpr int prove_all(std::integer_sequence<int, I...>) {
    return (0 + ... + nth<I>::count);
  }
  static constexpr int count = prove_all(std::make_integer_sequence<int, all.count>{});
};

// Rules hold on each axis alone; that they combine is sampled here, and shown for every pair when the tests run.
template <int Case, int Ranks>
struct on_two_axes {
  using op = typename shardwise::detail::op_tag<cases[Case].last().op>::type;
  static constexpr ranks_of mesh{2, {2, Ranks, 1, 1}};
  using first = on_one_axis<Case, 2>;
  using second = on_one_axis<Case, Ranks>;

  template <int I>
  struct nth {
    static constexpr placing at = both_axes(first::all.item[I], second::all.item[(3 * I + 1) % second::all.count]);
    static constexpr bool admitted = admits(cases[Case], at, mesh);
    static constexpr failure found = admitted ? prove(cases[Case], at, mesh, one_device<Case>::value) : failure::none;
    static constexpr int count = admitted ? proof<op, 2 * Ranks, Case, I, found>::count : 0;
  };
  template <int... I>
  static constexpr int prove_all(std::integer_sequence<int, I...>) {
    return (0 + ... + nth<I>::count);
  }
  static constexpr int count = prove_all(std::make_integer_sequence<int, first::all.count>{});
};

template <int Case>
constexpr int prove_case() {
  int n = one_device<Case>::count + on_one_axis<Case, 2>::count + on_one_axis<Case, 3>::count;
  if constexpr (Case % 6 == 1) n += on_two_axes < Case, Case % 4 == 1 ? 2 : 3 > ::count;
  return n;
}
template <int... Case>
constexpr int prove_cases(std::integer_sequence<int, Case...>) {
  return (0 + ... + prove_case<Case>());
}
static_assert(prove_cases(std::make_integer_sequence<int, case_count>{}) > case_count);

// The constant that starts the reverse sweep.
template <class P, int Ranks>
struct seed {
  static constexpr failure found = prove_seed<P, Ranks>();
  static constexpr int count = proof<op::fill, Ranks, 0, 0, found>::count;
};
static_assert(seed<replicate, 2>::count + seed<reduced, 2>::count + seed<partial<>, 3>::count +
                  seed<reduced, 3>::count ==
              4);

// Fills, whose numbers are functions of the element alone.
template <int I, int Ranks>
struct filled {
  static constexpr int tried = prove_fills(fills[I], Ranks);
  using op = typename shardwise::detail::op_tag<fills[I].op>::type;
  static constexpr int count = proof<op, Ranks, I, 0, tried == 2 + fills[I].shape.rank ? failure::none : failure::value>::count;
};
template <int... I>
constexpr int prove_all_fills(std::integer_sequence<int, I...>) {
  return (0 + ... + (filled<I, 2>::count + filled<I, 3>::count));
}
static_assert(prove_all_fills(std::make_integer_sequence<int, sizeof(fills) / sizeof(fills[0])>{}) == 8);

// Whole train steps of one parameter, its gradient partial, sharded or whole, and strided.
template <class Optimizer, class W, class X, int Ranks>
struct update {
  using op = typename shardwise::detail::op_tag<Optimizer::op>::type;
  static constexpr failure found = prove_update<Optimizer, W, X, Ranks>();
  static constexpr int count = proof<op, Ranks, 0, 0, found>::count;
};
template <class Optimizer>
inline constexpr int updates =
    update<Optimizer, reduced, shard<0>, 2>::count + update<Optimizer, reduced, reduced, 3>::count +
    update<Optimizer, shard<0>, shard<2>, 3>::count + update<Optimizer, shard<1>, shard<1>, 2>::count;
static_assert(updates<sgd<true>> + updates<adam<>> + updates<clip_norm<adamw<true>>> == 12);

}  // namespace shardwise::laws
