# SPDX-License-Identifier: Apache-2.0
# Registers one mutant or two of the sharding rules, which the rule proofs must refuse; `test/mutants/run.py` runs them all.

set(SHARDWISE_MUTANT_SAMPLE "3/62" CACHE STRING "I/N: every N-th mutant, from the I-th (0 <= I < N)")
set(mutants_run ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/mutants/run.py --include ${SHARDWISE_INCLUDE_DIR}
                --compiler ${CMAKE_CXX_COMPILER} --sample ${SHARDWISE_MUTANT_SAMPLE})
foreach(directory IN LISTS Boost_INCLUDE_DIRS)
  if(NOT directory IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    list(APPEND mutants_run --system-include ${directory})
  endif()
endforeach()
add_test(NAME "mutants: a broken rule, pullback or kernel does not compile" COMMAND ${mutants_run})
set_tests_properties("mutants: a broken rule, pullback or kernel does not compile" PROPERTIES LABELS mutants TIMEOUT 600 COST 1000) # first: they are long compilations
