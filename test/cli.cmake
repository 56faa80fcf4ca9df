# SPDX-License-Identifier: Apache-2.0
# Registers the example program's behaviour on bad input and on a run of two steps.

if(TARGET train_text)
  add_test(NAME "cli: train_text on bad and good input" COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/cli.py $<TARGET_FILE:train_text>)
  set_tests_properties("cli: train_text on bad and good input" PROPERTIES LABELS cli TIMEOUT 600)
endif()
