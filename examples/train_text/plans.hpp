// SPDX-License-Identifier: Apache-2.0
// How the ranks share the work of train_text: a mesh and a plan for each --parallel, and what each costs for four ranks. On host
// threads there are four; GPUs are one, two, four or eight, as many as the program is built for.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <shardwise/pass/communication/fuse_collectives.hpp>

#include "model.hpp"

namespace train_text {

using size = config</*batch*/ 16, /*time*/ 128, /*width*/ 128, /*heads*/ 4, /*layers*/ 4>;

inline constexpr int host_ranks = 4;

// Of the busiest of four ranks that compute in float: bytes sent in a step, and bytes of memory. Each plan's source asserts its row.
struct plan_costs {
  std::string_view name, meaning;
  std::int64_t sent, peak;
};
inline constexpr std::array all_plans{
    plan_costs{"ddp+tp", "the batch over 2 ranks, every layer's features over 2", 10'178'568, 29'976'576},
    plan_costs{"ddp", "the batch over 4 ranks, gradients summed in buckets", 5'054'988, 32'825'408},
    plan_costs{"fsdp", "the same, parameters and optimizer in shards, gathered layer by layer", 7'417'368, 23'117'056},
    plan_costs{"hsdp", "shards over 2 ranks, and 2 copies of them", 6'629'900, 25'644'544},
    plan_costs{"tp", "every layer's features over 4 ranks", 25'165'836, 39'085'568},
    plan_costs{"fsdp+tp", "shards over 2 ranks, every layer's features over 2", 10'967'056, 27'833'344},
};

namespace plans {

template <int N>
struct dp : sw::axis<N> {};  // parts of the batch
template <int N>
struct tp : sw::axis<N> {};  // parts of the features
template <int N>
struct copies : sw::axis<N> {};

template <int Ranks>
struct ddp_tp {
  static constexpr std::string_view name = "ddp+tp";
  static constexpr std::array axes{"dp", "tp"};
  static constexpr int parts = Ranks < 4 ? 1 : 2;  // of the features; small meshes split the batch alone
  using mesh = sw::mesh<dp<Ranks / parts>, tp<parts>>;
  using plan = megatron_plan<size, dp<Ranks / parts>, tp<parts>>;
  using task = next_byte<size, dp<Ranks / parts>>;
  using pipeline = sw::pipeline<>;
};
template <int Ranks>
struct ddp {
  static constexpr std::string_view name = "ddp";
  static constexpr std::array axes{"dp"};
  using mesh = sw::mesh<dp<Ranks>>;
  using plan = sw::plan<sw::data_parallel<dp<Ranks>>>;
  using task = next_byte<size, dp<Ranks>>;
  using pipeline = sw::pipeline<sw::comm_fusion_in_place<25>>;
};
template <int Ranks>
struct fsdp {
  static constexpr std::string_view name = "fsdp";
  static constexpr std::array axes{"dp"};
  using mesh = sw::mesh<dp<Ranks>>;
  using shards = sw::fully_shard<dp<Ranks>>;
  using plan = sw::plan<shards, sw::at<"layers.*", shards>>;
  using task = next_byte<size, dp<Ranks>>;
  using pipeline = sw::pipeline<>;
};
template <int Ranks>
struct hsdp {
  static constexpr std::string_view name = "hsdp";
  static constexpr std::array axes{"copies", "dp"};
  static constexpr int many = Ranks < 2 ? 1 : 2;
  using mesh = sw::mesh<copies<many>, dp<Ranks / many>>;
  using shards = sw::fully_shard<dp<Ranks / many>, sw::replicate_over<copies<many>>>;
  using plan = sw::plan<shards, sw::at<"layers.*", shards>>;
  using task = next_byte<size, copies<many>, dp<Ranks / many>>;
  using pipeline = sw::pipeline<>;
};
template <int Ranks>
struct tp_only {
  static_assert(Ranks <= size::heads, "train_text: --parallel tp gives each rank a head or more: take ddp+tp on more ranks");
  static constexpr std::string_view name = "tp";
  static constexpr std::array axes{"tp"};
  using mesh = sw::mesh<tp<Ranks>>;
  using plan = megatron<size, tp<Ranks>>;
  using task = next_byte<size>;
  using pipeline = sw::pipeline<>;
};
template <int Ranks>
struct fsdp_tp {
  static constexpr std::string_view name = "fsdp+tp";
  static constexpr std::array axes{"dp", "tp"};
  static constexpr int parts = Ranks < 4 ? 1 : 2;
  using mesh = sw::mesh<dp<Ranks / parts>, tp<parts>>;
  using shards = sw::fully_shard<dp<Ranks / parts>>;
  using plan = megatron<size, tp<parts>, shards, sw::at<"layers.*", shards>>;
  using task = next_byte<size, dp<Ranks / parts>>;
  using pipeline = sw::pipeline<>;
};

}  // namespace plans

}  // namespace train_text
