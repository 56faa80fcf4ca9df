// SPDX-License-Identifier: Apache-2.0
// A program that is built to write its compiled programs (SHARDWISE_EXPLAIN), for test/explained.py: one line of facts for each.
#include <cstdio>

#include <shardwise/shardwise.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;

template <class Bound = sw::unbound>
struct mlp : sw::module<mlp<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, net1), (sw::linear<16, 10>, net2));
  constexpr auto forward(const auto& x) const { return net2(sw::relu(net1(x))); }
};
using plan = sw::plan<sw::data_parallel<dp>, sw::at<"net1", sw::colwise<tp>>, sw::at<"net2", sw::rowwise<tp>>>;
struct task {
  using batch = sw::input_tensor<float, sw::shape<32, 10>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<batch, batch>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};
using train = sw::train_step<mlp, task, plan, mesh, sw::adam<>>;
using evaluate = sw::forward_step<mlp, task, plan, mesh>;

template <class Step>
void print_facts(const char* file) {
  std::printf("%s %d %lld %lld %lld\n", file, Step::program.node_count,
              static_cast<long long>(Step::template comm_bytes<dp>), static_cast<long long>(Step::template comm_bytes<tp>),
              static_cast<long long>(Step::peak_bytes));
}

int main() {
  sw::launch<mesh>([](auto& rank) {
    sw::executor<train> run(rank);
    sw::executor<evaluate> look(rank);
    sw::executor<train> again(rank);
  });
  print_facts<train>("train_step_mlp_task");
  print_facts<evaluate>("forward_step_mlp_task");
}
