# SPDX-License-Identifier: Apache-2.0
# shardwise_find_boost(): the target Boost::headers where Boost 1.74 or newer is found, and Boost_INCLUDE_DIRS, for the project and for
# the installed package. By Boost's own package config, else by its headers: CMake's FindBoost is gone where policy CMP0167 is NEW.

macro(shardwise_find_boost)
  if(NOT TARGET Boost::headers)
    find_package(Boost 1.74 CONFIG QUIET)
  endif()
  if(NOT TARGET Boost::headers)
    find_path(SHARDWISE_BOOST_INCLUDE_DIR boost/hana/version.hpp HINTS ${BOOST_ROOT} $ENV{BOOST_ROOT} PATH_SUFFIXES include)
    if(SHARDWISE_BOOST_INCLUDE_DIR)
      file(STRINGS ${SHARDWISE_BOOST_INCLUDE_DIR}/boost/version.hpp shardwise_boost REGEX "^#define BOOST_VERSION +[0-9]+")
      string(REGEX MATCH "[0-9]+" shardwise_boost "${shardwise_boost}")
      if(shardwise_boost GREATER_EQUAL 107400)
        add_library(Boost::headers INTERFACE IMPORTED)
        set_target_properties(Boost::headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${SHARDWISE_BOOST_INCLUDE_DIR})
      endif()
    endif()
  endif()
  if(TARGET Boost::headers)
    get_target_property(Boost_INCLUDE_DIRS Boost::headers INTERFACE_INCLUDE_DIRECTORIES)
  endif()
endmacro()
