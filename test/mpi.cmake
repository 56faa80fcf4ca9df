# SPDX-License-Identifier: Apache-2.0
# Registers the tests of the mpi backend, where MPI is installed: one executable, run by 1 to 4 processes, and runs that fail; and tests of
# threads, dist/, over processes.

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
    add_test(NAME "mpi: ranks that fail end all" COMMAND ${run} --failures --sample ${SHARDWISE_TEST_ROTATION} $<TARGET_FILE:test_mpi>)
    set_tests_properties("mpi: 2 processes" "mpi: 3 processes" "mpi: 4 processes" PROPERTIES PROCESSORS 2)
    set_tests_properties("mpi: 1 processes" "mpi: 2 processes" "mpi: 3 processes" "mpi: 4 processes" "mpi: ranks that fail end all"
                         PROPERTIES LABELS mpi TIMEOUT 300)
  endif()

  # Sources of dist/ once more, with launch<mesh> over processes (support/by_processes.hpp): a few in every run, with SHARDWISE_TEST_HEAVY all
  # but these.
  set(threads_alone
      allocation/ # counts what a process with all ranks allocates
      failures.cpp early_return.cpp stalled.cpp finite.cpp pending/failures.cpp checkpoint/faults.cpp # launches that fail end MPI's world: mpi/run.py
      fake.cpp # launches nothing
      module/moved_state.cpp module/shard_optimizer_states.cpp # each thread is a rank of two meshes
      batches.cpp dtensor_compile/async_input.cpp pending/programs.cpp pending/written_sources.cpp # over a link that threads make slow
      checkpoint/async.cpp # ranks wait for each other in memory
      checkpoint/in_place.cpp checkpoint/weights.cpp checkpoint/llama_names.cpp # files outside of launches, which every process would write
      module/param_groups.cpp # rank 0 shows the others its vector
      compute_threads.cpp # many threads of each rank: too long as processes
      timeline.cpp # a kind of event has the name that by_processes.hpp defines anew
  )
  set(every_run dtensor_compile/tensors.cpp fsdp_compile/simple_mlp.cpp redistribution/strided.cpp)
  add_library(test_processes_main OBJECT mpi/cases/main.cpp)
  target_link_libraries(test_processes_main PRIVATE test_usage shardwise::mpi)
  target_compile_options(test_processes_main PRIVATE -O0)
  file(GLOB folders CONFIGURE_DEPENDS LIST_DIRECTORIES true RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} dist dist/*)
  foreach(folder IN LISTS folders)
    if(NOT IS_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
      continue()
    endif()
    shardwise_test_sources(sources GLOB ${folder})
    foreach(alone IN LISTS threads_alone)
      string(REPLACE "." "\\." alone ${alone})
      list(FILTER sources EXCLUDE REGEX "^dist/${alone}")
    endforeach()
    if(NOT SHARDWISE_TEST_HEAVY)
      list(JOIN every_run "|" some)
      list(FILTER sources INCLUDE REGEX "^dist/(${some})$")
    endif()
    if(sources)
      string(REPLACE "/" "_" name test_processes_${folder})
      add_executable(${name} ${sources})
      target_link_libraries(${name} PRIVATE test_usage test_processes_main shardwise::mpi $<TARGET_NAME_IF_EXISTS:test_kernels>)
      target_compile_definitions(${name} PRIVATE SHARDWISE_TEST_PROCESSES)
      target_compile_options(${name} PRIVATE "SHELL:-include by_processes.hpp" -O0)
      add_test(NAME "mpi: cases of ${folder} over processes"
               COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/mpi/cases/cases.py --mpiexec ${MPIEXEC_EXECUTABLE} $<TARGET_FILE:${name}>)
      set_tests_properties("mpi: cases of ${folder} over processes" PROPERTIES LABELS mpi TIMEOUT 3600 PROCESSORS 2)
    endif()
  endforeach()
endif()
