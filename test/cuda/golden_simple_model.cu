// SPDX-License-Identifier: Apache-2.0
// Two perceptrons against the tensor-parallel reference, ranks on GPUs: the host's test, unchanged.
#define SHARDWISE_TEST_DEVICES 1
#include "../golden/simple_model.cpp"
