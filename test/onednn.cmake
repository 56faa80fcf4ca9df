# SPDX-License-Identifier: Apache-2.0
# Registers the tests of convolutions by oneDNN, where that is installed; else configuring says that they are left out.

if(TARGET shardwise::onednn)
  shardwise_test_sources(onednn_sources GLOB onednn)
  shardwise_add_doctest(test_onednn onednn ${onednn_sources})
  if(TARGET test_onednn)
    target_link_libraries(test_onednn PRIVATE shardwise::onednn)
  endif()
endif()
