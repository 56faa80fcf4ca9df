// SPDX-License-Identifier: Apache-2.0
// A program that computes with integers, of which kernels are moved and compared alone.
// expect: this operation has no kernel for the element type here
// expect: shardwise::op::scale
// expect(text): operation: scale; element: std::int32_t

#include <shardwise/runtime/threads/threads.hpp>
#include <shardwise/runtime/host/provided_kernels.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

struct line : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
constexpr sw::op_code op = sw::op_code::scale;
#else
constexpr sw::op_code op = sw::op_code::gather;
#endif
constexpr auto kernel =
    sw::runtime::kernel_entry<sw::runtime::signature{op, sw::dtype::i32, {}}, sw::thread_rank<sw::mesh<line>>>();
