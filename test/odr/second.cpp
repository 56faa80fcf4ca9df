// SPDX-License-Identifier: Apache-2.0
// The second of two translation units that include every header.

#include "all_headers.hpp"

int run_second_unit() { return 0; }
