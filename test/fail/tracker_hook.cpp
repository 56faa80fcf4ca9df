// SPDX-License-Identifier: Apache-2.0
// A tracker's hook that takes another thing than a module.
// expect: module_tracker: a hook given is no function of a tracked_module

#include <shardwise/module/tracker/tracker.hpp>

namespace sw = shardwise;

void watch(sw::module_tracker& tracker) {
#ifdef SHARDWISE_FAIL
  const auto hook = [](const char*) {};
#else
  const auto hook = [](sw::tracked_module) {};
#endif
  tracker.register_user_hooks(hook, nullptr, nullptr, nullptr);
}
