// SPDX-License-Identifier: Apache-2.0
// The allocator that counts; see counter.hpp.
#include "counter.hpp"

#include <cerrno>
#include <cstddef>
#include <malloc.h>

#if defined(__GLIBC__) && !defined(SHARDWISE_TEST_SANITIZED)

namespace counter {
thread_local bool counting = false;
std::atomic<bool> counting_all{false};  // threads, ranks' streams among them
std::atomic<long> allocations{0};
thread_local bool weighing = false;
thread_local long held = 0, most_held = 0;
}  // namespace counter

namespace {
using counter::allocations;
using counter::counting;
using counter::counting_all;

void note() {
  if (counting || counting_all.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
}
void* weighed(void* p) {
  if (counter::weighing && p) {
    counter::held += static_cast<long>(malloc_usable_size(p));
    if (counter::held > counter::most_held) counter::most_held = counter::held;
  }
  return p;
}
void gone(void* p) {
  if (counter::weighing && p) counter::held -= static_cast<long>(malloc_usable_size(p));
}
}  // namespace

// operator new ends in these as well.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);

void* malloc(std::size_t n) {
  note();
  return weighed(__libc_malloc(n));
}
void* calloc(std::size_t n, std::size_t m) {
  note();
  return weighed(__libc_calloc(n, m));
}
void* realloc(void* p, std::size_t n) {
  note();
  gone(p);
  return weighed(__libc_realloc(p, n));
}
void free(void* p) {
  gone(p);
  __libc_free(p);
}
void* memalign(std::size_t alignment, std::size_t n) {
  note();
  return weighed(__libc_memalign(alignment, n));
}
void* aligned_alloc(std::size_t alignment, std::size_t n) {
  note();
  return weighed(__libc_memalign(alignment, n));
}
int posix_memalign(void** out, std::size_t alignment, std::size_t n) {
  note();
  *out = weighed(__libc_memalign(alignment, n));
  return *out ? 0 : ENOMEM;
}
}

#endif
