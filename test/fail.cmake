# SPDX-License-Identifier: Apache-2.0
# Registers one compile-fail test per file of test/fail (all, or a rotating part: SHARDWISE_TEST_ROTATION), the harness's own tests, and
# that every problem has a file.

file(GLOB fail_sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/fail fail/*.cpp)
shardwise_rotated(fail_sources fail_sources_left ${fail_sources})
set(fail_run ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/fail/run.py --include ${SHARDWISE_INCLUDE_DIR}
             --include ${CMAKE_CURRENT_SOURCE_DIR}/support)
foreach(directory IN LISTS Boost_INCLUDE_DIRS)
  if(NOT directory IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    list(APPEND fail_run --system-include ${directory})
  endif()
endforeach()

list(LENGTH SHARDWISE_FAIL_COMPILERS compiler_count)
foreach(compiler IN LISTS SHARDWISE_FAIL_COMPILERS)
  set(suffix "")
  if(compiler_count GREATER 1)
    cmake_path(GET compiler FILENAME compiler_name)
    set(suffix " [${compiler_name}]")
  endif()
  # g++ reads what most wrong programs share from precompiled headers, made anew where any header is newer
  execute_process(COMMAND ${compiler} --version OUTPUT_VARIABLE version ERROR_QUIET)
  set(precompiled "")
  if(version MATCHES "Free Software Foundation")
    set(precompiled --precompiled ${CMAKE_CURRENT_BINARY_DIR}/fail_headers)
    add_test(NAME "fail: shared headers precompiled${suffix}" COMMAND ${fail_run} --compiler ${compiler} ${precompiled} --precompile)
    set_tests_properties("fail: shared headers precompiled${suffix}" PROPERTIES LABELS fail TIMEOUT 300 FIXTURES_SETUP fail_headers COST 500)
  endif()
  foreach(source IN LISTS fail_sources)
    cmake_path(GET source STEM name)
    add_test(NAME "fail: ${name}${suffix}"
             COMMAND ${fail_run} --compiler ${compiler} ${precompiled} ${CMAKE_CURRENT_SOURCE_DIR}/fail/${source})
    set_tests_properties("fail: ${name}${suffix}" PROPERTIES LABELS fail TIMEOUT 300)
    if(precompiled)
      set_tests_properties("fail: ${name}${suffix}" PROPERTIES FIXTURES_REQUIRED fail_headers)
    endif()
  endforeach()
  add_test(NAME "fail: the harness finds its own mistakes${suffix}"
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/fail/run.py --compiler ${compiler} --selftest)
  set_tests_properties("fail: the harness finds its own mistakes${suffix}" PROPERTIES LABELS fail TIMEOUT 300)
endforeach()

add_test(NAME "fail: every problem has a wrong program"
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/fail/run.py
                 --coverage ${SHARDWISE_INCLUDE_DIR}/shardwise/support/problems.def.hpp)
set_tests_properties("fail: every problem has a wrong program" PROPERTIES LABELS fail TIMEOUT 60)

set(fail_table ${SHARDWISE_INCLUDE_DIR}/shardwise/support/problems.def.hpp)
add_test(NAME "fail: the catalogue of misuses names problems and tests"
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/fail/run.py
                 --catalogue ${CMAKE_CURRENT_SOURCE_DIR}/fail/catalogue.txt ${fail_table})
set_tests_properties("fail: the catalogue of misuses names problems and tests" PROPERTIES LABELS fail TIMEOUT 60)
