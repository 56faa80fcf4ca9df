// SPDX-License-Identifier: Apache-2.0
// Views, joins and splits as users write them: DTensor's placements of views, what this library refuses where DTensor
// replicates unasked, and that implicit mode then does the same.
#include <shardwise/graph/functions/fills.hpp>
#include <shardwise/graph/functions/indexing.hpp>
#include <shardwise/graph/functions/joins.hpp>

#include <algorithm>

#include <typed.hpp>

namespace {

template <int N>
struct ranks : sw::axis<N> {};
template <int N, class Shape, class... P>
using on = typed<float, Shape, sw::mesh<ranks<N>>, P...>;
template <class Shape, class... P>
using two = on<2, Shape, P...>;

using R = sw::replicate;
using U = sw::reduced;
using P = sw::partial<>;
template <int D>
using S = sw::shard<D>;

template <class X, class Placement, std::int64_t... E>
constexpr bool is = [] {
  const std::int64_t want[] = {E..., 0};
  bool same = X::sp.rank == sizeof...(E) && X::sp.place[0] == sw::placement_v<Placement>;
  for (int d = 0; d < X::sp.rank && same; ++d) same = X::sp.extent[d] == want[d];
  return same;
}();
// The reshape that strict mode refuses, by the rule; and where implicit mode has the tensor whole.
template <class X, std::int64_t... E>
constexpr bool refused = [] {
  constexpr auto list = sw::detail::inferred({E...}, X::sp, 0, X::sp.rank);
  const sw::spec in[] = {X::sp};
  return sw::infer(sw::op_code::reshape, list.attributes(), in, 1).error.what == sw::problem::reshape_crosses_shard;
}();

// --- views: DTensor's placements ---------------------------------------------------------------------------------------

static_assert(is<decltype(sw::view<24>(two<sw::shape<4, 6>, S<0>>{})), S<0>, 24>);  // the leftmost of a merge
static_assert(refused<two<sw::shape<4, 6>, S<1>>, 24>);                             // DTensor replicates first
static_assert(is<decltype(sw::strict(sw::view<24>(sw::implicit(two<sw::shape<4, 6>, S<1>>{})))), R, 24>);
static_assert(is<decltype(sw::view<4, -1>(two<sw::shape<8>, S<0>>{})), S<0>, 4, 2>);
static_assert(refused<on<4, sw::shape<6>, S<0>>, 2, 3>);  // 2 % 4 != 0
static_assert(is<decltype(sw::strict(sw::view<2, 3>(sw::implicit(on<4, sw::shape<6>, S<0>>{})))), R, 2, 3>);
static_assert(is<decltype(sw::view<-1, 4>(two<sw::shape<2, 3, 4>, S<2>>{})), S<1>, 6, 4>);
static_assert(is<decltype(sw::view<6>(two<sw::shape<1, 6>, S<1>>{})), S<0>, 6>);
static_assert(is<decltype(sw::view<2, 2, 4>(two<sw::shape<4, 4>, S<1>>{})), S<2>, 2, 2, 4>);

static_assert(is<decltype(sw::permute<0, 2, 1>(two<sw::shape<2, 4, 6>, S<1>>{})), S<2>, 2, 6, 4>);
static_assert(is<decltype(sw::transpose<-1, 1>(two<sw::shape<2, 4, 6>, S<2>>{})), S<1>, 2, 6, 4>);
static_assert(is<decltype(sw::unsqueeze<0>(two<sw::shape<4>, S<0>>{})), S<1>, 1, 4>);
static_assert(is<decltype(sw::unsqueeze<-1>(two<sw::shape<4>, S<0>>{})), S<0>, 4, 1>);
static_assert(is<decltype(sw::squeeze<0>(two<sw::shape<1, 4>, S<1>>{})), S<0>, 4>);
static_assert(is<decltype(sw::squeeze(two<sw::shape<1, 3, 1, 4, 1>, S<3>>{})), S<1>, 3, 4>);
static_assert(is<decltype(sw::squeeze<0, 1>(two<sw::shape<4, 6>, S<0>>{})), S<0>, 4, 6>);  // dims of other extents stay
static_assert(refused<two<sw::shape<1, 4>, S<0>>, 4>);  // of an extent of 1 most ranks have nothing
static_assert(is<decltype(sw::strict(sw::squeeze<0>(sw::implicit(two<sw::shape<1, 4>, S<0>>{})))), R, 4>);
static_assert(is<decltype(sw::expand<3, 4>(two<sw::shape<1, 4>, S<1>>{})), S<1>, 3, 4>);
static_assert(is<decltype(sw::expand<2, 3, -1>(two<sw::shape<1, 4>, S<1>>{})), S<2>, 2, 3, 4>);
static_assert(is<decltype(sw::strict(sw::expand<3, 4>(sw::implicit(two<sw::shape<1, 4>, S<0>>{})))), R, 3, 4>);
static_assert(is<decltype(sw::expand_as(two<sw::shape<4>, P>{}, two<sw::shape<3, 4>, R>{})), P, 3, 4>);

static_assert(is<decltype(sw::flatten<0, 1>(two<sw::shape<4, 3, 2>, S<0>>{})), S<0>, 12, 2>);
static_assert(is<decltype(sw::flatten(two<sw::shape<4, 3, 2>, P>{})), P, 24>);
static_assert(is<decltype(sw::flatten(two<sw::shape<>, R>{})), R, 1>);
static_assert(is<decltype(sw::unflatten<1, 2, -1>(two<sw::shape<4, 6>, sw::shard<1, 3>>{})), S<1>, 4, 2, 3>);
static_assert(is<decltype(sw::select<1, -1>(two<sw::shape<4, 6>, S<0>>{})), S<0>, 4>);
static_assert(is<decltype(sw::narrow<-1, -3, 2>(two<sw::shape<4, 6>, S<0>>{})), S<0>, 4, 2>);
static_assert(is<decltype(sw::strict(sw::narrow<1, 3, 2>(sw::implicit(two<sw::shape<4, 6>, S<1>>{})))), R, 4, 2>);

// a view of a permuted or cut tensor keeps its storage where only dims of extent 1 come or go
static_assert([] {
  using turned = decltype(sw::transpose<0, 1>(two<sw::shape<4, 6>, S<0>>{}));
  using wider = decltype(sw::unsqueeze<1>(turned{}));
  using one = decltype(sw::select<0, 2>(turned{}));
  return wider::sp.stride[0] == 1 && wider::sp.stride[2] == 6 && decltype(sw::squeeze(wider{}))::sp == turned::sp &&
         one::sp.offset == 1 && one::sp.stride[0] == 6;
}());
// extents that are known at run time
using some_rows = two<sw::shape<sw::dyn<8>, 1, 4>, S<0>>;
static_assert(decltype(sw::squeeze<1>(some_rows{}))::sp == (two<sw::shape<sw::dyn<8>, 4>, S<0>>::sp));
static_assert(decltype(sw::unsqueeze<0>(some_rows{}))::sp == (two<sw::shape<1, sw::dyn<8>, 1, 4>, S<1>>::sp));
static_assert(decltype(sw::flatten<1>(some_rows{}))::sp == (two<sw::shape<sw::dyn<8>, 4>, S<0>>::sp));
static_assert(sw::is_dyn(decltype(sw::expand<-1, 3, -1>(some_rows{}))::sp, 0));

// --- joins and splits --------------------------------------------------------------------------------------------------

using x = two<sw::shape<4, 6>, S<0>>;
using w = two<sw::shape<4, 6>, R>;
static_assert(is<decltype(sw::cat<-1>(x{}, x{})), S<0>, 4, 12>);
static_assert(is<decltype(sw::strict(sw::cat<1>(sw::implicit(x{}), sw::implicit(w{})))), S<0>, 4, 12>);
static_assert(is<decltype(sw::strict(sw::cat<0>(sw::implicit(x{}), sw::implicit(x{})))), R, 8, 6>);
static_assert(is<decltype(sw::cat<1>(x{}, x{}, x{}, x{}, x{}, x{}, x{}, x{}, x{}, x{}, x{})), S<0>, 4, 66>);
static_assert(is<decltype(sw::stack<0>(x{}, x{})), S<1>, 2, 4, 6>);
static_assert(is<decltype(sw::stack<-1>(x{}, x{})), S<0>, 4, 6, 2>);
static_assert(is<decltype(sw::strict(sw::stack<0>(sw::implicit(x{}), sw::implicit(w{})))), S<1>, 2, 4, 6>);

template <class Tuple, std::size_t... I>
constexpr bool lengths(std::initializer_list<std::int64_t> want, int dim, std::index_sequence<I...>) {
  const std::int64_t have[] = {std::tuple_element_t<I, Tuple>::sp.extent[dim]...};
  return std::equal(want.begin(), want.end(), have, have + sizeof...(I));
}
template <class Tuple>
constexpr bool parts(std::initializer_list<std::int64_t> want, int dim) {
  return lengths<Tuple>(want, dim, std::make_index_sequence<std::tuple_size_v<Tuple>>{});
}
static_assert(parts<decltype(sw::split<1, 1, 0, 5>(x{}))>({1, 0, 5}, 1));
static_assert(parts<decltype(sw::chunk<1, 4>(x{}))>({2, 2, 2}, 1));  // as torch.chunk: fewer than asked for
static_assert(parts<decltype(sw::chunk<-1, 4>(two<sw::shape<4, 7>, S<0>>{}))>({2, 2, 2, 1}, 1));
static_assert(parts<decltype(sw::chunk<1, 1>(x{}))>({6}, 1));
static_assert(parts<decltype(sw::chunk<1, 3>(two<sw::shape<4, 0>, S<0>>{}))>({0}, 1));
template <int K, class Placement, std::int64_t... E, class Tuple>
std::bool_constant<is<std::tuple_element_t<K, Tuple>, Placement, E...>> part_is(const Tuple&);
static_assert(std::tuple_size_v<decltype(sw::unbind<1>(x{}))> == 6);
static_assert(decltype(part_is<3, S<0>, 4>(sw::unbind<1>(x{})))::value);
// shares of a sum are split like the sum
static_assert(decltype(part_is<1, P, 4, 2>(sw::split<1, 4, 2>(two<sw::shape<4, 6>, P>{})))::value);
static_assert(is<decltype(sw::strict(std::get<1>(sw::chunk<0, 2>(sw::implicit(x{}))))), R, 2, 6>);

// --- indexing, frames, fills -------------------------------------------------------------------------------------------

template <class Shape, class Placement>
using ids = typed<std::int32_t, Shape, sw::mesh<ranks<2>>, Placement>;
static_assert(is<decltype(sw::gather<1>(x{}, ids<sw::shape<4, 3>, S<0>>{})), S<0>, 4, 3>);
static_assert(
    is<decltype(sw::gather<1>(w{}, ids<sw::shape<2, 9>, R>{})), R, 2, 9>);  // an index that is smaller beside the dim
static_assert(
    is<decltype(sw::strict(sw::gather<1>(sw::implicit(x{}), sw::implicit(ids<sw::shape<4, 3>, R>{})))), S<0>, 4, 3>);
static_assert(is<decltype(sw::scatter_add<1>(x{}, ids<sw::shape<4, 3>, S<0>>{}, two<sw::shape<4, 3>, S<0>>{})), S<0>, 4, 6>);
static_assert(is<decltype(sw::index_add<1>(x{}, ids<sw::shape<3>, R>{}, two<sw::shape<4, 3>, S<0>>{})), S<0>, 4, 6>);
static_assert(is<decltype(sw::one_hot<5>(ids<sw::shape<4, 6>, S<0>>{})), S<0>, 4, 6, 5>);
static_assert(decltype(sw::one_hot<5, double>(ids<sw::shape<4, 6>, S<0>>{}))::sp.type == sw::dtype::f64);
static_assert(is<decltype(sw::constant_pad<1, 2>(x{}, 7)), S<0>, 4, 9> &&
              is<decltype(sw::constant_pad<0, 0, 0, 1>(w{}, 7)), R, 5, 6>);
static_assert(is<decltype(sw::zeros_like(two<sw::shape<4, 6>, P>{})), R, 4, 6> &&
              is<decltype(sw::ones_like(two<sw::shape<4, 6>, U>{})), U, 4, 6>);
static_assert(is<decltype(sw::arange<float, 7, S<0>>(x{})), S<0>, 7> &&
              is<decltype(sw::arange_from<float, 9, 2, -2, R>(x{})), R, 4>);
// beside shards, reduced and partial tensors constants of floats are reduced where nothing is said
static_assert(is<decltype(sw::arange_from<float, 9, 2, -2>(x{})), U, 4> && is<decltype(sw::arange<float, 6>(w{})), R, 6> &&
              is<decltype(sw::arange<std::int32_t, 6>(x{})), R, 6> &&
              is<decltype(sw::full<float, sw::shape<6>>(two<sw::shape<4, 6>, U>{}, 2)), U, 6>);
static_assert(is<decltype(x{} * sw::arange<float, 6>(x{})), S<0>, 4, 6> &&
              is<decltype(two<sw::shape<4, 6>, P>{} * sw::arange<float, 6>(two<sw::shape<4, 6>, P>{})), P, 4, 6> &&
              is<decltype(sw::strict(sw::implicit(x{}) + sw::arange<float, 6>(sw::implicit(x{})))), S<0>, 4, 6>);
static_assert(is<decltype(sw::rand_like(x{})), S<0>, 4, 6> &&
              is<decltype(sw::randn<float, sw::shape<3, 4>, S<1>>(x{})), S<1>, 3, 4>);
static_assert(is<decltype(sw::strict(sw::implicit(x{}) + sw::rand_like(sw::implicit(x{})))), S<0>, 4, 6>);
static_assert(is<decltype(sw::strict(sw::bernoulli(sw::implicit(two<sw::shape<4, 6>, P>{})))), R, 4, 6>);

}  // namespace
