# SPDX-License-Identifier: Apache-2.0
# shardwise_add_onednn(): the target shardwise::onednn, for the project and for the installed package. Linking it registers oneDNN's
# convolutions in a program. Its one source, a line that is written into the build folder, is compiled once for a build folder, optimised
# whatever the build type, and its object goes into every program that links the target. Where oneDNN is not found there is no target,
# and what is missing is said by the variable RESULT of shardwise_add_onednn(RESULT).

function(shardwise_add_onednn result)
  if(TARGET shardwise::onednn)
    return()
  endif()
  # By header and library: oneDNN's own package file asks for OpenCL headers in some distributions.
  set(SHARDWISE_ONEDNN_ROOT "" CACHE PATH "Where oneDNN lies: a folder with include/dnnl.hpp and lib/libdnnl.so")
  find_path(SHARDWISE_ONEDNN_INCLUDE_DIR dnnl.hpp HINTS ${SHARDWISE_ONEDNN_ROOT} PATH_SUFFIXES include)
  find_library(SHARDWISE_ONEDNN_LIBRARY dnnl HINTS ${SHARDWISE_ONEDNN_ROOT} PATH_SUFFIXES lib lib64)
  if(NOT SHARDWISE_ONEDNN_INCLUDE_DIR OR NOT SHARDWISE_ONEDNN_LIBRARY)
    set(${result} "oneDNN 2.5 or newer (Debian: libdnnl-dev), or set SHARDWISE_ONEDNN_ROOT" PARENT_SCOPE)
    return()
  endif()

  set(source ${CMAKE_CURRENT_BINARY_DIR}/shardwise_onednn.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include <shardwise/runtime/host/onednn/convolution.hpp>\n")
  add_library(shardwise_onednn_object OBJECT EXCLUDE_FROM_ALL ${source})
  set_target_properties(shardwise_onednn_object PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_options(shardwise_onednn_object PRIVATE $<$<CXX_COMPILER_ID:GNU,Clang>:-O2>)
  target_link_libraries(shardwise_onednn_object PRIVATE shardwise::shardwise)
  target_include_directories(shardwise_onednn_object SYSTEM PRIVATE ${SHARDWISE_ONEDNN_INCLUDE_DIR})
  # an object, not a library: what registers itself is in every program that links the target, named or not
  add_library(shardwise_onednn INTERFACE)
  add_library(shardwise::onednn ALIAS shardwise_onednn)
  # by whose rates optimize_layout decides (pass/layout/decision.hpp)
  target_compile_definitions(shardwise_onednn INTERFACE SHARDWISE_WITH_ONEDNN=1)
  target_sources(shardwise_onednn INTERFACE $<TARGET_OBJECTS:shardwise_onednn_object>)
  target_link_libraries(shardwise_onednn INTERFACE shardwise::shardwise ${SHARDWISE_ONEDNN_LIBRARY} ${CMAKE_DL_LIBS})
endfunction()
