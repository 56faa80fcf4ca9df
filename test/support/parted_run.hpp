// SPDX-License-Identifier: Apache-2.0
// A program's calls whole and in parts, side by side: every byte of the two arenas, but for scratch, must be equal after each call.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <shardwise/shardwise.hpp>
#include <string>
#include <type_traits>
#include <vector>

namespace test::parted {

namespace sw = shardwise;

struct alignas(64) line {
  std::byte bytes[64];
};
inline std::span<std::byte> bytes_of(std::vector<line>& memory) {
  return {memory.data()->bytes, memory.size() * sizeof(line)};
}

// Numbers around zero, also after rounding to two bytes; indices below 7.
template <class T>
void fill_with(std::span<T> x, int salt) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t n = i * 7919U + static_cast<std::size_t>(salt) * 131U + i / 17;
    if constexpr (std::is_same_v<T, std::int32_t>) x[i] = static_cast<T>(n % 7);
    else x[i] = T(static_cast<float>(n % 401U) / 100.0F - 2.0F);
  }
}
template <class Executor>
void fill_inputs(Executor& ex) {
  const auto& g = Executor::program();
  for (int id = 0; id < g.node_count; ++id) {
    if (g.nodes[id].op != sw::op_code::input) continue;
    const int at = static_cast<int>(sw::attributes_of<sw::leaf_attributes>(g.nodes[id].a).index);
    switch (g.spec_of(id).type) {
      case sw::dtype::f32: fill_with(ex.template input<float>(at), at); break;
      case sw::dtype::f64: fill_with(ex.template input<double>(at), at); break;
      case sw::dtype::bf16: fill_with(ex.template input<sw::bfloat16>(at), at); break;
      case sw::dtype::i32: fill_with(ex.template input<std::int32_t>(at), at); break;
      case sw::dtype::f16:
      case sw::dtype::i64:
      case sw::dtype::boolean: FAIL("no such input here");
    }
  }
}

// How often calls of each operation were cut.
struct cuts {
  std::array<int, 256> of{};
  int operator()(sw::op_code op) const { return of[static_cast<std::size_t>(op)]; }
};

template <class Step>
struct program_of {
  static constexpr const auto& value = Step::program;
};

// One run of Step, by parts that are as small as they can be, the last one first.
template <class Step, class Fill>
cuts run_in_parts(int threads, const sw::step_env& env, Fill&& fill) {
  using mesh = typename sw::program_traits<Step>::mesh_type;
  using rank_type = sw::thread_rank<mesh>;
  using tag = program_of<Step>;
  using table = sw::runtime::kernel_table<tag, rank_type>;
  cuts seen;
  sw::launch<mesh>([&](auto& rank) {
    const std::size_t lines = static_cast<std::size_t>(Step::peak_bytes) / sizeof(line) + 1;
    std::vector<line> memory(lines), other(lines), scratch(lines);
    sw::executor<Step, rank_type> a(rank, bytes_of(memory)), b(rank, bytes_of(other));
    fill(a);
    fill(b);
    const std::size_t first = static_cast<std::size_t>(Step::memory::value.workspace);
    for (std::size_t at = 0; at < a.calls().size(); ++at) {
      const sw::runtime::call &x = a.calls()[at], &y = b.calls()[at];
      table::of(x.node)(x, env, rank);
      const sw::host::parts how = sw::host::parts_of(y, table::cut_of(y.node), threads, 1);
      if (how.count == 1) {
        table::of(y.node)(y, env, rank);
      } else {
        for (int part = how.count; part-- > 0;) {
          std::memset(scratch.data(), 0xFF, lines * sizeof(line));
          table::of(y.node)(sw::host::part_of(y, how, part, scratch.data()), env, rank);
        }
        ++seen.of[static_cast<std::size_t>(tag::value.nodes[y.node].op)];
      }
      const bool same =
          std::memcmp(bytes_of(memory).data() + first, bytes_of(other).data() + first, lines * sizeof(line) - first) == 0;
      const std::string name = sw::name_of(tag::value.nodes[y.node].op);
      CAPTURE(name);
      CAPTURE(threads);
      CAPTURE(how.count);
      REQUIRE(same);
    }
  });
  return seen;
}
template <class Step>
cuts run_in_parts(int threads) {
  return run_in_parts<Step>(threads, {}, [](auto& ex) { fill_inputs(ex); });
}

}  // namespace test::parted
