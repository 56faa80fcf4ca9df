// SPDX-License-Identifier: Apache-2.0
// Stacks of linear layers with Adam against the data-parallel references, ranks on GPUs: the host's test, unchanged.
#define SHARDWISE_TEST_DEVICES 1
#include "../golden/relu_stacks.cpp"
