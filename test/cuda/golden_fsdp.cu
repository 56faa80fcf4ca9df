// SPDX-License-Identifier: Apache-2.0
// fully_shard against its references, ranks on GPUs: the host's test, unchanged.
#define SHARDWISE_TEST_DEVICES 1
#include "../golden/fsdp.cpp"
