// SPDX-License-Identifier: Apache-2.0
// An operation of the list that no family's host.hpp has a kernel for; a view, which runs none, stands for it.
// expect: the library's list says that this operation runs a kernel, and none is written; specialise host::kernel<op_code>
// expect: shardwise::op::permute
// expect(text): operation: permute; element: float

#include <shardwise/runtime/host/provided_kernels.hpp>

namespace sw = shardwise;

#ifdef SHARDWISE_FAIL
auto* const kernel = &sw::runtime::compute<sw::op_code::permute, float>;
#else
auto* const kernel = &sw::runtime::compute<sw::op_code::contiguous, float>;
#endif
