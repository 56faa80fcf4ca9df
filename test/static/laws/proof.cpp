// SPDX-License-Identifier: Apache-2.0
// The parts of a proof, each where it must find something: what is linear in what, adjoints held against the forward pass, kernels
// without one of their results, and the reduction that ranks' parts make a value by.
#include <custom_results.hpp>
#include <custom_operations.hpp>
#include <shardwise/laws/cases.hpp>

namespace {

namespace sw = shardwise;
namespace laws = sw::laws;
using laws::failure;
using laws::tensor_of;
using sw::op_code;

// --- linearity through a program --------------------------------------------------------------------------------------------------

constexpr laws::program two(op_code op) { return laws::apply(op, {tensor_of({2, 3}), tensor_of({2, 3})}); }
// Leaves bit by bit: of a product each alone and not both, of a sum both together and not one.
static_assert(laws::is_linear_in(two(op_code::mul), 1U) && laws::is_linear_in(two(op_code::mul), 2U) &&
              !laws::is_linear_in(two(op_code::mul), 3U));
static_assert(laws::is_linear_in(two(op_code::add), 3U) && !laws::is_linear_in(two(op_code::add), 1U) &&
              !laws::is_linear_in(two(op_code::add), 2U));
static_assert(laws::is_linear_in(two(op_code::div), 1U) && !laws::is_linear_in(two(op_code::div), 2U));
static_assert(!laws::is_linear_in(two(op_code::maximum), 1U) && !laws::is_linear_in(two(op_code::mul), 0U));
// Through several steps: (x + y) z is linear in x and y, and in z; relu ends it; x x is not.
constexpr laws::program summed_and_scaled =
    laws::on_leaves({tensor_of({2}), tensor_of({2}), tensor_of({2})}).then(op_code::add, {0, 1}).then(op_code::mul, {3, 2});
static_assert(laws::is_linear_in(summed_and_scaled, 3U) && laws::is_linear_in(summed_and_scaled, 4U) &&
              !laws::is_linear_in(summed_and_scaled, 7U) && !laws::is_linear_in(summed_and_scaled, 1U));
static_assert(!laws::is_linear_in(summed_and_scaled.then(op_code::relu, {4}), 4U) &&
              laws::is_linear_in(summed_and_scaled.then(op_code::scale, {4}), 4U));
static_assert(!laws::is_linear_in(laws::on_leaves({tensor_of({2})}).then(op_code::mul, {0, 0}), 1U));
// A leaf that the last step does not depend on.
static_assert(!laws::is_linear_in(laws::on_leaves({tensor_of({2}), tensor_of({2})}).then(op_code::scale, {0}), 2U));

// --- <dy, A x> == <A* dy, x> ------------------------------------------------------------------------------------------------------

// x (3) and y (3) with cotangents (a, b, c) each, and what the forward pass must then give.
constexpr failure transposed(const laws::program& p, int x, int y, bool given, int forward) {
  laws::reference r;
  for (int i = 0; i < 3; ++i) {
    r.leaves[0][i] = r.leaves[1][i] = laws::modp(static_cast<std::uint32_t>(i + 1));
    r.cotangent[0][i] = laws::modp(static_cast<std::uint32_t>(x));
    r.cotangent[1][i] = laws::modp(static_cast<std::uint32_t>(y));
  }
  r.has_cotangent[0] = r.has_cotangent[1] = given;
  return laws::check_transposes(p, r, laws::modp(static_cast<std::uint32_t>(forward)));
}
constexpr laws::program sum = laws::apply(op_code::add, {tensor_of({3}), tensor_of({3})}),
                        product = laws::apply(op_code::mul, {tensor_of({3}), tensor_of({3})}),
                        largest = laws::apply(op_code::maximum, {tensor_of({3}), tensor_of({3})});
// Together: (5 + 7)(1 + 2 + 3).
static_assert(transposed(sum, 5, 7, true, 72) == failure::none &&
              transposed(sum, 5, 7, true, 30) == failure::not_the_adjoint);
// Each alone: 5 (1 + 2 + 3) in either; one that has no cotangent is not asked.
static_assert(transposed(product, 5, 5, true, 30) == failure::none &&
              transposed(product, 5, 7, true, 30) == failure::not_the_adjoint &&
              transposed(product, 7, 5, true, 30) == failure::not_the_adjoint &&
              transposed(product, 7, 5, false, 30) == failure::none);
// Of what is linear in nothing there is nothing to hold it against.
static_assert(transposed(largest, 5, 7, true, 1) == failure::none);

// --- a whole program: filled in on one device, compared on ranks -------------------------------------------------------------------

constexpr failure run(const laws::program& p, sw::placement x, sw::placement y, int spoilt) {
  laws::reference one;
  const failure alone = laws::run_program<true, laws::customs<>>(p, laws::placing{}, laws::ranks_of{}, one);
  if (alone != failure::none) return alone;
  if (spoilt == 0) one.out[0][1] = one.out[0][1] + laws::modp(1U);
  if (spoilt == 1) one.cotangent[0][1] = one.cotangent[0][1] + laws::modp(1U);
  laws::placing at;
  at.at[0][0] = x;
  at.at[1][0] = y;
  return laws::run_program<false, laws::customs<>>(p, at, laws::ranks_of{1, {3, 1, 1, 1}}, one);
}
static_assert(run(two(op_code::mul), sw::shard_value(0), sw::shard_value(0), -1) == failure::none &&
              run(two(op_code::mul), sw::reduced_value(), sw::partial_value(), -1) == failure::none);
static_assert(run(two(op_code::mul), sw::shard_value(0), sw::shard_value(1), -1) == failure::not_admitted &&
              run(two(op_code::mul), sw::shard_value(0), sw::shard_value(0), 0) == failure::value &&
              run(two(op_code::mul), sw::shard_value(0), sw::shard_value(0), 1) == failure::adjoint_value);
static_assert(run(laws::apply(op_code::mul, {tensor_of({9, 9}), tensor_of({9, 9})}), sw::replicate_value(),
                  sw::replicate_value(), -1) == failure::too_large);

// --- kernels without one of their results -----------------------------------------------------------------------------------------

constexpr laws::program described_lines = laws::apply(&described::lines, {tensor_of({2, 3})});
template <int Unread>
constexpr failure without = laws::run_without<laws::customs<described::lines>>(described_lines, Unread);
static_assert(without<0> == failure::none && without<1> == failure::none && without<2> == failure::none);
static_assert(laws::run_without<laws::customs<>>(described_lines, 0) == failure::kernel_unknown);
// One that writes what nobody wants has no place to write it to, which is no constant.
template <int Unread>
struct forgetful {
  static constexpr int found() {
    const laws::program p = laws::apply(&described::forgetful, {tensor_of({2, 3})});
    return static_cast<int>(laws::run_without<laws::customs<described::forgetful>>(p, Unread));
  }
};
template <class F>
concept constant = requires { typename std::integral_constant<int, F::found()>; };
static_assert(!constant<forgetful<0>> && constant<forgetful<1>> && constant<forgetful<2>>);

// --- what parts of a value make together ------------------------------------------------------------------------------------------

template <class... P>
constexpr sw::spec placed(P... p) {
  const std::int32_t sizes[] = {2, 3, 2};
  sw::spec s = sw::empty_spec(sw::dtype::f32, 3, sizes, sw::device_kind::host);
  int a = 0;
  ((s.place[a++] = p), ...);
  return s;
}
constexpr sw::placement R = sw::replicate_value(), U = sw::reduced_value(), S = sw::shard_value(0);
template <sw::reduction Op>
constexpr bool found = laws::reduction_of(placed(R, sw::partial_value(Op), S)) == Op &&
                       laws::reduction_of(placed(sw::partial_value(Op), U, R)) == Op &&
                       laws::reduction_of(placed(U, S, sw::partial_value(Op))) == Op;
static_assert(found<sw::reduction::sum> && found<sw::reduction::avg> && found<sw::reduction::product> &&
              found<sw::reduction::max> && found<sw::reduction::min>);
static_assert(laws::reduction_of(placed(R, U, S)) == sw::reduction::sum);

// --- kernels by their operations --------------------------------------------------------------------------------------------------

// Whether the kernel was found, and what it made of 5 and 3.
struct dispatched {
  bool found = false;
  laws::modp result{};
};
template <class Customs>
constexpr dispatched dispatch(op_code op, const sw::custom_operation* own) {
  laws::modp x[] = {laws::modp(5U)}, y[] = {laws::modp(3U)}, out[1]{};
  sw::runtime::call k;
  k.inputs = 2;
  for (sw::runtime::layout& l : k.l) l = {};
  sw::host::operands<laws::modp> q;
  q.p[0] = x;
  q.p[1] = y;
  q.p[sw::runtime::result] = out;
  dispatched d;
  d.found = laws::dispatch<Customs>(op, own, k, q, nullptr);
  d.result = out[0];
  return d;
}
static_assert(dispatch<laws::customs<>>(op_code::mul, nullptr).found &&
              dispatch<laws::customs<>>(op_code::mul, nullptr).result == laws::modp(15U));
static_assert(dispatch<laws::customs<>>(op_code::sub, nullptr).result == laws::modp(2U));
static_assert(dispatch<laws::customs<quotients::quotient>>(op_code::custom, &quotients::quotient).found &&
              dispatch<laws::customs<quotients::quotient>>(op_code::custom, &quotients::quotient).result * laws::modp(3U) ==
                  laws::modp(5U));
static_assert(!dispatch<laws::customs<sums::running>>(op_code::custom, &quotients::quotient).found);

}  // namespace
