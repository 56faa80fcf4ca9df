// SPDX-License-Identifier: Apache-2.0
// Muon of a deep model: within every compiler's limits, so many nodes a matrix and none for the rest, and the rates of its steps.
#include <shardwise/core.hpp>
#include <shardwise/module/muon.hpp>

namespace {

namespace sw = shardwise;

struct dp : sw::axis<4> {};
using mesh = sw::mesh<dp>;

template <class Bound = sw::unbound>
struct layer : sw::module<layer<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::layer_norm_module<64>, norm), (sw::linear<64, 128>, up), (sw::linear<128, 64>, down));
  constexpr auto forward(const auto& x) const { return x + down(sw::gelu(up(norm(x)))); }
};
constexpr int depth = 16, matrices = 2 * depth;
template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::repeat<depth, layer>, layers));
  constexpr auto forward(const auto& x) const { return layers(x); }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<16, 64>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(m(x)); }
};
template <class Optimizer>
using step =
    sw::train_step<net, task, sw::plan<sw::fully_shard<dp>, sw::at<"layers.*", sw::fully_shard<dp>>>, mesh, Optimizer>;

using by_muon = step<sw::clip_norm<sw::muon<>>>;
using by_adam = step<sw::clip_norm<sw::adamw<>>>;

// Instead of a second moment a direction, a gather and a chunk, the norm (4), what it divides, and five times eight less one.
constexpr int of_a_matrix = -1 + 1 + 2 + 5 + 5 * 7;
static_assert(by_muon::program.node_count == by_adam::program.node_count + matrices * of_a_matrix);
static_assert(by_muon::comm_bytes_of<dp>(sw::transition::all_gather, sw::program_phase::optimizer) ==
              matrices * (3 * 64 * 128 / 4 * 4));
static_assert(by_adam::comm_bytes_of<dp>(sw::transition::all_gather, sw::program_phase::optimizer) == 0);

// sqrt(max(1, rows / columns)), and 0.2 sqrt(max(rows, columns)).
constexpr sw::spec matrix(std::int64_t rows, std::int64_t columns) {
  sw::spec s{};
  s.rank = 2;
  s.extent[0] = rows;
  s.extent[1] = columns;
  return s;
}
constexpr bool near(double a, double b) { return a - b < 1e-15 * b && b - a < 1e-15 * b; }
static_assert(sw::muon<>::rate(matrix(64, 128)) == 1 && sw::muon<>::rate(matrix(128, 128)) == 1);
static_assert(near(sw::muon<>::rate(matrix(512, 128)), 2) && near(sw::muon<>::rate(matrix(2, 1)), 1.4142135623730951));
static_assert(near(sw::muon<sw::muon_rate::match_rms_adamw>::rate(matrix(100, 25)), 2));
static_assert(near(sw::muon<sw::muon_rate::match_rms_adamw>::rate(matrix(3, 400)), 4));

}  // namespace
