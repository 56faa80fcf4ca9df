# SPDX-License-Identifier: Apache-2.0
# Registers the example programs' behaviour on bad input, on a run of two steps, and of train_text ended in the middle and resumed, and,
# built with all plans, under each.

if(TARGET train_text)
  add_test(NAME "cli: train_text on bad and good input" COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/cli.py $<TARGET_FILE:train_text>)
  set_tests_properties("cli: train_text on bad and good input" PROPERTIES LABELS cli TIMEOUT 600)
  # Each builds the model once more, so SHARDWISE_TEST_ROTATION takes one of them.
  shardwise_rotated(variants others two_ranks processes)
  if("two_ranks" IN_LIST variants)
    add_executable(train_text_two ${PROJECT_SOURCE_DIR}/examples/train_text/main.cpp ${PROJECT_SOURCE_DIR}/examples/train_text/plan.cpp
                   ${PROJECT_SOURCE_DIR}/examples/train_text/generate.cpp)
    target_compile_definitions(train_text_two PRIVATE TRAIN_TEXT_RANKS=2 TRAIN_TEXT_PLAN=ddp_tp TRAIN_TEXT_WITH_ddp_tp)
    target_link_libraries(train_text_two PRIVATE shardwise::shardwise shardwise_warnings)
    add_test(NAME "cli: train_text killed and resumed" COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/resume.py
                                                                $<TARGET_FILE:train_text> $<TARGET_FILE:train_text_two>)
    set_tests_properties("cli: train_text killed and resumed" PROPERTIES LABELS cli TIMEOUT 1200)
  endif()
  if(TARGET shardwise::mpi AND "processes" IN_LIST variants)
    add_executable(train_text_processes ${PROJECT_SOURCE_DIR}/examples/train_text/main.cpp ${PROJECT_SOURCE_DIR}/examples/train_text/plan.cpp
                 ${PROJECT_SOURCE_DIR}/examples/train_text/generate.cpp)
    target_compile_definitions(train_text_processes PRIVATE TRAIN_TEXT_MPI TRAIN_TEXT_PLAN=ddp_tp TRAIN_TEXT_WITH_ddp_tp)
    target_link_libraries(train_text_processes PRIVATE shardwise::mpi shardwise::kernels shardwise_warnings)
    add_test(NAME "cli: train_text over processes, one of which is killed, and resumed"
             COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/resume.py $<TARGET_FILE:train_text_processes> - --mpi ${MPIEXEC_EXECUTABLE})
    set_tests_properties("cli: train_text over processes, one of which is killed, and resumed" PROPERTIES LABELS cli TIMEOUT 600 PROCESSORS 2)
  endif()
  if(TARGET train_text_processes)
    add_test(NAME "cli: train_text generates over processes what it does over threads"
             COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/cli.py $<TARGET_FILE:train_text_processes> --mpi ${MPIEXEC_EXECUTABLE})
    set_tests_properties("cli: train_text generates over processes what it does over threads" PROPERTIES LABELS cli TIMEOUT 600 PROCESSORS 2)
  endif()
  if(SHARDWISE_TEST_HEAVY)
    if(TARGET train_text_two)
      add_test(NAME "cli: train_text killed 200 times" COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/resume.py
                                                               $<TARGET_FILE:train_text> $<TARGET_FILE:train_text_two> --kills 200 --steps 96)
      set_tests_properties("cli: train_text killed 200 times" PROPERTIES LABELS cli TIMEOUT 10000)
    endif()
    add_test(NAME "cli: train_text ended every six seconds, beside one that is not" COMMAND ${Python3_EXECUTABLE}
             ${CMAKE_CURRENT_SOURCE_DIR}/resume.py $<TARGET_FILE:train_text> - --soak 0.75 --every 6 --save-every 4)
    set_tests_properties("cli: train_text ended every six seconds, beside one that is not" PROPERTIES LABELS cli TIMEOUT 1200 PROCESSORS 2)
    if(TARGET train_text_processes)
      add_test(NAME "cli: train_text over processes, ended every eight seconds, beside threads that are not" COMMAND ${Python3_EXECUTABLE}
               ${CMAKE_CURRENT_SOURCE_DIR}/resume.py $<TARGET_FILE:train_text_processes> - --mpi ${MPIEXEC_EXECUTABLE} --soak 0.75 --every 8 --save-every 4)
      set_tests_properties("cli: train_text over processes, ended every eight seconds, beside threads that are not"
                           PROPERTIES LABELS cli TIMEOUT 1200 PROCESSORS 2)
    endif()
  endif()
  if(TRAIN_TEXT_PARALLEL STREQUAL all)
    add_test(NAME "cli: every plan of train_text has the same losses" COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/parallel.py $<TARGET_FILE:train_text>)
    set_tests_properties("cli: every plan of train_text has the same losses" PROPERTIES LABELS cli TIMEOUT 1200)
  endif()
endif()

if(TARGET train_glyphs)
  add_test(NAME "cli: train_glyphs on bad and good input" COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/glyphs.py $<TARGET_FILE:train_glyphs>)
  set_tests_properties("cli: train_glyphs on bad and good input" PROPERTIES LABELS cli TIMEOUT 600 SKIP_RETURN_CODE 77)
  if(SHARDWISE_TEST_HEAVY)
    add_test(NAME "cli: train_glyphs recognises fonts that it never saw"
             COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/glyphs.py $<TARGET_FILE:train_glyphs> --whole)
    set_tests_properties("cli: train_glyphs recognises fonts that it never saw" PROPERTIES LABELS cli TIMEOUT 1800 SKIP_RETURN_CODE 77)
  endif()
endif()
