// SPDX-License-Identifier: Apache-2.0
// How four ranks share the work of train_text: a mesh and a plan for each --parallel, and what each costs.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <shardwise/pass/communication/fuse_collectives.hpp>

#include "model.hpp"

namespace train_text {

using size = config</*batch*/ 16, /*time*/ 128, /*width*/ 128, /*heads*/ 4, /*layers*/ 4>;

// Of the busiest rank: bytes sent in a step, and bytes of memory. Each plan's source asserts its row.
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
struct copies : sw::axis<2> {};

struct ddp_tp {
  static constexpr std::string_view name = "ddp+tp";
  static constexpr std::array axes{"dp", "tp"};
  using mesh = sw::mesh<dp<2>, tp<2>>;
  using plan = megatron_plan<size, dp<2>, tp<2>>;
  using task = next_byte<size, dp<2>>;
  using pipeline = sw::pipeline<>;
};
struct ddp {
  static constexpr std::string_view name = "ddp";
  static constexpr std::array axes{"dp"};
  using mesh = sw::mesh<dp<4>>;
  using plan = sw::plan<sw::data_parallel<dp<4>>>;
  using task = next_byte<size, dp<4>>;
  using pipeline = sw::pipeline<sw::comm_fusion_in_place<25>>;
};
struct fsdp {
  static constexpr std::string_view name = "fsdp";
  static constexpr std::array axes{"dp"};
  using mesh = sw::mesh<dp<4>>;
  using shards = sw::fully_shard<dp<4>>;
  using plan = sw::plan<shards, sw::at<"layers.*", shards>>;
  using task = next_byte<size, dp<4>>;
  using pipeline = sw::pipeline<>;
};
struct hsdp {
  static constexpr std::string_view name = "hsdp";
  static constexpr std::array axes{"copies", "dp"};
  using mesh = sw::mesh<copies, dp<2>>;
  using shards = sw::fully_shard<dp<2>, sw::replicate_over<copies>>;
  using plan = sw::plan<shards, sw::at<"layers.*", shards>>;
  using task = next_byte<size, copies, dp<2>>;
  using pipeline = sw::pipeline<>;
};
struct tp_only {
  static constexpr std::string_view name = "tp";
  static constexpr std::array axes{"tp"};
  using mesh = sw::mesh<tp<4>>;
  using plan = megatron<size, tp<4>>;
  using task = next_byte<size>;
  using pipeline = sw::pipeline<>;
};
struct fsdp_tp {
  static constexpr std::string_view name = "fsdp+tp";
  static constexpr std::array axes{"dp", "tp"};
  using mesh = sw::mesh<dp<2>, tp<2>>;
  using shards = sw::fully_shard<dp<2>>;
  using plan = megatron<size, tp<2>, shards, sw::at<"layers.*", shards>>;
  using task = next_byte<size, dp<2>>;
  using pipeline = sw::pipeline<>;
};

}  // namespace plans

}  // namespace train_text
