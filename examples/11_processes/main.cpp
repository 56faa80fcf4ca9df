// SPDX-License-Identifier: Apache-2.0
// Several processes. On GPUs a rank is a process of its own where a launcher starts it: see main.cu. On hosts ranks are threads of one
// process; here each of them runs alone, without peers, as a process would: to see what it sends and needs before there are machines.

#include <cstdio>
#include <cstdlib>

#include <shardwise/shardwise.hpp>

#include "program.hpp"

// The rank that the environment names, as a launcher sets it; all of them, one after the other, where nothing is set.
int main() {
  const char* const named = std::getenv("RANK");
  const int first = named ? std::atoi(named) : 0, last = named ? first : mesh::size - 1;
  for (int r = first; r <= last; ++r)
    sw::launch_fake<mesh>(r, [](auto& rank) {
      rank.keep_log(true);
      program::train(rank, 1);  // its peers are taken to hold what it holds, so the loss is none of the program's
      std::printf("rank %d at dp %d, tp %d: %d collectives, bytes sent over dp %lld, over tp %lld\n", rank.index(),
                  rank.coordinate(0), rank.coordinate(1), static_cast<int>(rank.log().size()),
                  static_cast<long long>(rank.bytes_written(0)), static_cast<long long>(rank.bytes_written(1)));
    });
  std::printf("memory of a rank: %lld bytes\n", static_cast<long long>(program::step<sw::host_backend>::peak_bytes));
}
