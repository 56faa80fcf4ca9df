// SPDX-License-Identifier: Apache-2.0
// A path of which the model has nothing.
// expect: weight_names: this path names no parameter or buffer of the program
// expect(text): entry: "net3.bias"
#include "named_weights.hpp"

#ifdef SHARDWISE_FAIL
template void read<names<sw::named_as<"net2.bias", "proj.bias">, sw::named_as<"net3.bias", "out.bias">>>(
    sw::executor<step<>>&);
#else
template void read<names<sw::named_as<"net2.bias", "proj.bias">>>(sw::executor<step<>>&);
#endif
