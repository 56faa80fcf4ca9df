# SPDX-License-Identifier: Apache-2.0
# shardwise_add_cudnn(): the target shardwise::cudnn, for the project and for the installed package. Linking it registers cuDNN's
# attention and convolutions in a program. Its one source, two lines that are written into the build folder, takes a compiler a minute and 2 GB; it is
# compiled once for a build folder, and its object goes into every program that links the target. Where cuDNN or the header-only
# front end (https://github.com/NVIDIA/cudnn-frontend) is not found, there is no target, and what is missing is said by a
# warning or, in shardwise_add_cudnn(RESULT), by the variable RESULT.

function(shardwise_add_cudnn)
  if(TARGET shardwise::cudnn)
    return()
  endif()
  set(SHARDWISE_CUDNN_ROOT "" CACHE PATH "Where cuDNN lies: a folder with include/cudnn.h and lib/libcudnn.so")
  set(SHARDWISE_CUDNN_FRONTEND_ROOT "" CACHE PATH "Where cuDNN's front end lies: a folder with include/cudnn_frontend.h")
  find_path(SHARDWISE_CUDNN_INCLUDE_DIR cudnn.h HINTS ${SHARDWISE_CUDNN_ROOT} ${CUDAToolkit_INCLUDE_DIRS}
            PATH_SUFFIXES include)
  find_library(SHARDWISE_CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${SHARDWISE_CUDNN_ROOT} ${CUDAToolkit_LIBRARY_DIR}
               PATH_SUFFIXES lib lib64)
  find_path(SHARDWISE_CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h HINTS ${SHARDWISE_CUDNN_FRONTEND_ROOT}
            PATH_SUFFIXES include)
  set(missing "")
  if(NOT SHARDWISE_CUDNN_INCLUDE_DIR)
    list(APPEND missing "cudnn.h (set SHARDWISE_CUDNN_ROOT)")
  endif()
  if(NOT SHARDWISE_CUDNN_LIBRARY)
    list(APPEND missing "libcudnn (set SHARDWISE_CUDNN_ROOT or SHARDWISE_CUDNN_LIBRARY)")
  endif()
  if(NOT SHARDWISE_CUDNN_FRONTEND_INCLUDE_DIR)
    list(APPEND missing "cudnn_frontend.h (set SHARDWISE_CUDNN_FRONTEND_ROOT to an unpacked cuDNN front end)")
  endif()
  if(NOT TARGET CUDA::nvrtc)
    list(APPEND missing "NVRTC, of the CUDA toolkit")
  endif()
  if(missing)
    string(JOIN ", " missing ${missing})
    if(ARGC)
      set(${ARGV0} ${missing} PARENT_SCOPE)
    else()
      message(WARNING "shardwise: there is no target shardwise::cudnn: not found are ${missing}")
    endif()
    return()
  endif()

  set(source ${CMAKE_CURRENT_BINARY_DIR}/shardwise_cudnn.cpp)
  file(CONFIGURE OUTPUT ${source} 
       CONTENT "#include <shardwise/runtime/cuda/cudnn/attention.hpp>\n#include <shardwise/runtime/cuda/cudnn/convolution.hpp>\n")
  if(TARGET shardwise_cuda) # within the project
    set(cuda shardwise_cuda)
  else()
    set(cuda shardwise::cuda)
  endif()
  add_library(shardwise_cudnn_object OBJECT EXCLUDE_FROM_ALL ${source})
  set_target_properties(shardwise_cudnn_object PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(shardwise_cudnn_object PRIVATE ${cuda})
  target_include_directories(shardwise_cudnn_object SYSTEM PRIVATE ${SHARDWISE_CUDNN_INCLUDE_DIR}
                                                                   ${SHARDWISE_CUDNN_FRONTEND_INCLUDE_DIR})
  # an object, not a library: what registers itself is in every program that links the target, named or not
  add_library(shardwise_cudnn INTERFACE)
  add_library(shardwise::cudnn ALIAS shardwise_cudnn)
  target_sources(shardwise_cudnn INTERFACE $<TARGET_OBJECTS:shardwise_cudnn_object>)
  target_compile_definitions(shardwise_cudnn INTERFACE SHARDWISE_WITH_CUDNN=1) # what optimize_layout estimates by
  target_link_libraries(shardwise_cudnn INTERFACE ${cuda} ${SHARDWISE_CUDNN_LIBRARY} CUDA::nvrtc CUDA::cuda_driver
                                                  ${CMAKE_DL_LIBS})
endfunction()
