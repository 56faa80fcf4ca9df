// SPDX-License-Identifier: Apache-2.0
// A bias is no matrix that could be transposed.
// expect: weight_names: the entry of this parameter or buffer says transposed, and it is no matrix
// expect(text): parameter: "net2.bias"
#include "named_weights.hpp"

#ifdef SHARDWISE_FAIL
template void read<names<sw::named_as<"net2.bias", "proj.bias", sw::transposed>>>(sw::executor<step<>>&);
#else
template void read<names<sw::named_as<"net2.bias", "proj.bias">>>(sw::executor<step<>>&);
#endif
