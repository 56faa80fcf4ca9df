// SPDX-License-Identifier: Apache-2.0
// A language model trained with checkpoints has the losses and parameters that it has without, bit for bit, on any mesh; what is sent
// more is what the backward pass reads of the forward pass's collectives.
#include <shardwise/pass/fuse/fuse.hpp>

#include <doctest/doctest.h>

#include <gpt.hpp>
#include <kept_bytes.hpp>

namespace {

namespace sw = shardwise;
using namespace test::gpt;
using sw::program_phase;
using sw::transition;

constexpr int steps = 3;

template <class Plan, class... More>
struct with_entries;
template <class... E, class... More>
struct with_entries<sw::plan<E...>, More...> {
  using type = sw::plan<E..., More...>;
};
template <template <class, class> class Plan, class... More>
struct with {
  template <class Dp, class Tp>
  using plan = with_entries<typename Plan<Dp, Tp>::type, More...>;
};

using each_layer = sw::at<"layers.*", sw::checkpoint>;
using but_products = sw::at<"layers.*", sw::checkpoint_except<"matmul", "collectives">>;

template <int D, int N, class Sizes, template <class, class> class Plan, class... Checkpoint>
struct steps_of {
  using plain = step<double, D, N, Plan, Sizes>;
  using checked = step<double, D, N, with<Plan, Checkpoint...>::template plan, Sizes>;
};

template <class Plain, class Checked>
void check_equal() {
  if (!test::place::has(Plain::mesh_type::size)) return;
  static_assert(test::kept_for_backward<Checked>() < test::kept_for_backward<Plain>());
  const auto want = train<Plain>(steps), got = train<Checked>(steps, sw::executor_checks::poison);
  CHECK(got.losses == want.losses);
  CHECK(got.parameters == want.parameters);
  CHECK(want.losses[0].front() > want.losses[0].back());
}
template <int D, int N, class Sizes, template <class, class> class Plan, class... Checkpoint>
void check() {
  using both = steps_of<D, N, Sizes, Plan, Checkpoint...>;
  check_equal<typename both::plain, typename both::checked>();
}

TEST_CASE("checkpoint: training is the same on one rank") { check<1, 1, dropout_sizes, tensor_parallel, each_layer>(); }
TEST_CASE("checkpoint: training is the same where the batch is split, evenly or not") {
  check<2, 1, dropout_sizes, tensor_parallel, each_layer>();
  check<3, 1, sizes, tensor_parallel, each_layer>();
  check<8, 1, sizes, tensor_parallel, each_layer>();
}
TEST_CASE("checkpoint: training is the same where layers are split") {
  check<1, 2, dropout_sizes, tensor_parallel, each_layer>();
  check<2, 2, sizes, tensor_parallel, but_products>();
  check<1, 4, sizes, sequence_parallel, each_layer>();
}

// Bytes in the backward pass that the checkpoints add, by kind, over the tensor-parallel axis.
template <class Both, class Axis>
constexpr std::int64_t more_bytes(transition kind) {
  return Both::checked::template comm_bytes_of<Axis>(kind, program_phase::backward) -
         Both::plain::template comm_bytes_of<Axis>(kind, program_phase::backward);
}

TEST_CASE("checkpoint: the backward pass repeats the collectives that it reads") {
  constexpr transition ar = transition::all_reduce, ag = transition::all_gather, rs = transition::reduce_scatter;
  {
    using both = steps_of<1, 2, sizes, tensor_parallel, each_layer>;
    // the attention's sum of each layer; of the feed-forward's nothing in the layer's backward pass reads
    constexpr std::int64_t all_reduce = batch * sizes::time * sizes::width * 8;  // 2 B (p - 1) / p
    static_assert(more_bytes<both, tp<2>>(ar) == sizes::layers * all_reduce);
    static_assert(both::checked::comm_bytes_of<tp<2>>(transition::none, program_phase::forward) ==
                  both::plain::comm_bytes_of<tp<2>>(transition::none, program_phase::forward));
  }
  {
    using both = steps_of<1, 4, sizes, sequence_parallel, each_layer>;
    constexpr std::int64_t shard = batch * sizes::time * sizes::width * 8 / 4;
    // gathered before both parts of a layer, scattered between them
    static_assert(more_bytes<both, tp<4>>(ag) == sizes::layers * 2 * 3 * shard);
    static_assert(more_bytes<both, tp<4>>(rs) == sizes::layers * 3 * shard);
  }
  {
    using both = steps_of<2, 2, sizes, tensor_parallel, but_products>;
    static_assert(more_bytes<both, tp<2>>(transition::none) == 0);
    static_assert(more_bytes<both, dp<2>>(transition::none) == 0);
  }
}

}  // namespace
