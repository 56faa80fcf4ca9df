# SPDX-License-Identifier: Apache-2.0
# Tests of the GPU backend: every test/cuda/*.cu in one executable, and each test/cuda/<program>/main.cu as one more, cuda/mpi/ where there is
# an MPI. On a machine without a GPU they build, say that they found none, and skip; what runs on paper runs everywhere.

add_custom_target(cuda_tests)
add_dependencies(cuda_targets cuda_tests)

file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} cuda/*.cu)
set(by_cudnn ${sources})
set(by_sm90a ${sources})
list(FILTER sources EXCLUDE REGEX "_(cudnn|sm90a)\\.cu$")
list(FILTER sources INCLUDE REGEX "${SHARDWISE_TEST_SELECT}")
# Those that try what the host does run on paper, too: test_cuda_paper links cuda/paper/paper.cpp in the place of CUDA's runtime, cuBLASLt and
# NCCL, whose kernels do nothing, so it needs no GPU.
set(by_host cuda/failures.cu cuda/registered.cu)
list(FILTER by_host INCLUDE REGEX "${SHARDWISE_TEST_SELECT}")
set(on_either)
if(by_host)
  add_library(test_cuda_by_host OBJECT ${by_host})
  add_library(test_cuda_steps OBJECT cuda/paper/steps.cu)
  foreach(objects IN ITEMS test_cuda_by_host test_cuda_steps)
    target_link_libraries(${objects} PRIVATE test_usage shardwise::nccl)
  endforeach()
  set(on_either $<TARGET_OBJECTS:test_cuda_by_host>)
  list(REMOVE_ITEM sources ${by_host})
  shardwise_add_doctest(test_cuda_paper cuda_paper cuda/paper/paper.cpp ${on_either} $<TARGET_OBJECTS:test_cuda_steps>)
  target_include_directories(test_cuda_paper SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS} ${SHARDWISE_NCCL_INCLUDE_DIR})
  set_target_properties(test_cuda_paper PROPERTIES LINKER_LANGUAGE CXX CUDA_RUNTIME_LIBRARY None)
  add_dependencies(cuda_tests test_cuda_paper)
endif()
shardwise_add_doctest(test_cuda cuda ${sources} ${on_either} DISCOVER --skip "skipped: [0-9]+ GPU" --labels gpu)
target_link_libraries(test_cuda PRIVATE shardwise::nccl)
add_dependencies(cuda_tests test_cuda)

# what ends in _cudnn.cu, where there is that component
if(TARGET shardwise::cudnn)
  list(FILTER by_cudnn INCLUDE REGEX "_cudnn\\.cu$")
  shardwise_add_doctest(test_cuda_cudnn cuda_cudnn ${by_cudnn} DISCOVER --skip "skipped: [0-9]+ GPU" --labels gpu)
  target_link_libraries(test_cuda_cudnn PRIVATE shardwise::nccl shardwise::cudnn)
  add_dependencies(cuda_tests test_cuda_cudnn)
endif()

# Each is a minute of nvcc's that no other test needs, so SHARDWISE_TEST_ROTATION takes one of them.
shardwise_rotated(programs other_programs sm90a process mpi)

# what ends in _sm90a.cu: kernels that one architecture's own instructions make
if("sm90a" IN_LIST programs)
  list(FILTER by_sm90a INCLUDE REGEX "_sm90a\\.cu$")
  shardwise_add_doctest(test_cuda_sm90a cuda_sm90a ${by_sm90a} DISCOVER --skip "skipped: [0-9]+ GPU" --labels gpu)
  target_link_libraries(test_cuda_sm90a PRIVATE shardwise::nccl)
  set_target_properties(test_cuda_sm90a PROPERTIES CUDA_ARCHITECTURES 90a)
  add_dependencies(cuda_tests test_cuda_sm90a)
endif()

file(GLOB mains CONFIGURE_DEPENDS cuda/*/main.cu)
foreach(main IN LISTS mains)
  cmake_path(GET main PARENT_PATH folder)
  cmake_path(GET folder FILENAME name)
  if(NOT name IN_LIST programs OR (name STREQUAL "mpi" AND NOT TARGET shardwise::mpi))
    continue()
  endif()
  add_executable(test_cuda_${name} ${main})
  target_link_libraries(test_cuda_${name} PRIVATE shardwise::nccl)
  if(name STREQUAL "mpi") # beside NCCL, and host threads to compare with
    target_link_libraries(test_cuda_${name} PRIVATE test_usage shardwise::mpi)
  endif()
  add_dependencies(cuda_tests test_cuda_${name})
endforeach()

if(TARGET test_cuda_process AND Python3_EXECUTABLE)
  add_test(NAME "cuda: processes end in time, however one of them does"
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/cuda/process/failures.py $<TARGET_FILE:test_cuda_process>)
  set_tests_properties("cuda: processes end in time, however one of them does"
                       PROPERTIES LABELS gpu SKIP_REGULAR_EXPRESSION "skipped: [0-9]+ GPU")
endif()
if(TARGET test_cuda_mpi AND Python3_EXECUTABLE)
  add_test(NAME "cuda: processes that MPI joins, with NCCL and without"
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/cuda/mpi/run.py --mpiexec ${MPIEXEC_EXECUTABLE} $<TARGET_FILE:test_cuda_mpi>)
  set_tests_properties("cuda: processes that MPI joins, with NCCL and without"
                       PROPERTIES LABELS "gpu;mpi" TIMEOUT 1800 SKIP_REGULAR_EXPRESSION "skipped: [0-9]+ GPU")
endif()

# What ptxas says of kernels: all, or a rotating part of the sources (SHARDWISE_TEST_ROTATION).
if(Python3_EXECUTABLE AND CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA")
  add_test(NAME "cuda: kernels spill no more registers than was reviewed"
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/cuda/spills.py --nvcc ${CMAKE_CUDA_COMPILER} --sample ${SHARDWISE_TEST_ROTATION})
  set_tests_properties("cuda: kernels spill no more registers than was reviewed" PROPERTIES TIMEOUT 900 SKIP_REGULAR_EXPRESSION "skipped: spills")
endif()

# The same launch with CUDA and NCCL on paper: of both their headers alone, so no GPU is needed.
if("mpi" IN_LIST programs AND TARGET shardwise::mpi AND Python3_EXECUTABLE)
  add_executable(test_cuda_mpi_paper cuda/mpi/paper.cpp)
  target_link_libraries(test_cuda_mpi_paper PRIVATE test_usage shardwise::mpi)
  target_include_directories(test_cuda_mpi_paper SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS} ${SHARDWISE_NCCL_INCLUDE_DIR})
  add_dependencies(cuda_tests test_cuda_mpi_paper)
  add_test(NAME "cuda: processes that MPI joins, on paper"
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/cuda/mpi/run.py --paper --mpiexec ${MPIEXEC_EXECUTABLE} $<TARGET_FILE:test_cuda_mpi_paper>)
  set_tests_properties("cuda: processes that MPI joins, on paper" PROPERTIES LABELS mpi TIMEOUT 300 SKIP_REGULAR_EXPRESSION "skipped: this MPI")
endif()
