// SPDX-License-Identifier: Apache-2.0
// The function that wrong programs call opaquely, on one axis of two ranks.
#pragma once

#include <span>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct square {
  template <class T>
  void operator()(std::span<T> out, std::span<const T> in) const {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[i] * in[i];
  }
};
