// SPDX-License-Identifier: Apache-2.0
// What of an expression behind a product cuBLASLt can do in the product.
#pragma once

#include <shardwise/graph/expression.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::cuda {
inline namespace SHARDWISE_DEVICE_BUILD {

namespace detail {

enum class product_function : unsigned char { none, relu, gelu, gelu_slope };

// Up to two values added, one after the other, then relu; one value or none, then gelu, of which the operand may be stored; or the
// adjoint of gelu, the product its cotangent.
struct product_epilogue {
  int values = 0;   // added, in the order of the expression's operands
  int beside = -1;  // the operand of the expression that holds gelu's own operand, to be read or written
  product_function function = product_function::none;
  bool fits = false;

  // cuBLASLt's gelu is of the precision of elements of 2 bytes.
  constexpr bool is_rough() const { return function == product_function::gelu || function == product_function::gelu_slope; }

  static constexpr product_epilogue of(const expression& e) {
    if (!e.follows()) return {};
    const expression_step first = e.at(0);
    if (e.steps() == 1 && e.values() == 2 && e.stores() == 0 && first.op == op_code::gelu_tanh_dx && first.x == 0 &&
        first.y == 1)
      return {0, 0, product_function::gelu_slope, true};
    return of_additions(e);
  }

 private:
  static constexpr product_epilogue of_additions(const expression& e) {
    product_epilogue a;
    int at = 0;       // the slot of what has been computed so far
    bool used[16]{};  // slots have four bits
    for (int i = 0; i < e.steps(); ++i) {
      const expression_step s = e.at(i);
      const bool last = i + 1 == e.steps();
      const int other = s.x == at ? s.y : s.x;
      if (s.op == op_code::relu && last && s.x == at) a.function = product_function::relu;
      else if (s.op == op_code::gelu_tanh && last && s.x == at) a.function = product_function::gelu;
      else if (s.op == op_code::add && (s.x == at || s.y == at) && other > 0 && other < e.values() && !used[other])
        used[other] = true;
      else return {};
      if (s.store != 0) {  // gelu's operand alone
        if (s.store != 1 || i + 2 != e.steps() || e.at(i + 1).op != op_code::gelu_tanh) return {};
        a.beside = e.values() - 1;
      }
      at = e.values() + i;
    }
    a.values = e.values() - 1;
    for (int k = 1; k < e.values(); ++k)
      if (!used[k]) return {};
    a.fits = e.stores() == (a.beside >= 0 ? 1 : 0) && a.values <= (a.function == product_function::gelu ? 1 : 2);
    return a;
  }
};

}  // namespace detail

}  // namespace SHARDWISE_DEVICE_BUILD
}  // namespace shardwise::inline v0_1::cuda
