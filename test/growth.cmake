# SPDX-License-Identifier: Apache-2.0
# Registers the check that compiling the reference programs has not grown beyond bench/compile/growth.txt, and its own test.
# Some 30 s of one core; compilers are called as users call them, whatever this build's flags are.

set(growth ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/bench/compile/growth.py)
add_test(NAME "compile time: nothing has grown" COMMAND ${growth})
add_test(NAME "compile time: growth of each kind is found" COMMAND ${growth} --selftest)
set_tests_properties("compile time: nothing has grown" "compile time: growth of each kind is found" PROPERTIES LABELS growth
                     SKIP_RETURN_CODE 77 TIMEOUT 600)
