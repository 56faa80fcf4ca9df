// SPDX-License-Identifier: Apache-2.0
// A model is called with numbers of the host.
// expect: module: it is called with something that is no tensor
// expect(g++): std::array<float, 8
// expect(clang): std::array<float, 8

#include <array>

#include "small_models.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using bound = sw::bind<two_linears, sw::plan<sw::at<"net1", sw::colwise<tp>>, sw::at<"net2", sw::rowwise<tp>>>, mesh>;
#ifdef SHARDWISE_FAIL
using x = std::array<float, 8>;
#else
using x = typed<float, sw::shape<4, 10>, mesh>;
#endif
using y = decltype(bound{}(x{}));
