# SPDX-License-Identifier: Apache-2.0
# Random programs as values, from a seed that rotates with the commit, through the library and a plain interpreter.

set(SHARDWISE_FUZZ_VALUES 2000 CACHE STRING "Programs as values that the test runs; `quickstart test --full fuzz` runs 200,000")

add_executable(test_fuzz_values fuzz/values/main.cpp fuzz/values/pipeline.cpp fuzz/values/execute.cpp)
target_link_libraries(test_fuzz_values PRIVATE test_usage $<TARGET_NAME_IF_EXISTS:test_kernels>)
target_include_directories(test_fuzz_values PRIVATE fuzz/values)
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  target_compile_options(test_fuzz_values PRIVATE -O0) # a thousand programs a second all the same
endif()

add_test(NAME "fuzz: programs as values are what an interpreter says"
         COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:test_fuzz_values> -DPROGRAMS=${SHARDWISE_FUZZ_VALUES}
                 -DSOURCE=${PROJECT_SOURCE_DIR} -P ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/values/run.cmake)
set_tests_properties("fuzz: programs as values are what an interpreter says" PROPERTIES LABELS fuzz TIMEOUT 600 COST 200)
