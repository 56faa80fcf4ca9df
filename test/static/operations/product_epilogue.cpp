// SPDX-License-Identifier: Apache-2.0
// What cuBLASLt can do behind a product is told from the expression's words.
#include <shardwise/operations/contraction/device_epilogue.cuh>

// Of its own name: nvcc reads CUDA's mathematical functions behind this file, which would be found beside those of op_code.
namespace product_epilogue_test {

using namespace shardwise;
using cuda::detail::product_epilogue;
using cuda::detail::product_function;
using enum op_code;

struct step {
  op_code op;
  int x, y = no_slot, store = 0;
};
template <std::size_t N>
constexpr product_epilogue behind(int values, int stores, const step (&steps)[N], bool follows = true) {
  expression e = begin_expression(values, stores, follows);
  for (const step& s : steps) e.append({s.op, s.x, s.y, s.store, 0});
  return product_epilogue::of(e);
}
constexpr bool is(const product_epilogue& e, int values, product_function f, int beside = -1) {
  return e.fits && e.values == values && e.function == f && e.beside == beside;
}

// additions, in any order of their operands, then relu
static_assert(is(behind(2, 0, {{add, 0, 1}}), 1, product_function::none));
static_assert(is(behind(2, 0, {{add, 1, 0}}), 1, product_function::none));
static_assert(is(behind(3, 0, {{add, 0, 1}, {add, 2, 3}}), 2, product_function::none));
static_assert(is(behind(2, 0, {{add, 0, 1}, {relu, 2}}), 1, product_function::relu));
static_assert(is(behind(1, 0, {{relu, 0}}), 0, product_function::relu));
static_assert(!behind(2, 0, {{add, 0, 1}, {add, 2, 1}}).fits);  // a value twice
static_assert(!behind(2, 0, {{add, 0, 1}, {add, 2, 2}}).fits);  // a sum doubled
static_assert(!behind(2, 0, {{relu, 0}, {add, 1, 2}}).fits);    // relu first
static_assert(!behind(1, 0, {{add, 0, 0}}).fits);
static_assert(!behind(4, 0, {{add, 0, 1}, {add, 4, 2}, {add, 5, 3}}).fits);  // three values
static_assert(!behind(2, 0, {{sub, 0, 1}}).fits);
static_assert(!behind(2, 0, {{add, 0, 1}}, false).fits);  // follows nothing
static_assert(!behind(2, 1, {{add, 0, 1, 1}}).fits);      // what is stored is the result

// gelu behind a bias or nothing, its operand stored or not
static_assert(is(behind(2, 0, {{add, 0, 1}, {gelu_tanh, 2}}), 1, product_function::gelu));
static_assert(is(behind(1, 0, {{gelu_tanh, 0}}), 0, product_function::gelu));
static_assert(is(behind(2, 1, {{add, 0, 1, 1}, {gelu_tanh, 2}}), 1, product_function::gelu, 1));
static_assert(!behind(2, 1, {{add, 0, 1}, {gelu_tanh, 2, no_slot, 1}}).fits);      // gelu's value stored
static_assert(!behind(3, 1, {{add, 0, 1, 1}, {add, 3, 2}, {gelu_tanh, 4}}).fits);  // another sum stored
static_assert(!behind(3, 0, {{add, 0, 1}, {add, 3, 2}, {gelu_tanh, 4}}).fits);     // bias and a matrix
static_assert(!behind(2, 1, {{add, 0, 1, 1}, {relu, 2}}).fits);                    // relu's operand stored
static_assert(!behind(2, 0, {{add, 0, 1}, {gelu_erf, 2}}).fits);                   // another gelu
static_assert(!behind(2, 0, {{gelu_tanh, 0}, {add, 2, 1}}).fits);

// gelu's adjoint: the product is the cotangent
static_assert(is(behind(2, 0, {{gelu_tanh_dx, 0, 1}}), 0, product_function::gelu_slope, 0));
static_assert(!behind(2, 0, {{gelu_tanh_dx, 1, 0}}).fits);
static_assert(!behind(3, 0, {{gelu_tanh_dx, 0, 1}, {add, 3, 2}}).fits);
static_assert(!behind(2, 1, {{gelu_tanh_dx, 0, 1, 1}}).fits);

// which of them are of the precision of 2-byte types
static_assert(behind(1, 0, {{gelu_tanh, 0}}).is_rough() && behind(2, 0, {{gelu_tanh_dx, 0, 1}}).is_rough());
static_assert(!behind(1, 0, {{relu, 0}}).is_rough() && !behind(2, 0, {{add, 0, 1}}).is_rough());

}  // namespace product_epilogue_test
