// SPDX-License-Identifier: Apache-2.0
// The transformer against its references, ranks on GPUs: the host's test, unchanged.
#define SHARDWISE_TEST_DEVICES 1
#include "../golden/transformer.cpp"
