// SPDX-License-Identifier: Apache-2.0
// initialise_block: a parameter's or a buffer's initial values on a host, in vectors.
#pragma once

#include <span>

#include <shardwise/runtime/host/isa.hpp>
#include <shardwise/runtime/host/kernel.hpp>
#include <shardwise/runtime/program/initial_values.hpp>
#include <shardwise/support/config.hpp>

SHARDWISE_UNFUSED_BEGIN

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

// One element, with the bits that it has in a block.
inline double initial_value(init_kind kind, double scale, std::uint64_t seed, std::uint32_t stream, std::int64_t index) {
  double x = 0;
  run_plainly([&] { x = runtime::initial_value<double>(kind, scale, seed, stream, index); });
  return x;
}

namespace initial {

// The last elements that lie side by side in the whole tensor too, as one dim.
inline std::int64_t run_of(const layout& l) {
  std::int64_t n = 1;
  if (!l.is_dense()) return 1;
  for (int d = l.rank - 1; d >= 0; --d) {
    n *= l.ext[d];
    if (l.ext[d] != l.global[d]) break;
  }
  return n;
}

template <init_kind Kind, class T>
void fill(T* o, std::int64_t n, double scale, std::uint64_t seed, std::uint32_t stream, std::int64_t first) {
  independent_loop<double>(n, [=](std::int64_t i) {
    o[i] = static_cast<T>(runtime::initial_value<double>(Kind, scale, seed, stream, first + i));
  });
}

}  // namespace initial

// The block's values from (seed, path, global element index) alone.
template <class T>
void initialise_block(std::span<T> values, const layout& l, init_kind kind, double scale, std::uint64_t seed,
                      std::string_view path) {
  const std::uint32_t stream = runtime::stream_of(path);
  const auto n = static_cast<std::int64_t>(values.size());
  if (n == 0) return;
  const std::int64_t run = initial::run_of(l);
  const auto all = [&](auto fill) {
    std::int64_t at[max_rank]{};
    for (std::int64_t i = 0; i < n; i += run) {
      std::int64_t place = 0;
      for (int d = 0; d < l.rank; ++d) place += at[d] * l.str[d];
      fill(values.data() + place, run, scale, seed, stream, global_index(l, at));
      std::int64_t below = 1;
      for (int d = l.rank - 1; d >= 0; --d) {
        if (below >= run && ++at[d] < l.ext[d]) break;
        at[d] = 0;
        below *= l.ext[d];
      }
    }
  };
  switch (kind) {
    case init_kind::zeros: return all(&initial::fill<init_kind::zeros, T>);
    case init_kind::ones: return all(&initial::fill<init_kind::ones, T>);
    case init_kind::normal: return all(&initial::fill<init_kind::normal, T>);
    case init_kind::uniform: return all(&initial::fill<init_kind::uniform, T>);
  }
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

SHARDWISE_UNFUSED_END
