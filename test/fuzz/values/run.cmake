# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM=... -DPROGRAMS=N -DSOURCE=... -P run.cmake: N programs from the seed that the commit picks, else the day.

execute_process(COMMAND git -C ${SOURCE} rev-parse --short=7 HEAD OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(commit MATCHES "^([0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f])")
  math(EXPR seed "0x${CMAKE_MATCH_1} * 1000000")
  message(STATUS "seed ${seed}, from commit ${CMAKE_MATCH_1}")
else()
  string(TIMESTAMP seconds "%s" UTC)
  math(EXPR seed "${seconds} / 86400 * 1000000")
  message(STATUS "seed ${seed}, from the day")
endif()
execute_process(COMMAND ${PROGRAM} --programs ${PROGRAMS} --seed ${seed} RESULT_VARIABLE result)
if(result)
  message(FATAL_ERROR "test_fuzz_values --seed ${seed} --programs ${PROGRAMS} found a program that is not what the interpreter says")
endif()
