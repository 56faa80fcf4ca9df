# SPDX-License-Identifier: Apache-2.0
# Registers the tests of the mpi backend, where MPI is installed: one executable, run by 1 to 4 processes, and runs that fail.

if(TARGET shardwise::mpi AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize") # which would report the MPI's own leaks and races
  shardwise_test_sources(mpi_sources GLOB mpi)
  if(mpi_sources)
    add_executable(test_mpi ${mpi_sources})
    target_link_libraries(test_mpi PRIVATE test_usage test_main shardwise::mpi $<TARGET_NAME_IF_EXISTS:test_kernels>)
    if(TARGET test_kernels)
      target_compile_options(test_mpi PRIVATE -O0)
    endif()
    set(run ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/mpi/run.py --mpiexec ${MPIEXEC_EXECUTABLE})
    foreach(n RANGE 1 4)
      add_test(NAME "mpi: ${n} processes" COMMAND ${run} --processes ${n} $<TARGET_FILE:test_mpi>)
    endforeach()
    add_test(NAME "mpi: ranks that fail end all" COMMAND ${run} --failures $<TARGET_FILE:test_mpi>)
    set_tests_properties("mpi: 2 processes" "mpi: 3 processes" "mpi: 4 processes" PROPERTIES PROCESSORS 2)
    set_tests_properties("mpi: 1 processes" "mpi: 2 processes" "mpi: 3 processes" "mpi: 4 processes" "mpi: ranks that fail end all"
                         PROPERTIES LABELS mpi TIMEOUT 300)
  endif()
endif()
