// SPDX-License-Identifier: Apache-2.0
// A language model trained on GPUs gives the losses of one host thread, for every mesh, in float.
#define SHARDWISE_TEST_DEVICES 1
#include <equivalence.hpp>

namespace {

using namespace test::gpt;

TEST_CASE("gpt in float on one gpu") { check_equivalence<float, 1, 1>(); }
TEST_CASE("gpt in float on two gpus, data parallel") { check_equivalence<float, 2, 1>(); }
TEST_CASE("gpt in float on two gpus, tensor parallel") { check_equivalence<float, 1, 2>(); }
TEST_CASE("gpt in float on two times two gpus") { check_equivalence<float, 2, 2>(); }

}  // namespace
