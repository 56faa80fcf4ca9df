// SPDX-License-Identifier: Apache-2.0
// The bias of the second layer has two names.
// expect: weight_names: this parameter or buffer of the program has several entries
// expect(text): parameter: "net2.bias"
#include "named_weights.hpp"

#ifdef SHARDWISE_FAIL
template void read<names<sw::named_as<"net2.bias", "proj.bias">, sw::named_as<"net2.bias", "out.bias">>>(
    sw::executor<step<>>&);
#else
template void read<names<sw::named_as<"net2.bias", "proj.bias">>>(sw::executor<step<>>&);
#endif
