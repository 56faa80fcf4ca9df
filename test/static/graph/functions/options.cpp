// SPDX-License-Identifier: Apache-2.0
// Options of functions, dims that stay and real numbers among template arguments; results by name; claims about blocks.
#include <limits>

#include <shardwise/graph/functions/local.hpp>
#include <shardwise/graph/functions/option_number.hpp>
#include <shardwise/graph/functions/ranking_functions.hpp>
#include <shardwise/graph/functions/reduction_functions.hpp>

#include "typed.hpp"

namespace {

// --- keepdim --------------------------------------------------------------------------------------------------------------------

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<double, sw::shape<6, 4, 3>, mesh, sw::shard<0>>;
template <std::int64_t... E>
constexpr bool has_extents(const sw::spec& s, sw::placement p) {
  const std::int64_t extents[] = {E...};
  bool same = s.rank == sizeof...(E) && s.place[0] == p;
  for (int d = 0; same && d < s.rank; ++d) same = s.extent[d] == extents[d];
  return same;
}
constexpr sw::keepdim_t stays{};
static_assert(std::is_same_v<decltype(sw::keepdim), const sw::keepdim_t>);
static_assert(has_extents<1, 4, 3>(decltype(sw::sum<0>(x{}, stays))::sp, sw::partial_value()) &&
              has_extents<4, 3>(decltype(sw::sum<0>(x{}))::sp, sw::partial_value()));
static_assert(has_extents<6, 1, 1>(decltype(sw::sum<1, -1>(x{}, stays))::sp, sw::shard_value(0)));
static_assert(has_extents<1, 1, 1>(decltype(sw::mean(x{}, stays))::sp, sw::partial_value()));
static_assert(has_extents<6, 1, 3>(decltype(sw::amax<1>(x{}, stays))::sp, sw::shard_value(0)) &&
              has_extents<1, 4, 3>(decltype(sw::amin<0>(x{}, stays))::sp, sw::partial_value(sw::reduction::min)) &&
              has_extents<1, 4, 3>(decltype(sw::prod<0>(x{}, stays))::sp, sw::partial_value(sw::reduction::product)));

// --- values and where they stand, by name --------------------------------------------------------------------------------------

template <class T>
struct parts_of;
template <class Values, class Indices>
struct parts_of<sw::ranked<Values, Indices>> {
  static constexpr sw::dtype values = Values::sp.type, indices = Indices::sp.type;
  static constexpr std::int64_t count = Values::sp.extent[2];
  static constexpr bool alike =
      Values::sp.rank == 3 && Indices::sp.extent[2] == count && Values::sp.place[0] == Indices::sp.place[0];
};
using largest = parts_of<decltype(sw::topk<2>(x{}))>;
static_assert(largest::values == sw::dtype::f64 && largest::indices == sw::dtype::i32 && largest::count == 2 &&
              largest::alike);
static_assert(parts_of<decltype(sw::sort(x{}))>::count == 3 && parts_of<decltype(sw::sort(x{}))>::alike);
static_assert([] {
  const auto [values, indices] = sw::ranked<int, long>{3, 7};
  return values == 3 && indices == 7;
}());

// --- a claim about blocks that nobody has looked at yet -------------------------------------------------------------------------

using block = decltype(sw::to_local(x{}));
using right_claim = decltype(sw::from_local_unchecked<sw::shape<6, 4, 3>, sw::shard<0>>(block{}));
static_assert(std::is_same_v<right_claim, sw::claimed<block, sw::shape<6, 4, 3>, sw::shard<0>>> &&
              right_claim::placements == 1 && std::is_same_v<right_claim::local_type, block>);
static_assert(std::is_same_v<decltype(right_claim{block{}}.checked()),
                             decltype(sw::from_local<sw::shape<6, 4, 3>, sw::shard<0>>(block{}))>);
// What it is: no tensor, whatever it claims.
using wrong_claim = decltype(sw::from_local_unchecked<sw::shape<9>, sw::shard<0>, sw::shard<3>>(block{}));
static_assert(!sw::tensor<right_claim> && !sw::tensor<wrong_claim> && wrong_claim::placements == 2);

// --- option_number --------------------------------------------------------------------------------------------------------------

template <sw::option_number N>
constexpr double given = N.value();
static_assert(given<0.1> == 0.1 && given<-2.5> == -2.5 && given<1e-300> == 1e-300);
static_assert(given<std::numeric_limits<double>::infinity()> == std::numeric_limits<double>::infinity());
static_assert(given<__builtin_nan("")> != given<__builtin_nan("")>);
// Integers are numbers, whatever their size; under nvcc those of 2^52 and more are bits, which is how it writes an argument anew.
static_assert(given<3> == 3 && given<-7> == -7 && given<static_cast<short>(5)> == 5 && given<2U> == 2 && given<true> == 1);
static_assert(given<3L> == 3 && given<-7LL> == -7 && given<0L> == 0 && given<0UL> == 0 &&
              given<(1L << 52) - 1> == 0x1p52 - 1 && given<1 - (1L << 52)> == 1 - 0x1p52);
#ifdef __CUDACC__
static_assert(given<sw::option_number(0.1).bits> == 0.1 && given<sw::option_number(-2.5).bits> == -2.5 &&
              given<sw::option_number(0x1p-1022).bits> == 0x1p-1022 && given<sw::option_number(-0.0).bits> == 0);
#else
static_assert(given<(1L << 52)> == 0x1p52 && given<-(1L << 60)> == -0x1p60 && given<1UL << 63> == 0x1p63);
#endif
// One number is one type.
template <sw::option_number N>
struct named {};
static_assert(std::is_same_v<named<2>, named<2.0>> && std::is_same_v<named<2L>, named<2.0>> &&
              !std::is_same_v<named<0.0>, named<-0.0>>);
static_assert(std::is_same_v<named<__builtin_nan("")>, named<-__builtin_nan("7")>>);
// What is so near to 0 that its bits could be an integer's is 0.
static_assert(std::is_same_v<named<0x1p-1023>, named<0.0>> && std::is_same_v<named<-0x1p-1074>, named<-0.0>> &&
              given<0x1p-1022> == 0x1p-1022 && given<-0x1p-1022> == -0x1p-1022);

}  // namespace
