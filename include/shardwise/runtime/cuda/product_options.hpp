// SPDX-License-Identifier: Apache-2.0
// product_options: how a device's executor chooses among cuBLASLt's algorithms for a matrix product.
#pragma once

#include <cstdint>
#include <string>

namespace shardwise::inline v0_1 {

// measured: each shape's candidates are timed on this device when an executor is made, and the fastest is kept, for the process
//   and in a file: equal programs give equal bits as long as they find the same choices.
// deterministic: the one that cuBLASLt names first, which depends on device, library and shape alone.
// Whichever: no algorithm that adds parts in the order in which they end, and none that rounds them to the element type before.
enum class product_choice : std::uint8_t { measured, deterministic };

struct product_options {
  product_choice choice = product_choice::measured;
  double seconds = 10;      // spent on measuring at most, by one executor; further shapes get the deterministic choice
  bool keeps = true;        // whether what was measured is read from and written to a file
  std::string folder = "";  // of that file; empty: SHARDWISE_PRODUCT_CACHE, else shardwise below the user's cache folder
};

// What an executor's start took of its products.
struct product_report {
  int shapes = 0;      // met
  int measured = 0;    // by this executor
  int remembered = 0;  // measured before: by this process or in the file
  int candidates = 0;  // algorithms timed
  double seconds = 0;  // for all of this
};

}  // namespace shardwise::inline v0_1
