# SPDX-License-Identifier: Apache-2.0
# shardwise_add_kernels(): the target shardwise::kernels, for the project and for the installed package: the host kernels of all element
# types compiled once, for all sources that link it, which then compile faster (bench/compile/table.md) and without optimisation train at
# full speed. A static library that is built where something links it, optimised whatever the build type; each shared object has its own,
# since kernels are hidden. Where there is shardwise::blas it is part of the target: kernels and those who call them agree on it, or
# nothing links.

# The sources, written into the build folder: of float, of double and of all others, so that cores share the work.
function(shardwise_kernel_sources result)
  set(sources "")
  foreach(type IN ITEMS FLOAT DOUBLE OTHERS)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/kernels_${type}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#define SHARDWISE_INSTANTIATE_KERNELS 1
#define SHARDWISE_KERNELS_OF_${type}_ONLY 1
#include <shardwise/runtime/host/extern_kernels.hpp>
")
    list(APPEND sources ${source})
  endforeach()
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

function(shardwise_add_kernels)
  if(TARGET shardwise::kernels)
    return()
  endif()
  shardwise_kernel_sources(sources)
  add_library(shardwise_kernels STATIC EXCLUDE_FROM_ALL ${sources})
  add_library(shardwise::kernels ALIAS shardwise_kernels)
  set_target_properties(shardwise_kernels PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_features(shardwise_kernels PUBLIC cxx_std_20)
  target_compile_options(shardwise_kernels PRIVATE $<$<CXX_COMPILER_ID:GNU,Clang>:-O2>)
  target_compile_definitions(shardwise_kernels INTERFACE SHARDWISE_EXTERN_KERNELS=1)
  target_link_libraries(shardwise_kernels PUBLIC shardwise::shardwise $<TARGET_NAME_IF_EXISTS:shardwise::blas>)
endfunction()
