// SPDX-License-Identifier: Apache-2.0
// Implicit operands within compilers' default limits on three axes; results of one type whatever leads; copies of any partial.
#include <shardwise/graph/functions/pointwise_functions.hpp>

#include "typed.hpp"

namespace {

struct a : sw::axis<2> {};
struct b : sw::axis<2> {};
struct c : sw::axis<2> {};
using mesh = sw::mesh<a, b, c>;
template <class Shape, class... P>
using tensor = typed<double, Shape, mesh, P...>;
using R = sw::replicate;
using U = sw::reduced;
using P = sw::partial<>;
template <int D>
using S = sw::shard<D>;

// Combinations of rows are looked at some at a time.
using x = tensor<sw::shape<2, 6, 4>, S<2>, S<1>, P>;
using w = tensor<sw::shape<4, 2>, S<0>, R, S<0>>;
using product = decltype(sw::strict(sw::matmul(sw::implicit(x{}), sw::implicit(w{}))));
static_assert(product::sp.rank == 3 && product::sp.extent[2] == 2);

// Both ends of a lerp lead to one placement.
template <class A, class B>
constexpr int rank_between(A x, B y) {  // a function: nvcc cannot write such an alias into host code
  return decltype(sw::strict(sw::lerp(sw::implicit(x), sw::implicit(y), 0.75)))::sp.rank;
}
template <class P0, class P1, class P2>
constexpr tensor<sw::shape<6>, P0, P1, P2> six() {
  return {};
}
static_assert(rank_between(six<R, P, U>(), six<U, U, P>()) == 1);
static_assert(rank_between(six<S<0>, R, U>(), six<P, S<0>, R>()) == 1);
static_assert(rank_between(six<P, P, P>(), six<S<0>, R, R>()) == 1);

// A copy is placed as what it copies.
template <sw::reduction Op>
using turned = decltype(sw::contiguous(sw::permute<1, 0>(tensor<sw::shape<2, 3>, sw::partial<Op>, S<0>, R>{})));
static_assert(turned<sw::reduction::avg>::sp.place[0] == sw::partial_value(sw::reduction::avg));
static_assert(turned<sw::reduction::max>::sp.place[0] == sw::partial_value(sw::reduction::max));
static_assert(turned<sw::reduction::product>::sp.place[0] == sw::partial_value(sw::reduction::product));

// What implicit yields: the operand as it is, in a type of its own, once; a view of it is another tensor.
using w_operand = decltype(sw::implicit(w{}));
static_assert(std::is_same_v<w_operand, sw::implicit_tensor<w>> && !w_operand::is_view && w_operand::sp == w::sp &&
              std::is_same_v<w_operand::mesh_type, mesh>);
static_assert(std::is_same_v<decltype(sw::implicit(w_operand{w{}})), w_operand> &&
              std::is_same_v<decltype(sw::strict(w_operand{w{}})), w> && std::is_same_v<decltype(sw::strict(w{})), w>);
template <class T>
constexpr bool is_own_tensor = false;
template <class T>
constexpr bool is_own_tensor<sw::implicit_tensor<T, true>> = T::sp.extent[0] == 2 && T::sp.extent[1] == 4;
static_assert(is_own_tensor<decltype(sw::permute<1, 0>(w_operand{w{}}))>);
static_assert(std::is_same_v<decltype(sw::relu(sw::implicit(w{}))), sw::implicit_tensor<decltype(sw::relu(w{}))>>);

}  // namespace
