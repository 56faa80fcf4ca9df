// SPDX-License-Identifier: Apache-2.0
// mixed<bf16> and a small language model: near float, and near itself on one rank, under tensor parallelism, sequence parallelism, in
// shards, with checkpoints, in pieces, with norms in float; and the master weights are floats.
#include <sharded_gpt.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace {

namespace sw = shardwise;
namespace gpt = test::gpt;
using sw::bf16;
using sw::mixed;

constexpr int steps = 4;
template <class Plan, class... More>
struct added;
template <class... E, class... More>
struct added<sw::plan<E...>, More...> {
  using type = sw::plan<E..., More...>;
};
template <class Dp, class Tp>
struct tensor_mixed : added<typename gpt::tensor_parallel<Dp, Tp>::type, mixed<bf16>> {};
template <class Dp, class Tp>
struct sequence_mixed : added<typename gpt::sequence_parallel<Dp, Tp>::type, mixed<bf16>> {};
template <class Dp, class Tp>
struct shards_mixed : gpt::fully_sharded<Dp, Tp, mixed<bf16>> {};
template <class Dp, class Tp>
struct checkpoints_mixed : gpt::fully_sharded<Dp, Tp, mixed<bf16>, sw::at<"layers.*", sw::checkpoint>> {};
template <class Dp, class Tp>
struct norms_in_float
    : gpt::fully_sharded<Dp, Tp, mixed<bf16>, sw::at<"layers.*.*_norm", mixed<float, sw::output_dtype<bf16>>>> {};
template <class Dp, class Tp>
struct pieces_mixed
    : added<typename gpt::tensor_parallel<Dp, Tp>::type, mixed<bf16>, sw::accumulate<2, sw::whole_inputs<2>>> {};

const std::vector<float>& float_losses() {
  static const std::vector<float> l = gpt::train<gpt::step<float, 1, 1>>(steps).losses[0];
  return l;
}
// Largest distance of losses, on any rank.
template <class Step>
double from_losses(const std::vector<float>& want, const gpt::history<float>& h) {
  double most = 0;
  for (const auto& own : h.losses)
    for (std::size_t s = 0; s < own.size(); ++s) most = std::max(most, std::abs(double{own[s]} - double{want[s]}));
  return most;
}
template <int D, int T, template <class, class> class Plan>
void check_gpt(const std::vector<float>& alone) {
  CAPTURE(D);
  CAPTURE(T);
  using run = gpt::step<float, D, T, Plan>;
  const auto h = gpt::train<run>(steps);
  CHECK(from_losses<run>(float_losses(), h) <
        0.02);  // of about 5.6: 8 bits of each of some dozen values, averaged over 64 rows
  CHECK(from_losses<run>(alone, h) < 0.01);
}
TEST_CASE("mixed: a language model under tensor parallelism, in shards, checkpointed and in pieces") {
  const std::vector<float> alone = gpt::train<gpt::step<float, 1, 1, tensor_mixed>>(steps).losses[0];
  CHECK_FALSE(alone == float_losses());
  check_gpt<2, 1, tensor_mixed>(alone);
  check_gpt<2, 2, tensor_mixed>(alone);
  check_gpt<1, 2, sequence_mixed>(alone);
  check_gpt<2, 2, shards_mixed>(alone);
  check_gpt<2, 1, norms_in_float>(alone);
  check_gpt<2, 1, pieces_mixed>(alone);
  // what is computed again is the same
  const auto shards = gpt::train<gpt::step<float, 2, 1, shards_mixed>>(steps);
  const auto again = gpt::train<gpt::step<float, 2, 1, checkpoints_mixed>>(steps);
  CHECK(shards.losses == again.losses);
  CHECK(shards.parameters == again.parameters);
}

TEST_CASE("mixed: parameters are stored in float") {
  using run = gpt::step<float, 2, 1, shards_mixed>;
  const auto h = gpt::train<run>(1);
  int between = 0;
  for (const auto& p : h.parameters)
    for (const float x : p) between += static_cast<float>(bf16(x)) != x ? 1 : 0;
  CHECK(between > 10000);  // numbers that bf16 does not have
}

}  // namespace
