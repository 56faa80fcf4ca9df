# SPDX-License-Identifier: Apache-2.0
# Registers the example program's behaviour on bad input, on a run of two steps, and, built with all plans, under each.

if(TARGET train_text)
  add_test(NAME "cli: train_text on bad and good input" COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/cli.py $<TARGET_FILE:train_text>)
  set_tests_properties("cli: train_text on bad and good input" PROPERTIES LABELS cli TIMEOUT 600)
  if(TRAIN_TEXT_PARALLEL STREQUAL all)
    add_test(NAME "cli: every plan of train_text has the same losses" COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/parallel.py $<TARGET_FILE:train_text>)
    set_tests_properties("cli: every plan of train_text has the same losses" PROPERTIES LABELS cli TIMEOUT 1200)
  endif()
endif()
