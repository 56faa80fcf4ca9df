// SPDX-License-Identifier: Apache-2.0
// The example's training step: with fused kernels it starts a third of what it has operations, and explain says so.
#include <shardwise/shardwise.hpp>

#include <shardwise/io/explain.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>

#include <doctest/doctest.h>

#include <string>
#include <train_text/model.hpp>

namespace {

namespace sw = shardwise;
namespace tt = train_text;
using sw::op_code;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};

using size = tt::config<16, 128, 128, 4, 4>;
template <int D, int N, class Pipeline>
using step = sw::train_step<tt::gpt_of<size>::gpt, tt::next_byte<size, dp<D>>, tt::megatron_plan<size, dp<D>, tp<N>>,
                            sw::mesh<dp<D>, tp<N>>, sw::clip_norm<sw::adamw<true>>, Pipeline, float>;

template <int D, int N>
using plain = step<D, N, sw::pipeline<>>;
template <int D, int N>
using fused = step<D, N, sw::pipeline<sw::fuse_kernels>>;

template <int D, int N>
using merged = step<D, N, sw::pipeline<sw::merge_products, sw::fuse_kernels, sw::join_norm_adjoints>>;

template <class Step>
inline constexpr auto counts = sw::passes::kernel_calls(Step::program);
template <class Step>
constexpr int of(op_code op) {
  return counts<Step>.of[static_cast<int>(op)];
}

// One kernel for each operation, against what is started.
static_assert(counts<plain<1, 1>>.kernels == 427);
static_assert(3 * counts<fused<1, 1>>.launches <= counts<plain<1, 1>>.kernels);
// Nothing pointwise stands alone but the clip factor and the sum of two norms; what is left are products and reductions.
static_assert(of<fused<1, 1>>(op_code::add) == 1 && of<fused<1, 1>>(op_code::gelu_tanh) == 0 &&
              of<fused<1, 1>>(op_code::gelu_tanh_dx) == 0 && of<fused<1, 1>>(op_code::fused) == 0);
static_assert(of<fused<1, 1>>(op_code::einsum) == of<plain<1, 1>>(op_code::einsum));
static_assert(of<fused<1, 1>>(op_code::norm) == 9 && of<fused<1, 1>>(op_code::norm_stats) == 0);
// On 2 x 2 ranks reductions of gradients stand between sums of squares, and an all-reduce before each residual.
static_assert(counts<plain<2, 2>>.kernels == 427);
static_assert(2 * counts<fused<2, 2>>.launches < counts<plain<2, 2>>.kernels);
// Merged projections and joined adjoints of norms: a third of the launches, on one rank and on 2 x 2, where all-reduces
// stand between products and what would follow in their kernels. Each is a call of a kernel by the executor.
// Attention's three, forward, delta and adjoint, of four layers, stand beside all that.
constexpr int attention = 3 * 4;
static_assert(of<plain<1, 1>>(op_code::custom) == attention && of<merged<1, 1>>(op_code::custom) == attention);
static_assert(3 * (counts<merged<1, 1>>.launches - attention) <= counts<plain<1, 1>>.launches - attention);
static_assert(3 * (counts<merged<2, 2>>.launches - attention) <= counts<plain<2, 2>>.launches - attention);
// Of each three projections, of their weights' gradients and of what goes back and was added, one is left.
static_assert(of<merged<1, 1>>(op_code::einsum) == of<plain<1, 1>>(op_code::einsum) - 4 * 6);
static_assert(of<merged<1, 1>>(op_code::norm_dx_dw) == 9 && of<merged<1, 1>>(op_code::norm_dx) == 0 &&
              of<merged<1, 1>>(op_code::norm_dw_db) == 0);
// Values that lie side by side are kept as long as any of them.
static_assert(merged<1, 1>::peak_bytes <= plain<1, 1>::peak_bytes + plain<1, 1>::peak_bytes / 25);
static_assert(merged<2, 2>::peak_bytes <= plain<2, 2>::peak_bytes + plain<2, 2>::peak_bytes / 100);
// Memory does not pay for fused kernels.
static_assert(fused<1, 1>::peak_bytes <= plain<1, 1>::peak_bytes + plain<1, 1>::peak_bytes / 100);

struct counted {
  std::size_t calls = 0, launches = 0;
};
template <class Step>
counted calls() {
  counted n;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(rank);
    if (rank.index() == 0) n = {ex.call_count(), ex.launch_count()};
  });
  return n;
}

TEST_CASE("fusion: the example's step runs the calls that its constants count") {
  const counted before = calls<plain<1, 1>>(), after = calls<fused<1, 1>>(), two = calls<fused<1, 2>>();
  CHECK(before.calls == std::size_t{counts<plain<1, 1>>.kernels});
  CHECK(before.launches == std::size_t{counts<plain<1, 1>>.launches});
  CHECK(after.calls == std::size_t{counts<fused<1, 1>>.kernels});
  CHECK(after.launches == std::size_t{counts<fused<1, 1>>.launches});
  CHECK(two.calls == std::size_t{counts<fused<1, 2>>.kernels} + std::size_t{fused<1, 2>::traffic.collectives});
  CHECK(3 * after.launches <= before.calls);
  const counted least = calls<merged<1, 1>>(), four = calls<merged<2, 2>>();
  CHECK(least.calls == std::size_t{counts<merged<1, 1>>.kernels});
  CHECK(least.launches == std::size_t{counts<merged<1, 1>>.launches});
  CHECK(3 * least.launches <= before.launches);
  CHECK(four.calls == std::size_t{counts<merged<2, 2>>.kernels} + std::size_t{merged<2, 2>::traffic.collectives});
  CHECK(four.launches == std::size_t{counts<merged<2, 2>>.launches} + std::size_t{merged<2, 2>::traffic.collectives});
}

TEST_CASE("explain: the example's step in one table") {
  const std::string text = sw::explain<fused<1, 2>>({"dp", "tp"});
  MESSAGE(text);
  const auto has = [&](const std::string& line) { return text.find(line) != std::string::npos; };
  CHECK(has("collectives of a step, bytes sent by rank 0\n"));
  using use = fused<1, 2>::memory_use;
  CHECK(has("memory of a rank, by kind where it is fullest and by phase\n"));
  const auto number_after = [&](const std::string& section, const std::string& row) {
    const std::size_t at = text.find("\n  " + row + " ", text.find(section));
    return at == std::string::npos ? -1 : std::stoll(text.substr(at + row.size() + 3));
  };
  CHECK(number_after("memory of", "parameters") == use::value.kind[static_cast<int>(sw::memory_kind::parameters)]);
  CHECK(number_after("memory of", "all") == fused<1, 2>::peak_bytes);
  CHECK(number_after("most bytes live", "backward") == use::value.phase[static_cast<int>(sw::program_phase::backward)]);
  CHECK(has("kernels of a step\n"));
  CHECK(has("as written  fuse_kernels\n"));
  CHECK(has("all_reduce  tp    (16, 128, 128)  forward "));
  CHECK(has("  sumsq                 66             1\n"));
  CHECK(has("as written, one kernel for each operation: 427 kernels in 358 launches; after fuse_kernels: "));
  const auto line = [](const char* last, const auto& c) {
    return std::string("; after ") + last + ": " + std::to_string(c.kernels) + " kernels in " + std::to_string(c.launches) +
           " launches, 3.";
  };
  CHECK(sw::explain_kernels<merged<1, 1>>().find(line("join_norm_adjoints", counts<merged<1, 1>>)) != std::string::npos);
  CHECK(sw::explain_kernels<merged<2, 2>>().find(line("join_norm_adjoints", counts<merged<2, 2>>)) != std::string::npos);
  CHECK(sw::explain_kernels<plain<1, 1>>().find("427 kernels in 358 launches\n") != std::string::npos);
  CHECK(has("  kernels              427           " + std::to_string(counts<fused<1, 2>>.kernels) + "\n"));
}

}  // namespace
