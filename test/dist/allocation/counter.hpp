// SPDX-License-Identifier: Apache-2.0
// The allocations of this executable, counted where counter.cpp replaces the allocator, while a thread's `counting` is set; and of a
// thread, while `weighing` is, what it holds of what it has allocated since, and the most that was.
#pragma once

#include <atomic>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHARDWISE_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SHARDWISE_TEST_SANITIZED 1
#endif
#endif

namespace counter {
extern thread_local bool counting;
extern std::atomic<bool> counting_all;  // of all threads
extern std::atomic<long> allocations;
extern thread_local bool weighing;
extern thread_local long held, most_held;  // bytes
}  // namespace counter
