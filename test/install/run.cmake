# SPDX-License-Identifier: Apache-2.0
# Installs BUILD_DIR below WORK_DIR, then configures, builds and runs the project in CONSUMER_DIR against it.

file(REMOVE_RECURSE ${WORK_DIR})
function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(result)
    string(JOIN " " line ${ARGN})
    message(FATAL_ERROR "failed: ${line}")
  endif()
endfunction()

step(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
file(GLOB_RECURSE package_files ${WORK_DIR}/prefix/*.cmake)
foreach(file IN LISTS package_files)
  file(READ ${file} text)
  string(FIND "${text}" "${SOURCE_DIR}" found)
  if(NOT found EQUAL -1)
    message(FATAL_ERROR "${file} names the source tree; the installed package must be relocatable")
  endif()
endforeach()
file(RENAME ${WORK_DIR}/prefix ${WORK_DIR}/moved)
step(${CMAKE_COMMAND} -G ${GENERATOR} -S ${CONSUMER_DIR} -B ${WORK_DIR}/build -DCMAKE_PREFIX_PATH=${WORK_DIR}/moved
     -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=Release)
step(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
step(${WORK_DIR}/build/consumer_core)
step(${WORK_DIR}/build/consumer_all)
