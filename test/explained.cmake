# SPDX-License-Identifier: Apache-2.0
# Builds a program with the option SHARDWISE_EXPLAIN, runs it and reads its pages, by an XML parser and, where one is installed, a browser.

set(explained ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/explained.py)
add_test(NAME "explained: a page that is wrong is found" COMMAND ${explained} --selftest)
if(SHARDWISE_TEST_HEAVY)
  add_executable(test_explained explained/main.cpp)
  target_compile_definitions(test_explained PRIVATE SHARDWISE_EXPLAIN=1)
  target_compile_options(test_explained PRIVATE -O0)
  target_link_libraries(test_explained PRIVATE shardwise::shardwise shardwise_warnings)
  add_test(NAME "explained: programs write themselves" COMMAND ${explained} $<TARGET_FILE:test_explained>)
  add_test(NAME "explained: a browser shows the pages" COMMAND ${explained} --browser $<TARGET_FILE:test_explained>)
  set_tests_properties("explained: a browser shows the pages" PROPERTIES SKIP_RETURN_CODE 77)
endif()
