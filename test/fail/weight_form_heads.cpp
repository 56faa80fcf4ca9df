// SPDX-License-Identifier: Apache-2.0
// A bias that is no whole number of heads.
// expect: weight_names: the entry of this parameter or buffer says interleaved_heads<Size>
// expect(text): parameter: "net2.bias"
#include "named_weights.hpp"

#ifdef SHARDWISE_FAIL
template void read<names<sw::named_as<"net2.bias", "proj.bias", sw::interleaved_heads<64>>>>(sw::executor<step<>>&);
#else
template void read<names<sw::named_as<"net2.bias", "proj.bias", sw::interleaved_heads<2>>>>(sw::executor<step<>>&);
#endif
