# SPDX-License-Identifier: Apache-2.0
# Registers that a compiler that cannot take the library says so in one sentence, and that the same command without the flag passes.

set(config_run ${CMAKE_CXX_COMPILER} -fsyntax-only -x c++ ${SHARDWISE_INCLUDE_DIR}/shardwise/support/config.hpp)
add_test(NAME "compilers: C++20 with exceptions is taken" COMMAND ${config_run} -std=c++20 -w)
add_test(NAME "compilers: C++17 is refused" COMMAND ${config_run} -std=c++17)
set_tests_properties("compilers: C++17 is refused" PROPERTIES PASS_REGULAR_EXPRESSION "error: .*shardwise needs C\\+\\+20: compile with")
add_test(NAME "compilers: -fno-exceptions is refused" COMMAND ${config_run} -std=c++20 -fno-exceptions)
set_tests_properties("compilers: -fno-exceptions is refused" PROPERTIES PASS_REGULAR_EXPRESSION "error: .*shardwise needs exceptions, by which")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # which does not say __clang__, and so passes for MSVC
  add_test(NAME "compilers: MSVC is refused" COMMAND ${config_run} -std=c++20 -D_MSC_VER=1940)
  set_tests_properties("compilers: MSVC is refused" PROPERTIES PASS_REGULAR_EXPRESSION "error: .*shardwise needs .*MSVC is not supported")
endif()
