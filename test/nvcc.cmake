# SPDX-License-Identifier: Apache-2.0
# Wraps selected test sources into CUDA translation units, so that nvcc's two front ends read the headers; the binaries
# hold host code only and run on a machine without a GPU.

set(SHARDWISE_NVCC_SELECT "^static/|eager|executor" CACHE STRING
    "Regex over paths relative to test/: which static and unit sources nvcc compiles")

if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 90)
endif()
enable_language(CUDA)

# CMake before 3.26 knows no C++20 for nvcc and would silently pass no -std flag.
if(CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA" AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.0
   AND NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
  list(APPEND CMAKE_CUDA20_COMPILE_FEATURES cuda_std_20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)

# result: one .cu per source, each including its .cpp
function(shardwise_wrap_for_nvcc result)
  set(wrapped "")
  foreach(source IN LISTS ARGN)
    set(wrapper ${CMAKE_CURRENT_BINARY_DIR}/nvcc/${source}.cu)
    file(CONFIGURE OUTPUT ${wrapper} CONTENT "#include \"${CMAKE_CURRENT_SOURCE_DIR}/${source}\"\n")
    list(APPEND wrapped ${wrapper})
  endforeach()
  set(${result} ${wrapped} PARENT_SCOPE)
endfunction()

shardwise_test_sources(nvcc_static GLOB_RECURSE static)
list(FILTER nvcc_static INCLUDE REGEX "${SHARDWISE_NVCC_SELECT}")
if(nvcc_static)
  shardwise_wrap_for_nvcc(wrapped ${nvcc_static})
  add_library(test_nvcc_static OBJECT ${wrapped})
  target_link_libraries(test_nvcc_static PRIVATE test_usage)
endif()

shardwise_test_sources(nvcc_unit GLOB_RECURSE unit)
shardwise_test_sources(nvcc_dist GLOB_RECURSE dist)
set(nvcc_unit ${nvcc_unit} ${nvcc_dist})
list(FILTER nvcc_unit INCLUDE REGEX "${SHARDWISE_NVCC_SELECT}")
list(FILTER nvcc_unit EXCLUDE REGEX "^dist/allocation/") # it replaces malloc, which CUDA's headers declare in their own way
shardwise_wrap_for_nvcc(wrapped ${nvcc_unit})
shardwise_add_doctest(test_nvcc nvcc ${wrapped})

# Tests of device code, test/cuda/*.cu, are built by the target cuda_targets and need a GPU to run.
file(GLOB cuda_sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} cuda/*.cu)
add_custom_target(cuda_targets)
if(cuda_sources)
  find_package(CUDAToolkit REQUIRED)
  shardwise_add_doctest(test_cuda cuda ${cuda_sources})
  target_link_libraries(test_cuda PRIVATE CUDA::cudart)
  add_dependencies(cuda_targets test_cuda)
endif()
