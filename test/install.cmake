# SPDX-License-Identifier: Apache-2.0
# Registers what is built as users build it: a foreign project against an empty prefix that the package is installed into, one that takes
# it by FetchContent, the vcpkg port's rules, and a consumer without a warning.

if(SHARDWISE_INSTALL)
  add_test(NAME "install: a foreign project finds the installed package"
           COMMAND ${CMAKE_COMMAND} -DBUILD_DIR=${PROJECT_BINARY_DIR} -DSOURCE_DIR=${PROJECT_SOURCE_DIR}
                   -DCONSUMER_DIR=${CMAKE_CURRENT_SOURCE_DIR}/install
                   -DWORK_DIR=${CMAKE_CURRENT_BINARY_DIR}/install -DCXX=${CMAKE_CXX_COMPILER}
                   -DGENERATOR=${CMAKE_GENERATOR} -DKERNELS=${SHARDWISE_TEST_HEAVY} -DBLAS=${SHARDWISE_WITH_BLAS}
                   -P ${CMAKE_CURRENT_SOURCE_DIR}/install/run.cmake)
  set_tests_properties("install: a foreign project finds the installed package" PROPERTIES LABELS install TIMEOUT 300)
endif()

add_test(NAME "install: a foreign project takes the sources by FetchContent"
         COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DWORK_DIR=${CMAKE_CURRENT_BINARY_DIR}/fetch
                 -DCXX=${CMAKE_CXX_COMPILER} -DGENERATOR=${CMAKE_GENERATOR} -P ${CMAKE_CURRENT_SOURCE_DIR}/fetch/run.cmake)
set_tests_properties("install: a foreign project takes the sources by FetchContent" PROPERTIES LABELS install TIMEOUT 300)

set(vcpkg_check ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/vcpkg.py)
add_test(NAME "vcpkg: the port keeps the rules" COMMAND ${vcpkg_check})
add_test(NAME "vcpkg: a port that breaks one is found" COMMAND ${vcpkg_check} --selftest)
add_test(NAME "vcpkg: the portfile installs what the rules ask for"
         COMMAND ${vcpkg_check} --install ${CMAKE_CURRENT_BINARY_DIR}/vcpkg --cmake ${CMAKE_COMMAND} --compiler ${CMAKE_CXX_COMPILER})
set_tests_properties("vcpkg: the port keeps the rules" "vcpkg: a port that breaks one is found"
                     "vcpkg: the portfile installs what the rules ask for" PROPERTIES LABELS install TIMEOUT 300)

# The headers as a project's own, not as a system's: the flags that projects turn on. clang says only while it optimises which loops it
# has not vectorised (-Wpass-failed, which is on by default).
set(strict -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -I${SHARDWISE_INCLUDE_DIR})
foreach(compiler IN LISTS SHARDWISE_FAIL_COMPILERS)
  cmake_path(GET compiler FILENAME name)
  set(mode -fsyntax-only)
  if(name MATCHES "clang")
    set(mode -O2 -c -o ${CMAKE_CURRENT_BINARY_DIR}/warnings_${name}.o)
  endif()
  add_test(NAME "warnings: a consumer has none [${name}]"
           COMMAND ${compiler} ${strict} ${mode} ${PROJECT_SOURCE_DIR}/conan/test_package/main.cpp)
  add_test(NAME "warnings: one in a consumer is found [${name}]"
           COMMAND ${compiler} ${strict} -fsyntax-only -DCONSUMER_WARNS ${PROJECT_SOURCE_DIR}/conan/test_package/main.cpp)
  set_tests_properties("warnings: one in a consumer is found [${name}]" PROPERTIES WILL_FAIL ON)
  set_tests_properties("warnings: a consumer has none [${name}]" "warnings: one in a consumer is found [${name}]" PROPERTIES LABELS install)
endforeach()
