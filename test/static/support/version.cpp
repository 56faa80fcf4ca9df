// SPDX-License-Identifier: Apache-2.0
// The version as a text and as a number, of the same three.

#include <string_view>

#include <shardwise/support/config.hpp>

static_assert(SHARDWISE_VERSION_NUMBER ==
              SHARDWISE_VERSION_MAJOR * 1000000 + SHARDWISE_VERSION_MINOR * 1000 + SHARDWISE_VERSION_PATCH);
#if SHARDWISE_VERSION_NUMBER < 1000
#error "a version below 0.1.0"
#endif

constexpr std::string_view text = SHARDWISE_VERSION;
static_assert(text.find('.') != text.npos && text.find('.') != text.rfind('.'));
static_assert(text.find("SHARDWISE") == text.npos);
