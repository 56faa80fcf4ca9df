// SPDX-License-Identifier: Apache-2.0
// The first of two translation units that include every header; a symbol defined in both would stop the link.

#include "all_headers.hpp"

int run_second_unit();

int main() { return run_second_unit(); }
