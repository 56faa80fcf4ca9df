# SPDX-License-Identifier: Apache-2.0
# Registers the first-hour test: an eighth of its wrong programs, another one at each commit; all of them in the full run.

if(SHARDWISE_TEST_HOST AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(first_hour_run ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/first_hour/run.py --include ${SHARDWISE_INCLUDE_DIR})
  foreach(directory IN LISTS Boost_INCLUDE_DIRS)
    if(NOT directory IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
      list(APPEND first_hour_run --system-include ${directory})
    endif()
  endforeach()
  if(NOT SHARDWISE_TEST_HEAVY)
    set(first_hour_sample --sample rotate/8)
  endif()
  # a program that is run links the kernels that all tests share
  add_test(NAME "first hour: wrong programs are answered by their first error" COMMAND_EXPAND_LISTS
           COMMAND ${first_hour_run} --compiler ${CMAKE_CXX_COMPILER} ${first_hour_sample}
                   "--kernels=$<TARGET_FILE:shardwise_kernels>")
  set_tests_properties("first hour: wrong programs are answered by their first error" PROPERTIES LABELS first_hour TIMEOUT 1200 COST 900)
  add_test(NAME "first hour: the judge of answers" COMMAND ${first_hour_run} --selftest)
  set_tests_properties("first hour: the judge of answers" PROPERTIES LABELS first_hour TIMEOUT 60)
endif()
