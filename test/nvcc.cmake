# SPDX-License-Identifier: Apache-2.0
# Wraps selected test sources into CUDA translation units, so that nvcc's two front ends read the headers; the binaries
# hold host code only and run on a machine without a GPU.

set(SHARDWISE_NVCC_SELECT "^static/|eager|executor" CACHE STRING
    "Regex over paths relative to test/: which static and unit sources nvcc compiles")

include(${PROJECT_SOURCE_DIR}/cmake/cuda.cmake)

# result: one .cu per source, each including its .cpp
function(shardwise_wrap_for_nvcc result)
  set(wrapped "")
  foreach(source IN LISTS ARGN)
    set(wrapper ${CMAKE_CURRENT_BINARY_DIR}/nvcc/${source}.cu)
    file(CONFIGURE OUTPUT ${wrapper} CONTENT "#include <${source}>\n")
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
# nvcc 13 hands its host compiler the type of an alias of a pending tensor with a parameter that is not in scope
list(FILTER nvcc_unit EXCLUDE REGEX "^dist/pending/programs")
# nvcc 13's front end ends in an assertion of its own (il.c) over constants that are made by hooks of a tracker
list(FILTER nvcc_unit EXCLUDE REGEX "^dist/module/(tracker|hooks_and_states)\\.cpp")
shardwise_wrap_for_nvcc(wrapped ${nvcc_unit})
shardwise_add_doctest(test_nvcc nvcc ${wrapped})
