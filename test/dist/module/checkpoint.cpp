// SPDX-License-Identifier: Apache-2.0
// Checkpointed modules that write buffers, call users' own operations, have collectives on their way or functions that nothing is known
// of: the bits of the step without checkpoints, and every effect once.
#include <running_norm.hpp>

#include <custom_results.hpp>
#include <results_run.hpp>
#include <shardwise/module/iterated.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/pass/iteration/iter_move.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/runtime/executor/iterated.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <type_traits>
#include <utility>

namespace {

namespace sw = shardwise;
using sw::op_code;

template <class Program>
constexpr int again(op_code op = op_code::count) {
  int n = 0;
  for (int i = 0; i < Program::program.node_count; ++i)
    n += sw::replay_of(Program::program, i) >= 0 && (op == op_code::count || Program::program.nodes[i].op == op) ? 1 : 0;
  return n;
}

// --- buffers ----------------------------------------------------------------------------------------------------------

namespace running = test::running;

template <int D, int N>
using one_region = sw::plan<sw::data_parallel<running::dp<D>>, sw::at<"up", sw::colwise<running::tp<N>>>,
                            sw::at<"norm", running::split_features<running::tp<N>>>,
                            sw::at<"down", sw::rowwise<running::tp<N>>>, sw::checkpoint>;
template <int D, int N>
using each_module = sw::plan<sw::data_parallel<running::dp<D>>, sw::at<"up", sw::colwise<running::tp<N>>>,
                             sw::at<"norm", running::split_features<running::tp<N>>, sw::checkpoint>,
                             sw::at<"drop", sw::checkpoint>, sw::at<"down", sw::rowwise<running::tp<N>>>>;

template <int D, int N, template <int, int> class Plan>
void check_buffers() {
  using plain = running::training<D, N, running::split_plan>;
  using checked = running::training<D, N, Plan>;
  using judge = running::evaluation<D, N, Plan>;
  static_assert(again<checked>() > 0);
  const auto want = running::train_and_judge<plain, running::evaluation<D, N, running::split_plan>>(3);
  CHECK(running::difference(want, running::train_and_judge<checked, judge>(3)) == 0);
}

// --- iterations -------------------------------------------------------------------------------------------------------

template <template <int, int> class Plan, class... P>
using listed = sw::train_step<running::models<running::dp<2>>::net_of, running::fit<double, 2, 7>, Plan<2, 2>,
                              running::mesh<2, 2>, sw::adam<>, sw::pipeline<P...>, double>;

template <class Step, sw::fixed_string Bucket>
std::vector<double> iterated_losses() {
  using moves = sw::iterated<Step, sw::iter_move_grads_and_optimizers<Bucket, "einsum">, sw::raise_comms, sw::sink_waits>;
  std::vector<double> losses(4);
  sw::launch<running::mesh<2, 2>>([&](auto& rank) {
    sw::iterated_executor<moves> run(rank, sw::executor_checks::poison);
    static_assert(moves::kept_values > 0);
    run.main().initialise(5);
    for (int s = 1; s <= 4; ++s) {
      run.main().set_input(0, running::numbers<double>(35, s));
      run.main().set_input(1, running::numbers<double>(21, s + 20));
      run.run(running::step_numbers(s), s == 4);
      if (rank.index() == 0) losses[static_cast<std::size_t>(s - 1)] = run.loss();
    }
  });
  return losses;
}

// --- several results, functions that nothing is known of --------------------------------------------------------------

namespace results = test::results;

// Its second result and its first are read, and the largest of each row, which has two results too.
template <class Bound = sw::unbound>
struct described_lines : sw::module<described_lines<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<6, 6>, net));
  constexpr auto forward(const auto& x) const {
    const auto h = net(x);
    const auto [e, s, where] = sw::call<described::lines>(sw::scale(h, 0.1));
    const auto [top, at] = sw::max<1>(sw::tanh(h));
    return e * sw::tanh(h) + sw::unsqueeze<1>(sw::sigmoid(s) + top * top);
  }
};
template <class Bound = sw::unbound>
struct two_described : sw::module<two_described<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (described_lines<>, first), (described_lines<>, second));
  constexpr auto forward(const auto& x) const { return second(first(x)); }
};
template <int D, class... More>
using described_step =
    sw::train_step<two_described, results::task<results::dp<D>>, sw::plan<sw::data_parallel<results::dp<D>>, More...>,
                   results::mesh<D, 1>, sw::adam<>, sw::pipeline<>, double>;
using each = sw::at<"*", sw::checkpoint>;

// The first of them masks by a function that counts its calls, the second gathers while it computes.
std::atomic<int> calls{0};
struct counted {
  template <class T>
  void operator()(std::span<T> out, std::span<const T> in) const {
    ++calls;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[i] > T(0) ? T(1) : T(2);
  }
};
template <class Bound = sw::unbound>
struct masked : sw::module<masked<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<6, 6>, net));
  constexpr auto forward(const auto& x) const { return net(x) * sw::opaque<counted>(x); }
};
template <class Axis, class Bound = sw::unbound>
struct gathered : sw::module<gathered<Axis, Bound>, Bound> {
  template <class B>
  using rebound = gathered<Axis, B>;
  SHARDWISE_MEMBERS(Bound, (sw::linear<6, 6>, net));
  constexpr auto forward(const auto& x) const {
    const auto h = net(x);
    auto all = sw::redistribute_async<Axis, sw::replicate>(h);
    const auto beside = sw::sigmoid(h);
    const auto whole = std::move(all).wait();
    return sw::redistribute<Axis, sw::shard<0>>(whole * whole) * beside;
  }
};
template <class Axis>
struct in_turn {
  template <class Bound = sw::unbound>
  struct model : sw::module<model<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (masked<>, first), (gathered<Axis>, second));
    constexpr auto forward(const auto& x) const { return second(first(x)); }
  };
  template <class B>
  using of = model<B>;
};
template <int D, class... More>
using turns_step = sw::train_step<in_turn<results::dp<D>>::template of, results::task<results::dp<D>>,
                                  sw::plan<sw::data_parallel<results::dp<D>>, More...>, results::mesh<D, 1>, sw::adam<>,
                                  sw::pipeline<>, double>;

}  // namespace

TEST_CASE("checkpoint: buffers are updated once, and draws are the same") {
  check_buffers<1, 1, one_region>();
  check_buffers<1, 1, each_module>();
  check_buffers<2, 2, one_region>();
  check_buffers<3, 1, each_module>();
}

TEST_CASE("checkpoint: moves into the next iteration keep the losses") {
  using plain = listed<running::split_plan, sw::fused_optimizer, sw::comm_fusion_in_place<>, sw::remove_copy_from_optimizer>;
  using checked = listed<each_module, sw::fused_optimizer, sw::comm_fusion_in_place<>, sw::remove_copy_from_optimizer>;
  static_assert(again<checked>() > 0);
  // the norm's two sums over the batch stand once more before the bucket
  CHECK((iterated_losses<checked, "all_reduce_7">()) == (iterated_losses<plain, "all_reduce_5">()));
}

TEST_CASE("checkpoint: functions that nothing is known of are called once, collectives on their way are repeated") {
  const auto run = []<class Step>(std::type_identity<Step>) {
    calls = 0;
    const auto losses = results::train<Step>();
    CHECK(calls == 4 * Step::mesh_type::size);
    return losses;
  };
  const auto check = [&]<int D>() {
    using checked = turns_step<D, each>;
    static_assert(again<checked>(op_code::opaque) == 0 && again<checked>(op_code::wait) == (D > 1));
    static_assert(again<checked>(op_code::einsum) == 1);  // what the first gives is what the second starts from
    CHECK(run(std::type_identity<checked>{}) == run(std::type_identity<turns_step<D>>{}));
    using whole = turns_step<D, sw::checkpoint>;
    static_assert(again<whole>(op_code::opaque) == 0 && again<whole>(op_code::einsum) == 2);
    CHECK(run(std::type_identity<whole>{}) == run(std::type_identity<turns_step<D>>{}));
  };
  check.template operator()<1>();
  check.template operator()<3>();
}

TEST_CASE("checkpoint: operations with several results are computed again as one") {
  const auto want = results::train<described_step<1>>();
  using all = described_step<1, each>;
  static_assert(again<all>(op_code::custom) == 4 && again<all>(op_code::getitem) >= 4);
  CHECK(results::train<all>() == want);
  CHECK(results::train<described_step<3, each>>() == results::train<described_step<3>>());
  // kept by its name, as a user's own operation or as the library's
  using but_lines = described_step<1, sw::at<"*", sw::checkpoint_except<"lines", "matmul">>>;
  static_assert(again<but_lines>(op_code::custom) == 2);
  CHECK(results::train<but_lines>() == want);
  using lines_alone = described_step<1, sw::at<"*", sw::checkpoint_only<"lines">>>;
  static_assert(again<lines_alone>(op_code::custom) == 2 && again<lines_alone>(op_code::tanh) == 0);
  CHECK(results::train<lines_alone>() == want);
}
