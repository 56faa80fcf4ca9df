// SPDX-License-Identifier: Apache-2.0
// The allocator that counts; see counter.hpp.
#include "counter.hpp"

#include <cerrno>
#include <cstddef>

#if defined(__GLIBC__) && !defined(SHARDWISE_TEST_SANITIZED)

namespace counter {
thread_local bool counting = false;
std::atomic<bool> counting_all{false};  // threads, ranks' streams among them
std::atomic<long> allocations{0};
}  // namespace counter

namespace {
using counter::allocations;
using counter::counting;
using counter::counting_all;

void note() {
  if (counting || counting_all.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
}
}  // namespace

// operator new ends in these as well.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t n) {
  note();
  return __libc_malloc(n);
}
void* calloc(std::size_t n, std::size_t m) {
  note();
  return __libc_calloc(n, m);
}
void* realloc(void* p, std::size_t n) {
  note();
  return __libc_realloc(p, n);
}
void* memalign(std::size_t alignment, std::size_t n) {
  note();
  return __libc_memalign(alignment, n);
}
void* aligned_alloc(std::size_t alignment, std::size_t n) {
  note();
  return __libc_memalign(alignment, n);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t n) {
  note();
  *out = __libc_memalign(alignment, n);
  return *out ? 0 : ENOMEM;
}
}

#endif
