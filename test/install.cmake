# SPDX-License-Identifier: Apache-2.0
# Registers the install test: install into an empty prefix, then build and run a foreign project against it.

if(SHARDWISE_INSTALL)
  add_test(NAME "install: a foreign project finds the installed package"
           COMMAND ${CMAKE_COMMAND} -DBUILD_DIR=${PROJECT_BINARY_DIR} -DSOURCE_DIR=${PROJECT_SOURCE_DIR}
                   -DCONSUMER_DIR=${CMAKE_CURRENT_SOURCE_DIR}/install
                   -DWORK_DIR=${CMAKE_CURRENT_BINARY_DIR}/install -DCXX=${CMAKE_CXX_COMPILER}
                   -DGENERATOR=${CMAKE_GENERATOR} -DKERNELS=${SHARDWISE_TEST_HEAVY} -DBLAS=${SHARDWISE_WITH_BLAS}
                   -P ${CMAKE_CURRENT_SOURCE_DIR}/install/run.cmake)
  set_tests_properties("install: a foreign project finds the installed package" PROPERTIES LABELS install TIMEOUT 300)
endif()
