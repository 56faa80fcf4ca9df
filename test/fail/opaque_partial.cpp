// SPDX-License-Identifier: Apache-2.0
// An opaque function of summands: nothing says that it is linear.
// expect: a partial (not yet summed) value enters an operation that is not linear in it

#include <shardwise/module/function.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct square {
  template <class T>
  void operator()(std::span<T> out, std::span<const T> in) const {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[i] * in[i];
  }
};
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::partial<>>>;
#else
using x = typed<float, sw::shape<4, 8>, mesh>;
#endif
using y = decltype(sw::opaque<square>(x{}));
