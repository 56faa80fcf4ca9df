// SPDX-License-Identifier: Apache-2.0
// Placements: what each rank of a mesh holds of one tensor, and what it costs to have it otherwise.

#include <cstdio>
#include <string>

#include <shardwise/shardwise.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;  // four ranks; the last axis is the fastest: ranks 0 and 1 differ on tp

// Eight numbers. An axis that is not named is replicate.
template <class... Placements>
using numbers = sw::dtensor_of<float, sw::shape<8>, mesh, Placements...>;

using whole = numbers<>;
using rows = numbers<sw::on<dp, sw::shard<0>>>;
using quarters = numbers<sw::on<dp, sw::shard<0>>, sw::on<tp, sw::shard<0>>>;            // dp splits, then tp
using strided = numbers<sw::on<dp, sw::strided_shard<0, 2>>, sw::on<tp, sw::shard<0>>>;  // tp splits, then dp
using uneven = sw::dtensor_of<float, sw::shape<5>, mesh, sw::on<tp, sw::shard<0>>>;      // chunks of ceil(5 / 2)
using heads = sw::dtensor_of<float, sw::shape<12>, mesh, sw::on<tp, sw::shard<0, 4>>>;   // by whole heads of 4
using summands = numbers<sw::on<tp, sw::partial<>>>;                                     // their sum is the tensor

// What a change of placement sends is a constant: payload bytes of the busiest rank.
static_assert(sw::redistribution<whole, rows>::bytes == 0);          // everyone has its rows already
static_assert(sw::redistribution<rows, whole>::bytes == 4 * 4);      // all-gather: four floats to the other rank
static_assert(sw::redistribution<summands, whole>::bytes == 8 * 4);  // all-reduce: a half there, a half back
static_assert(sw::redistribution<summands, numbers<sw::on<tp, sw::shard<0>>>>::bytes == 4 * 4);  // reduce-scatter

// A tensor of 0, 1, 2, ... placed as Tensor says, as the ranks hold it.
template <class Tensor>
void show(const char* name) {
  std::string line[mesh::size];
  sw::launch<mesh>([&](auto& rank) {
    const sw::eager on(rank);
    std::vector<float> all(static_cast<std::size_t>(Tensor::sp.extent[0]));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(i);
    const auto x = Tensor::distribute(on, all);
    for (const float v : x.to_local().data) line[rank.index()] += " " + std::to_string(static_cast<int>(v));
  });
  std::printf("%-42s %s |%s |%s |%s\n", name, line[0].c_str(), line[1].c_str(), line[2].c_str(), line[3].c_str());
}

int main() {
  show<rows>("shard<0> on dp");
  show<quarters>("shard<0> on dp and on tp");
  show<strided>("strided_shard<0, 2> on dp, shard<0> on tp");
  show<uneven>("five elements, shard<0> on tp");
  show<heads>("shard<0, 4> on tp");
  show<summands>("partial<> on tp");
}
