# SPDX-License-Identifier: Apache-2.0
# Registers one mutant or two, which the tests named beside them must notice; `test/mutants/run.py` runs them all.

set(SHARDWISE_MUTANT_SAMPLE "3/320" CACHE STRING "I/N: every N-th mutant, from the I-th (0 <= I < N)")
set(mutants_run ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/mutants/run.py --include ${SHARDWISE_INCLUDE_DIR}
                --compiler ${CMAKE_CXX_COMPILER})
foreach(directory IN LISTS Boost_INCLUDE_DIRS)
  if(NOT directory IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    list(APPEND mutants_run --system-include ${directory})
  endif()
endforeach()
add_test(NAME "mutants: a library broken in one place is noticed" COMMAND ${mutants_run} --sample ${SHARDWISE_MUTANT_SAMPLE})
add_test(NAME "mutants: every one still has its text" COMMAND ${mutants_run} --stale)
set_tests_properties("mutants: a library broken in one place is noticed" PROPERTIES LABELS mutants TIMEOUT 600 COST 1000) # first: they are long compilations
set_tests_properties("mutants: every one still has its text" PROPERTIES LABELS mutants TIMEOUT 60)
