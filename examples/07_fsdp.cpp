// SPDX-License-Identifier: Apache-2.0
// Parameters in shards: the same model and task under data parallelism, ZeRO-1, FSDP and hybrid shards, what each stores and sends.

#include <cstdio>
#include <vector>

#include <shardwise/shardwise.hpp>
namespace sw = shardwise;

struct node : sw::axis<2> {};   // machines
struct local : sw::axis<2> {};  // GPUs of one: the faster links
using mesh = sw::mesh<node, local>;
inline constexpr int width = 32, depth = 8, rows = 16;

template <class Bound = sw::unbound>
struct layer : sw::module<layer<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::layer_norm_module<width>, norm), (sw::linear<width, 4 * width>, up),
                    (sw::linear<4 * width, width>, down));
  constexpr auto forward(const auto& x) const { return x + down(sw::gelu(up(norm(x)))); }
};
template <class Bound = sw::unbound>
struct stack : sw::module<stack<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::repeat<depth, layer>, layers), (sw::linear<width, width>, head));
  constexpr auto forward(const auto& x) const { return head(layers(x)); }
};

struct task {  // the batch is split over both axes under every plan here
  using batch = sw::input_tensor<float, sw::shape<rows, width>, sw::on<node, sw::shard<0>>, sw::on<local, sw::shard<0>>>;
  using inputs = sw::inputs<batch, batch>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};
template <class... Entries>
using step = sw::train_step<stack, task, sw::plan<Entries...>, mesh, sw::adam<>>;

using ddp = step<sw::data_parallel<node>, sw::data_parallel<local>>;
using zero1 = step<sw::data_parallel<node>, sw::data_parallel<local, sw::shard_optimizer_states>>;

// An entry of its own takes what no inner group has; at<"layers.*", ...> makes a group of each layer.
template <class... Options>
using in_groups = step<sw::fully_shard<node, sw::shard_over<local>, Options...>,
                       sw::at<"layers.*", sw::fully_shard<node, sw::shard_over<local>, Options...>>>;
using fsdp = in_groups<>;                                             // a layer is whole while it computes
using fsdp_kept = in_groups<sw::reshard_after_forward<false>>;        // it stays until the backward pass has used it
using fsdp_half = in_groups<sw::reshard_after_forward<local::size>>;  // it stays in shards within a machine
using copies = sw::fully_shard<local, sw::replicate_over<node>>;      // HSDP: shards in a machine, and a copy in each
using hsdp = step<copies, sw::at<"layers.*", copies>>;

static_assert(fsdp::peak_bytes < ddp::peak_bytes / 2);

template <class Step>
void train(const char* name) {
  double loss = 0;
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<Step> run(rank);
    run.initialise(/*seed*/ 1);
    std::vector<float> x(rows * width), y(rows * width);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(i * 37 % 19) / 9.5F - 1;
      y[i] = x[i] * x[i];
    }
    run.set_input(0, x);
    run.set_input(1, y);
    sw::step_env env;
    env.lr = 0.001;
    for (env.step = 1; env.step <= 10; ++env.step) run.run(env);
    if (rank.index() == 0) loss = static_cast<double>(run.loss());
  });
  std::printf("%-28s %8lld %8lld %8lld   %.4f\n", name, static_cast<long long>(Step::peak_bytes),
              static_cast<long long>(Step::template comm_bytes<node>),
              static_cast<long long>(Step::template comm_bytes<local>), loss);
}

int main() {
  std::printf("of a rank:                     memory     node    local   loss of step 10\n");
  train<ddp>("data_parallel");
  train<zero1>("shard_optimizer_states");
  train<fsdp>("fully_shard");
  train<fsdp_half>("  kept within a machine");
  train<fsdp_kept>("  kept whole");
  train<hsdp>("  hybrid: a copy a machine");
}
