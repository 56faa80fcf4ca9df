// SPDX-License-Identifier: Apache-2.0
// A name in the file with a number that the path does not have.
// expect: weight_names: the name in the file has more * than the path of its entry
// expect(text): entry: "net2.bias"
#include "named_weights.hpp"

#ifdef SHARDWISE_FAIL
template void read<names<sw::named_as<"net2.bias", "h.*.bias">>>(sw::executor<step<>>&);
#else
template void read<names<sw::named_as<"net2.bias", "proj.bias">>>(sw::executor<step<>>&);
#endif
