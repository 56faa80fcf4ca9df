// SPDX-License-Identifier: Apache-2.0
// Eager tensors: operations compute at once, each rank on its own block; what is wrong is still found while compiling.

#include <cstdio>
#include <tuple>

#include <shardwise/io/print.hpp>
#include <shardwise/shardwise.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;

// A function of tensors serves both at once (eager) and as a program (compiled): here a layer whose features tp splits.
struct layer {
  constexpr auto operator()(const auto& x, const auto& w) const {
    const auto y = sw::relu(sw::linear_product(x, w));  // x (rows, in), w (out, in)
    return sw::mean(y * y);                             // of all rows and features of all ranks: partial
  }
};

int main() {
  sw::launch<mesh>([](auto& rank) {
    const sw::eager on(rank);  // this rank's run: its tensors live in its pool
    const bool speaks = rank.index() == 0;

    const auto x = sw::randn<float, sw::shape<6, 4>, sw::on<dp, sw::shard<0>>, sw::on<tp, sw::reduced>>(on, /*seed*/ 1);
    const auto w = sw::randn<float, sw::shape<8, 4>, sw::on<dp, sw::reduced>, sw::on<tp, sw::shard<0>>>(on, /*seed*/ 2);
    if (speaks) std::printf("%s\n", sw::to_string(x).c_str());

    const auto y = sw::linear_product(x, w);  // (6, 8): rows over dp, features over tp; nothing is sent
    if (speaks) std::printf("%s\n", sw::type_text<decltype(y)>().c_str());
    // x + y does not compile (extents), nor does y + w (placements); the sentence says which redistribute is missing.

    const auto total = layer{}(x, w);
    if (speaks) std::printf("%s\n", sw::type_text<decltype(total)>().c_str());
    const float value = total.item();  // collective: adds up the ranks' summands

    // Result and gradients of both operands; a gradient has its operand's extents and the dual of its placements.
    const auto [again, dx, dw] = sw::value_and_grad<layer, 0, 1>(x, w);
    const auto step = sw::reduce_gradient<dp>(dw);  // w is reduced on dp: its gradient is still to be summed there
    const auto w2 = w - sw::redistribute<dp, sw::reduced>(step) * 0.1;
    const float better = layer{}(x, w2).item();
    if (speaks) std::printf("%s\n%s\n", sw::type_text<decltype(dw)>().c_str(), sw::type_text<decltype(step)>().c_str());
    if (speaks) std::printf("loss %.4f, after a step %.4f\n", static_cast<double>(value), static_cast<double>(better));

    // A redistribution on its way: move-only, and wait() is the only way out.
    auto coming = sw::redistribute_async<tp, sw::replicate>(y);
    const auto row_sums = sw::sum<1>(x);  // in the meantime
    const auto all = std::move(coming).wait();
    if (speaks) std::printf("%s\n%s\n", sw::type_text<decltype(row_sums)>().c_str(), sw::type_text<decltype(all)>().c_str());
    static_cast<void>(again), static_cast<void>(dx);
  });
}
