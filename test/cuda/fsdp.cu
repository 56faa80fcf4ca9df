// SPDX-License-Identifier: Apache-2.0
// Parameters in shards on GPUs: a language model gives one host thread's losses, and the programs of the suites of FSDP under a
// compiler give those of threads. One GPU is an axis of one rank, on which every collective is a copy.
#define SHARDWISE_TEST_DEVICES 1
#include <equivalence.hpp>
#include <fsdp_compile.hpp>
#include <sharded_gpt.hpp>

#include <shardwise/pass/communication/prefetch.hpp>

namespace {

namespace sw = shardwise;
using namespace test;

template <class Dp, class Tp>
struct sharded : gpt::fully_sharded<Dp, Tp> {};

TEST_CASE("fsdp: gpt in float, an axis of one gpu") {
  gpt::check_equivalence<float, 1, 1, sharded>();
  gpt::check_equivalence<float, 1, 1, gpt::checkpointed_shards>();
}
TEST_CASE("fsdp: gpt in float in shards of two gpus") {
  gpt::check_equivalence<float, 2, 1, sharded>();
  gpt::check_equivalence<float, 2, 1, gpt::checkpointed_shards>();
}
TEST_CASE("fsdp: gpt in float in shards of two gpus beside two of tensor parallelism") {
  gpt::check_equivalence<float, 2, 2, sharded>();
}

// Prefetched and as written: the same bits.
template <int D>
void check_prefetched() {
  if (!place::has(D)) return;
  using plain = gpt::step<float, D, 1, sharded, gpt::sizes, place, sw::pipeline<>>;
  using ahead = gpt::step<float, D, 1, sharded, gpt::sizes, place, sw::pipeline<sw::prefetch<2>>>;
  const auto want = gpt::train<plain>(5), got = gpt::train<ahead>(5);
  CHECK(want.losses == got.losses);
  CHECK(want.parameters == got.parameters);
}
TEST_CASE("fsdp: prefetched gathers keep the bits on one gpu") { check_prefetched<1>(); }
TEST_CASE("fsdp: prefetched gathers keep the bits on two gpus") { check_prefetched<2>(); }

// --- the compiled suite's programs ----------------------------------------------------------------------------------------

struct dropping : transformer_sizes {
  static constexpr double dropout = 0.1;
};
template <class B>
using dropping_transformer = transformer<dropping>::model<B>;

template <int D>
struct sum_of_logits {
  using inputs = sw::inputs<fsdp::split_rows_t<std::int32_t, sw::shape<4, dropping::time>, fsdp::batch_axes<fsdp::dp<D>>>,
                            sw::input_tensor<std::int32_t, sw::shape<dropping::time>>>;
  constexpr auto operator()(const auto& m, const auto& tokens, const auto& positions) const {
    return sw::sum(m(tokens, positions));
  }
};

template <int D>
using group = sw::fully_shard<fsdp::dp<D>, sw::average_gradients>;
template <int D>
using layered = sw::plan<group<D>, sw::at<"layers.*", group<D>>>;
template <int D, class Pipeline, class Backend>
using mlp = sw::train_step<fsdp::three_linears, fsdp::scaled_sum<float, 4, fsdp::batch_axes<fsdp::dp<D>>>,
                           sw::plan<group<D>>, sw::mesh<fsdp::dp<D>>, sw::sgd<>, Pipeline, float, Backend>;
template <int D, class Pipeline, class Backend>
using tied = sw::train_step<dropping_transformer, sum_of_logits<D>, layered<D>, sw::mesh<fsdp::dp<D>>, sw::sgd<>, Pipeline,
                            float, Backend>;

template <class Step, class Place>
std::vector<double> losses(const auto& feed) {
  std::vector<double> all(fsdp::compiled_iterations);
  Place::template launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(rank);
    ex.initialise(7);
    for (int s = 1; s <= fsdp::compiled_iterations; ++s) {
      feed(ex, s);
      sw::step_env env = fsdp::compile_env(s);
      env.lr = 1e-3;
      ex.run(env);
      if (rank.index() == 0) all[static_cast<std::size_t>(s) - 1] = static_cast<double>(ex.loss());
    }
  });
  return all;
}
template <template <int, class, class> class Step, int D, class Pipeline>
void check_beside_threads(const auto& feed) {
  const auto want = losses<Step<D, Pipeline, sw::host_backend>, on_threads>(feed);
  const auto got = losses<Step<D, Pipeline, sw::cuda_backend>, on_devices>(feed);
  for (std::size_t s = 0; s < want.size(); ++s) {
    CAPTURE(s);
    CHECK(std::abs(got[s] - want[s]) <= 1e-4 + 1e-5 * std::abs(want[s]));  // sums of up to 4 x 16 x 128 numbers of order 1
  }
  CHECK(want.front() != want.back());
}
template <int D>
void check_programs() {
  if (!place::has(D)) return;
  const auto rows = [](auto& ex, int s) {
    std::vector<float> x;
    for (int i = 0; i < 4 * 16; ++i) x.push_back(std::sin(static_cast<float>(7 * s + i)));
    ex.set_input(0, x);
  };
  check_beside_threads<mlp, D, fsdp::aot_eager>(rows);
  check_beside_threads<mlp, D, fsdp::decomp_partition>(rows);
  check_beside_threads<mlp, D, fsdp::inductor>(rows);
  const auto text = [](auto& ex, int s) {
    std::vector<std::int32_t> tokens, positions;
    for (int i = 0; i < 4 * dropping::time; ++i) tokens.push_back((11 * s + 5 * i) % dropping::vocabulary);
    for (int i = 0; i < dropping::time; ++i) positions.push_back(i);
    ex.set_input(0, tokens);
    ex.set_input(1, positions);
  };
  check_beside_threads<tied, D, fsdp::aot_eager>(text);
  check_beside_threads<tied, D, fsdp::decomp_partition>(text);
  check_beside_threads<tied, D, fsdp::inductor>(text);
}
TEST_CASE("fsdp: compiled programs on an axis of one gpu give the losses of a thread") { check_programs<1>(); }
TEST_CASE("fsdp: compiled programs on two gpus give the losses of two threads") { check_programs<2>(); }

}  // namespace
