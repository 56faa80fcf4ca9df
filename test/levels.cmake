# SPDX-License-Identifier: Apache-2.0
# Registers the layer check and its own test, the list of defaults and fixed sizes, the check of the documents, and that test
# sources link alone.

add_test(NAME levels COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/levels.py ${SHARDWISE_INCLUDE_DIR})
add_test(NAME "levels: a fabricated upward include is found"
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/levels.py --selftest)
set_tests_properties(levels "levels: a fabricated upward include is found" PROPERTIES LABELS levels)

add_test(NAME limits COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/limits.py --include ${SHARDWISE_INCLUDE_DIR}/shardwise)
set_tests_properties(limits PROPERTIES LABELS levels)

add_test(NAME "device waits: where a host waits for a device the rank's watch knows"
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/device_waits.py ${SHARDWISE_INCLUDE_DIR})
add_test(NAME "device waits: a call outside the room is found" COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/device_waits.py --selftest)
set_tests_properties("device waits: where a host waits for a device the rank's watch knows" "device waits: a call outside the room is found"
                     PROPERTIES LABELS levels)

add_test(NAME "version: one header says it" COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/version.py --project ${PROJECT_VERSION})
add_test(NAME "version: a file that types it is found" COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/version.py --selftest)
set_tests_properties("version: one header says it" "version: a file that types it is found" PROPERTIES LABELS levels)

add_test(NAME documents COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/documents.py ${PROJECT_SOURCE_DIR})
add_test(NAME "documents: a name or path that is not there is found"
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/documents.py --selftest)
set_tests_properties(documents "documents: a name or path that is not there is found" PROPERTIES LABELS levels)

if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(alone ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/alone.py ${CMAKE_CURRENT_BINARY_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  add_test(NAME "sources: each links alone" COMMAND ${alone})
  add_test(NAME "sources: one that needs another is found" COMMAND ${alone} --selftest)
  set_tests_properties("sources: each links alone" "sources: one that needs another is found" PROPERTIES LABELS levels)
endif()

add_test(NAME "namespaces: a header outside them is found"
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/namespaces.py --selftest)
set_tests_properties("namespaces: a header outside them is found" PROPERTIES LABELS levels)

set(contributing_run ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/contributing.py --compiler ${CMAKE_CXX_COMPILER})
foreach(directory IN LISTS Boost_INCLUDE_DIRS)
  if(NOT directory IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    list(APPEND contributing_run --system-include ${directory})
  endif()
endforeach()
add_test(NAME "contributing: the examples of CONTRIBUTING.md compile and run" COMMAND ${contributing_run})
set_tests_properties("contributing: the examples of CONTRIBUTING.md compile and run" PROPERTIES LABELS levels TIMEOUT 600)

# Of clang-format exactly one version is taken: without it the first two are shown as skipped, and say how to get it.
set(format ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/format.py)
add_test(NAME "format: sources are as clang-format writes them" COMMAND ${format})
add_test(NAME "format: one that is not is found" COMMAND ${format} --selftest)
add_test(NAME "namespaces: every header lies in them" COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/namespaces.py)
set_tests_properties("format: sources are as clang-format writes them" "format: one that is not is found" "namespaces: every header lies in them"
                     PROPERTIES LABELS levels SKIP_RETURN_CODE 77)
