# SPDX-License-Identifier: Apache-2.0
# Registers random programs of the public functions, from a seed that rotates with the commit; those that failed once; and that
# the generator knows every public function. `test/fuzz_programs/run.py` runs as many as asked for, and under sanitizers.

set(SHARDWISE_FUZZ_PROGRAMS_SEED "0" CACHE STRING "The first of the 60 seeds of test/fuzz_programs")
set(fuzz_run ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz_programs/run.py --include ${SHARDWISE_INCLUDE_DIR}
             --compiler ${CMAKE_CXX_COMPILER} --jobs 1)
foreach(directory IN LISTS Boost_INCLUDE_DIRS)
  if(NOT directory IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    list(APPEND fuzz_run --system-include ${directory})
  endif()
endforeach()
add_test(NAME "fuzz programs: every public function is known to the generator" COMMAND ${fuzz_run} --functions)
set_tests_properties("fuzz programs: every public function is known to the generator" PROPERTIES LABELS fuzz TIMEOUT 120)

add_test(NAME "fuzz programs: all that is to be drawn is drawn" COMMAND ${fuzz_run} --features 1000)
set_tests_properties("fuzz programs: all that is to be drawn is drawn" PROPERTIES LABELS fuzz TIMEOUT 120)

# objects of another build's sanitizers would not link: run.py --sanitize makes its own
if(TARGET test_kernels AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(fuzz_kernels "--kernels;$<TARGET_FILE:shardwise_kernels>")
  foreach(part RANGE 0 2)
    math(EXPR seed "${SHARDWISE_FUZZ_PROGRAMS_SEED} + 20 * ${part}")
    math(EXPR number "${part} + 1")
    add_test(NAME "fuzz programs: random programs mean what they say, ${number} of 3" COMMAND_EXPAND_LISTS
             COMMAND ${fuzz_run} "${fuzz_kernels}" --programs 20 --seed ${seed})
    set_tests_properties("fuzz programs: random programs mean what they say, ${number} of 3"
                         PROPERTIES LABELS fuzz TIMEOUT 900 COST 900) # long compilations start early
  endforeach()
  add_test(NAME "fuzz programs: those that failed once" COMMAND_EXPAND_LISTS COMMAND ${fuzz_run} "${fuzz_kernels}" --fixed)
  set_tests_properties("fuzz programs: those that failed once" PROPERTIES LABELS fuzz TIMEOUT 300)
endif()
