// SPDX-License-Identifier: Apache-2.0
// Attributes are template arguments: g++ 12 took {1, 4, 0, 0, 0, 2} for {1, 4, 2} where the zeros were never stored, so
// that a slice after a reshape had no elements. Both orders, in one file each way.
#include <shardwise/graph/functions/functions.hpp>
#include <shardwise/graph/functions/views.hpp>

#include <typed.hpp>

namespace {

struct tp : sw::axis<2> {};
using matrix = typed<float, sw::shape<4, 6>, sw::mesh<tp>>;
using row = typed<float, sw::shape<4>, sw::mesh<tp>>;

using reshaped = decltype(sw::reshape<1, 4>(row{}));
using sliced = decltype(sw::slice<1, 4, 2>(matrix{}));
static_assert(reshaped::sp.extent[1] == 4 && sliced::sp.extent[1] == 2);

using cut = decltype(sw::slice<1, 2, 3>(matrix{}));
using viewed = decltype(sw::view<1, 2, -1>(row{}));
using wider = decltype(sw::unsqueeze<0>(row{}));
static_assert(cut::sp.extent[1] == 3 && viewed::sp.rank == 3 && wider::sp.rank == 2);

}  // namespace
