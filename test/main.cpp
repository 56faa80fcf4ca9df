// SPDX-License-Identifier: Apache-2.0
// The one translation unit with doctest's implementation and main, shared by all test executables.

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
