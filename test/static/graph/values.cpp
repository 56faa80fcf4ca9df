// SPDX-License-Identifier: Apache-2.0
// What a redistribution is stored as does not depend on the size of its axis, or a view of it would be a copy on one mesh
// and a view on another, and a write to it seen on one mesh alone.

#include <shardwise/graph/functions/local.hpp>

#include "typed.hpp"

namespace {

template <int N>
struct line : sw::axis<N> {};
using R = sw::replicate;
template <int D>
using S = sw::shard<D>;
template <int N, class P>
using x = typed<float, sw::shape<12, 4>, sw::mesh<line<N>>, P>;

template <int N, class From, class To>
constexpr bool is_dense = sw::is_contiguous(decltype(sw::redistribute<line<N>, To>(sw::permute<1, 0>(x<N, From>{})))::sp);
template <int N, class From, class To>
constexpr bool is_dense_by_steps =
    sw::is_contiguous(decltype(sw::redistribute<sw::on<line<N>, To>>(sw::permute<1, 0>(x<N, From>{})))::sp);
static_assert(is_dense<1, S<0>, R> && is_dense<2, S<0>, R> && is_dense_by_steps<1, S<0>, R> &&
              is_dense_by_steps<2, S<0>, R>);
static_assert(is_dense<1, R, S<0>> && is_dense<2, R, S<0>> && is_dense_by_steps<1, R, S<0>>);
static_assert(is_dense<1, sw::partial<>, R> && is_dense<2, sw::partial<>, R>);
// another name moves nothing on any mesh
static_assert(!is_dense<1, R, sw::reduced> && !is_dense<2, R, sw::reduced> && !is_dense<1, R, R> && !is_dense<2, R, R>);

}  // namespace
