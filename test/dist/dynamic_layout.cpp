// SPDX-License-Identifier: Apache-2.0
// optimize_layout where a run decides the batch: one turned program serves every batch from 0 to its bound, and two sizes whose product the
// batch is; on one, two and three ranks, short and empty ones too, the values are those without the pass, bit by bit.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <vector>

#include <shardwise/pass/layout/layout.hpp>
#include <shardwise/shardwise.hpp>

namespace {

namespace sw = shardwise;
using options = sw::convolution_options;

template <int N>
struct images_over : sw::axis<N> {};

// Windows, a function of elements, a depthwise convolution and one of pixels; Folds: the batch is a product of the first two dims.
template <bool Folds>
struct network {
  constexpr auto operator()(const auto& x, const auto& a, const auto& b, const auto& c) const {
    const auto images = [&] {
      if constexpr (Folds) return sw::flatten<0, 1>(x);
      else return x;
    }();
    const auto y = sw::relu(sw::conv2d<options{.stride = 2, .padding = 1}>(images, a));
    return sw::conv2d(sw::conv2d<options{.padding = "same", .groups = 32}>(y, b), c) + y;
  }
};
template <int Ranks, class Shape, bool Folds, class... P>
using step =
    sw::gradient_step<network<Folds>, sw::mesh<images_over<Ranks>>,
                      sw::inputs<sw::input_tensor<float, Shape, sw::on<images_over<Ranks>, sw::shard<0>>>,
                                 sw::input_tensor<float, sw::shape<32, 3, 3, 3>, sw::on<images_over<Ranks>, sw::reduced>>,
                                 sw::input_tensor<float, sw::shape<32, 1, 3, 3>, sw::on<images_over<Ranks>, sw::reduced>>,
                                 sw::input_tensor<float, sw::shape<32, 32, 1, 1>, sw::on<images_over<Ranks>, sw::reduced>>>,
                      sw::wrt<0, 1, 2, 3>, sw::pipeline<P...>>;
template <int Ranks, class... P>
using batches = step<Ranks, sw::shape<sw::dyn<17>, 3, 6, 6>, false, P...>;
template <int Ranks, class... P>
using folded = step<Ranks, sw::shape<sw::dyn<5>, sw::dyn<4, 1>, 3, 6, 6>, true, P...>;

using forced = sw::optimize_layout<sw::layout_mode::force>;
template <std::int64_t... N>
using expecting = sw::optimize_layout<sw::layout_mode::automatic, sw::weight_storage::as_declared, sw::whole_graph,
                                      sw::convolution_kernels::built_in, sw::expected_sizes<N...>>;

template <class Step>
constexpr bool is_turned = [] {
  for (int i = 0; i < Step::program.node_count; ++i)
    if (const sw::spec& s = Step::program.spec_of(i); sw::is_channels_last(s) && !sw::is_contiguous(s)) return true;
  return false;
}();
static_assert(is_turned<batches<1, forced>> && is_turned<batches<3, forced>> && is_turned<folded<2, forced>>);
static_assert(!sw::verify(batches<3, forced>::program) && !sw::verify(folded<2, forced>::program));
// What the caller sees is stored as it was.
static_assert([] {
  using turned = batches<2, forced>;
  for (int k = 0; k < turned::program.output_count; ++k)
    if (!sw::is_contiguous(turned::program.spec_of(turned::program.outputs[k]))) return false;
  return true;
}());
// Each decision is one of a size; a graph that is left alone is the one that it was.
static_assert(is_turned<batches<1, expecting<17>>> == expecting<17>::decide(batches<1>::program).channels_last);
static_assert(expecting<4, 3>::decide(folded<1>::program).at == sw::run_sizes(4, 3));
static_assert(sw::optimize_layout<>::decide(folded<1>::program).at == sw::run_sizes(5, 4));

// The outputs and gradients of runs of so many images, rank after rank, as bits.
template <class Step, class... Sizes>
std::vector<std::uint32_t> bits_of(const std::vector<std::tuple<Sizes...>>& sizes) {
  std::vector<std::vector<std::uint32_t>> of(static_cast<std::size_t>(Step::mesh_type::size));
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step, std::remove_cvref_t<decltype(rank)>> run(rank, sw::executor_checks::poison);
    const std::size_t whole[] = {108, 32 * 27, 32 * 9, 32 * 32};
    for (const auto& n : sizes) {
      const std::size_t images = std::apply(
          [&](auto... each) {
            run.resize(each...);
            return static_cast<std::size_t>((each * ... * 1));
          },
          n);
      for (int k = 0; k < 4; ++k) {
        std::vector<float> x(whole[k] * (k == 0 ? images : 1));
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.9F * static_cast<float>(i) + static_cast<float>(k));
        run.set_input(k, x);
      }
      run.run(sw::step_env{});
      for (int k = 0; k < 5; ++k) {
        const auto block = run.template output<float>(k);
        for (std::size_t i = 0; i < block.size(); ++i)
          of[static_cast<std::size_t>(rank.index())].push_back(std::bit_cast<std::uint32_t>(block[i]));
      }
    }
  });
  std::vector<std::uint32_t> all;
  for (const auto& bits : of) all.insert(all.end(), bits.begin(), bits.end());
  return all;
}

template <int Ranks>
void every_batch() {
  std::vector<std::tuple<int>> sizes;
  for (int n = 17; n >= 0; --n) sizes.emplace_back(n * 5 % 18);  // up and down
  const auto plain = bits_of<batches<Ranks>>(sizes);
  CHECK(plain.size() > 17 * 108);
  CHECK(bits_of<batches<Ranks, forced>>(sizes) == plain);
  CHECK(bits_of<batches<Ranks, expecting<17>>>(sizes) == plain);
}
template <int Ranks>
void every_pair() {
  std::vector<std::tuple<int, int>> sizes;
  for (int n = 0; n <= 5; ++n)
    for (int m = 4; m >= 0; --m) sizes.emplace_back(n, m);
  CHECK(bits_of<folded<Ranks, forced>>(sizes) == bits_of<folded<Ranks>>(sizes));
}

}  // namespace

TEST_CASE("layout of run-time batches: 0 to 17 images have the bits that they have without the pass") {
  SUBCASE("1 rank") { every_batch<1>(); }
  SUBCASE("2 ranks") { every_batch<2>(); }
  SUBCASE("3 ranks") { every_batch<3>(); }
}
TEST_CASE("layout of run-time batches: so has a batch that is a product of two sizes") {
  SUBCASE("1 rank") { every_pair<1>(); }
  SUBCASE("2 ranks") { every_pair<2>(); }
  SUBCASE("3 ranks") { every_pair<3>(); }
}
