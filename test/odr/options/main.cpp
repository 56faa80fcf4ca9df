// SPDX-License-Identifier: Apache-2.0
// Translation units compiled with different options in one program: each does what its own options say. An exception of the
// library is caught that a shared object throws.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include <shardwise/runtime/failures.hpp>

#include "unit.hpp"

// The signal that ends a process which calls f; 0: none does.
static int signal_of(void (*f)()) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    f();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static int wrong = 0;
static void check(bool good, const char* what) {
  std::printf("%s: %s\n", good ? "ok" : "WRONG", what);
  wrong += good ? 0 : 1;
}

int main() {
  check(signal_of(drop_in_checked) == SIGABRT, "the checked unit ends where a pending tensor is dropped");
  check(signal_of(drop_in_unchecked) == 0, "the unchecked one goes on");
  check(products_with_blas() == 2, "the unit with CBLAS multiplies by it, once on each rank");
  check(products_built_in() == 0, "the other one by the library's own product");
  bool caught = false;
  try {
    fail_in_shared();
  } catch (const shardwise::rank_failed&) {
    caught = true;
  } catch (...) {
  }
  check(caught, "an exception of the library, thrown in a shared object, is caught by its type");
  return wrong;
}
