# SPDX-License-Identifier: Apache-2.0
# Compiles every header alone (twice included), and all of them in two translation units linked together.

set(odr_headers "")
foreach(header IN LISTS all_headers)
  if(NOT header MATCHES "${SHARDWISE_ADAPTER_REGEX}")
    list(APPEND odr_headers ${header})
  endif()
endforeach()

if(odr_headers)
  set(odr_dir ${CMAKE_CURRENT_BINARY_DIR}/odr)
  set(odr_sources "")
  set(odr_all "")
  foreach(header IN LISTS odr_headers)
    string(MAKE_C_IDENTIFIER ${header} id)
    file(CONFIGURE OUTPUT ${odr_dir}/${id}.cpp CONTENT "#include <${header}>\n#include <${header}>  // the guard holds\n")
    list(APPEND odr_sources ${odr_dir}/${id}.cpp)
    string(APPEND odr_all "#include <${header}>\n")
  endforeach()
  file(CONFIGURE OUTPUT ${odr_dir}/all_headers.hpp CONTENT "#pragma once\n${odr_all}")

  add_library(test_odr_headers OBJECT ${odr_sources})
  target_link_libraries(test_odr_headers PRIVATE shardwise::shardwise shardwise_warnings)
  target_compile_options(test_odr_headers PRIVATE -O0 -g0)

  add_executable(test_odr odr/first.cpp odr/second.cpp)
  target_include_directories(test_odr PRIVATE ${odr_dir})
  target_link_libraries(test_odr PRIVATE shardwise::shardwise shardwise_warnings)
  target_compile_options(test_odr PRIVATE -O0 -g0)
  add_test(NAME "odr: two translation units with every header link and run" COMMAND test_odr)
endif()
