// SPDX-License-Identifier: Apache-2.0
// What a fully sharded step of 12 layers of width 64 keeps and needs, on 1, 2, 4 and 8 ranks, beside the formula of the model's
// numbers (test/support/fsdp_memory.hpp): constants of the compiled program; nothing runs.
//   bench_fsdp_memory [--json]
#include <fsdp_memory.hpp>

#include <cstdio>
#include <cstring>
#include <utility>

namespace {

using namespace test::fsdp;

long long number(std::int64_t n) { return static_cast<long long>(n); }

template <int Ranks>
void row(bool json) {
  using step = deep_in_shards<Ranks>;
  using formula = deep_formula<Ranks>;
  constexpr std::int64_t persistent = step::memory::value.persistent_end - step::memory::value.workspace;
  std::printf(json ? "{\"ranks\":%d,\"persistent\":%lld,\"shards\":%lld,\"peak\":%lld,\"at_once\":%lld,\"promised\":%lld}\n"
                   : "| %d | %lld | %lld | %lld | %lld | %lld |\n",
              Ranks, number(persistent), number(formula::parts(3)), number(step::peak_bytes), number(formula::at_once),
              number(formula::promised));
}
// Where the program's memory is fullest.
template <int Ranks>
void parts(bool json) {
  const auto& use = deep_in_shards<Ranks>::memory_use::value;
  std::printf(json ? "{\"ranks\":%d" : "| %d |", Ranks);
  for (int k = 0; k < shardwise::memory_kinds; ++k) {
    if (json) std::printf(",\"%s\":%lld", name_of(static_cast<shardwise::memory_kind>(k)), number(use.kind[k]));
    else std::printf(" %lld |", number(use.kind[k]));
  }
  std::printf(json ? "}\n" : "\n");
}

template <int... Ranks>
void show(bool json, std::integer_sequence<int, Ranks...>) {
  if (!json)
    std::printf(
        "| ranks | kept | its shards, by the formula | peak | there at once, by the formula | promised |\n"
        "|---|---|---|---|---|---|\n");
  (row<Ranks>(json), ...);
  if (!json) {
    std::printf("\n| ranks |");
    for (int k = 0; k < shardwise::memory_kinds; ++k) std::printf(" %s |", name_of(static_cast<shardwise::memory_kind>(k)));
    std::printf("\n|---|");
    for (int k = 0; k < shardwise::memory_kinds; ++k) std::printf("---|");
    std::printf("\n");
  }
  (parts<Ranks>(json), ...);
}

}  // namespace

int main(int argc, char** argv) {
  const bool json = argc == 2 && std::strcmp(argv[1], "--json") == 0;
  if (argc > 1 && !json) {
    std::fprintf(stderr, "usage: %s [--json]\n", argv[0]);
    return 2;
  }
  show(json, std::integer_sequence<int, 1, 2, 4, 8>());
}
