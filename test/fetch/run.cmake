# SPDX-License-Identifier: Apache-2.0
# Configures, builds, runs and installs test/fetch against the source tree, and sees that a wrong plan is refused. SOURCE_DIR, WORK_DIR,
# CXX, GENERATOR.

file(REMOVE_RECURSE ${WORK_DIR})
function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(result)
    string(JOIN " " line ${ARGN})
    message(FATAL_ERROR "failed: ${line}")
  endif()
endfunction()
set(configure ${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE_DIR}/test/fetch -DFETCHCONTENT_SOURCE_DIR_SHARDWISE=${SOURCE_DIR}
    -DFETCHCONTENT_FULLY_DISCONNECTED=ON -DCMAKE_CXX_COMPILER=${CXX} -DCONSUMER_SOURCE=${SOURCE_DIR}/conan/test_package/main.cpp)

step(${configure} -B ${WORK_DIR}/build -DCMAKE_INSTALL_PREFIX=${WORK_DIR}/prefix)
step(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
step(${WORK_DIR}/build/consumer)
step(${CMAKE_COMMAND} --install ${WORK_DIR}/build)
file(GLOB_RECURSE installed LIST_DIRECTORIES false RELATIVE ${WORK_DIR}/prefix ${WORK_DIR}/prefix/*)
if(NOT installed STREQUAL "bin/consumer")
  message(FATAL_ERROR "installing a project that fetches shardwise installs ${installed}, and it has bin/consumer alone")
endif()

step(${configure} -B ${WORK_DIR}/wrong -DCMAKE_CXX_FLAGS=-DCONSUMER_WRONG)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK_DIR}/wrong RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(NOT result OR NOT text MATCHES "shardwise: matmul: one operand is sharded on a free dim")
  message(FATAL_ERROR "a wrong plan was accepted, or refused by: ${text}")
endif()
