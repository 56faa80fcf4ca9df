// SPDX-License-Identifier: Apache-2.0
// Strided shards and norms above the rules: blocks as tensors of their own, and how graphs print these placements.

#include <shardwise/graph/functions/local.hpp>
#include <shardwise/graph/text/text.hpp>

#include <string_view>

#include "typed.hpp"

namespace {

struct pp : sw::axis<2> {};
struct dp : sw::axis<3> {};
struct tp : sw::axis<2> {};
using cube = sw::mesh<pp, dp, tp>;
using R = sw::replicate;
template <int D>
using S = sw::shard<D>;
template <class... P>
using x = typed<float, sw::shape<12, 4>, cube, P...>;

// The ranks' blocks stay what they are, whichever axis has no part in the split; and come back as the tensor.
template <class... P>
constexpr bool blocks_stay() {
  using local = decltype(sw::to_local(x<P...>{}));
  using back = decltype(sw::from_local<sw::shape<12, 4>, P...>(local{}));
  bool sharded = true;
  for (int a = 0; a < 3; ++a) sharded = sharded && local::sp.place[a].is_shard();
  return sharded && sw::same_blocks(local::sp, x<P...>::sp) && !sw::check_placements(local::sp) && back::sp == x<P...>::sp;
}
static_assert(blocks_stay<R, sw::strided_shard<0, 2>, S<0>>());
static_assert(blocks_stay<sw::strided_shard<0, 2>, R, S<0>>());
static_assert(blocks_stay<sw::strided_shard<0, 3>, S<0>, R>());
static_assert(blocks_stay<sw::strided_shard<0, 6>, S<0>, S<0>>());
static_assert(blocks_stay<sw::strided_shard<0, 2>, sw::strided_shard<0, 2>, S<0>>());
static_assert(blocks_stay<sw::strided_shard<0, 2>, sw::partial<>, S<0>>());

// blocks that ranks put together in a strided order
using claimed = decltype(sw::from_local<sw::strided_shard<-2, 6>, S<-2>, S<0>>(
    typed<float, sw::shape<24, 4>, cube, S<0>, S<0>, S<0>>{}));
static_assert(claimed::sp.extent[0] == 24 && claimed::sp.place[0] == sw::strided_shard_value(0, 6));

// graphs look specs up by a hash, in which each field of a placement has a part
constexpr std::uint64_t hash_with(sw::placement p) {
  sw::spec s = claimed::sp;
  s.place[0] = p;
  return sw::hash_of(s);
}
constexpr bool hashes_differ() {
  const sw::placement p[] = {sw::replicate_value(),
                             sw::reduced_value(),
                             sw::partial_value(),
                             sw::partial_value(sw::reduction::max),
                             sw::partial_norm_value(1),
                             sw::partial_norm_value(2),
                             sw::shard_value(0),
                             sw::shard_value(1),
                             sw::shard_value(0, 2),
                             sw::strided_shard_value(0, 2),
                             sw::strided_shard_value(0, 6),
                             sw::strided_shard_value(0, 2, 2)};
  for (const auto& a : p)
    for (const auto& b : p)
      if ((hash_with(a) == hash_with(b)) != (a == b)) return false;
  return true;
}
static_assert(hashes_differ());

struct sink {
  char text[64]{};
  int size = 0;
  constexpr void push_back(char c) { text[size++] = c; }
};
constexpr bool prints(sw::placement p, std::string_view expected) {
  sink s;
  sw::text::put_placement(s, p);
  return std::string_view(s.text, static_cast<std::size_t>(s.size)) == expected;
}
static_assert(prints(sw::placement_v<sw::strided_shard<1, 4>>, "strided_shard<1, 4>"));
static_assert(prints(sw::placement_v<sw::partial_norm<2>>, "partial_norm<2>"));
static_assert(prints(sw::placement_v<S<1>>, "shard<1>") && prints(sw::partial_value(), "partial"));
static_assert(prints(sw::partial_value(sw::reduction::max), "partial<max>"));

}  // namespace
