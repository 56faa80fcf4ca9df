# SPDX-License-Identifier: Apache-2.0
# Registers the checks of docs/ and of the course in examples/: the index of errors is up to date, quotes are what is quoted, an eighth
# of the pages' code compiles (another one at each commit; all of it in the full run), every example prints what its file says, and
# programs solve the newcomer's tasks.

set(docs_errors ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/errors.py)
add_test(NAME "docs: the index of errors is up to date" COMMAND ${docs_errors})
add_test(NAME "docs: an index that is stale is found" COMMAND ${docs_errors} --selftest)

set(docs_blocks ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/blocks.py --compiler ${CMAKE_CXX_COMPILER})
foreach(directory IN LISTS Boost_INCLUDE_DIRS)
  if(NOT directory IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    list(APPEND docs_blocks --system-include ${directory})
  endif()
endforeach()
if(NOT SHARDWISE_TEST_HEAVY OR CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(docs_sample --sample rotate/8)
endif()
add_test(NAME "docs: code compiles, quotes are what is quoted" COMMAND ${docs_blocks} ${docs_sample})
add_test(NAME "docs: code that does not compile is found" COMMAND ${docs_blocks} --selftest)

set(docs_reference ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/reference.py)
add_test(NAME "docs: a reference is made of the headers" COMMAND ${docs_reference} ${CMAKE_CURRENT_BINARY_DIR}/reference.md)
add_test(NAME "docs: every public name is in a test" COMMAND ${docs_reference} --tested)
add_test(NAME "docs: a name that a reference or the tests have lost is found" COMMAND ${docs_reference} --selftest)

# Debian's own interpreter, which its package of Markdown serves; where there is none, the one that builds.
find_program(system_python python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(NOT system_python)
  set(system_python ${Python3_EXECUTABLE})
endif()
add_test(NAME "docs: the site's links hold, and broken ones are found"
         COMMAND ${system_python} ${PROJECT_SOURCE_DIR}/docs/site/build.py ${CMAKE_CURRENT_BINARY_DIR}/site --without-headers --selftest)
set_tests_properties("docs: the site's links hold, and broken ones are found" PROPERTIES LABELS docs TIMEOUT 300 SKIP_RETURN_CODE 77
                     FIXTURES_SETUP site)
find_program(node NAMES node nodejs)
if(node)
  add_test(NAME "docs: every sentence finds its entry by the site's search"
           COMMAND ${node} ${CMAKE_CURRENT_SOURCE_DIR}/site_search.js ${CMAKE_CURRENT_BINARY_DIR}/site ${SHARDWISE_TEST_ROTATION})
  set_tests_properties("docs: every sentence finds its entry by the site's search" PROPERTIES LABELS docs TIMEOUT 300 FIXTURES_REQUIRED site
                       SKIP_RETURN_CODE 77)
endif()

set(docs_course ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/course.py)
add_test(NAME "docs: the course is twelve examples" COMMAND ${docs_course})
add_test(NAME "docs: an example that prints something else is found" COMMAND ${docs_course} --selftest)
set_tests_properties("docs: the index of errors is up to date" "docs: an index that is stale is found"
                     "docs: code compiles, quotes are what is quoted" "docs: code that does not compile is found"
                     "docs: a reference is made of the headers" "docs: every public name is in a test"
                     "docs: a name that a reference or the tests have lost is found"
                     "docs: the course is twelve examples" "docs: an example that prints something else is found"
                     PROPERTIES LABELS docs TIMEOUT 600)

# One of the thirty tasks' programs, another one at each commit; all of them in the full run.
set(docs_tasks ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/tasks.py)
if(docs_sample)
  set(tasks_sample --sample rotate/30)
endif()
add_test(NAME "docs: programs of the tasks check themselves, lines are counted"
         COMMAND ${docs_tasks} --compiler ${CMAKE_CXX_COMPILER} ${tasks_sample})
add_test(NAME "docs: a task that is not solved is found" COMMAND ${docs_tasks} --selftest)
set_tests_properties("docs: programs of the tasks check themselves, lines are counted" "docs: a task that is not solved is found"
                     PROPERTIES LABELS docs TIMEOUT 600)

if(SHARDWISE_BUILD_EXAMPLES)
  file(GLOB course CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/examples/output ${PROJECT_SOURCE_DIR}/examples/output/*.txt)
  foreach(output IN LISTS course)
    cmake_path(GET output STEM name)
    set(program example_${name})
    if(NOT TARGET ${program})
      set(program ${name}) # a folder's
    endif()
    add_test(NAME "course: ${name}" COMMAND ${docs_course} ${name} $<TARGET_FILE:${program}>)
    set_tests_properties("course: ${name}" PROPERTIES LABELS docs TIMEOUT 300)
  endforeach()
  add_test(NAME "course: 04_wrong_plan does not compile when it is wrong"
           COMMAND ${fail_run} --compiler ${CMAKE_CXX_COMPILER} ${PROJECT_SOURCE_DIR}/examples/04_wrong_plan.cpp)
  set_tests_properties("course: 04_wrong_plan does not compile when it is wrong" PROPERTIES LABELS docs TIMEOUT 300)
endif()
