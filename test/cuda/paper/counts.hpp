// SPDX-License-Identifier: Apache-2.0
// What has been launched on paper since the program began.
#pragma once

#include <cstdint>

namespace paper {

std::int64_t launched_kernels();  // products among them; not those that were captured
std::int64_t launched_graphs();

}  // namespace paper
