// SPDX-License-Identifier: Apache-2.0
// Flat parameters on GPUs: what they compute is what parameters of their own do there and flat ones on threads, up to rounding, whose
// parts begin at odd places; parameters and states go by name, padding stays zero.
#define SHARDWISE_TEST_DEVICES 1
#include <flat_parameters.hpp>
#include <place.hpp>

#include <shardwise/pass/optimizer/list_optimizer.hpp>

#include <type_traits>

namespace device_flat {

using namespace test;
using namespace test::fsdp;
using namespace test::flat;

template <class T, int D, class Plan, class Optimizer, class Backend, class... P>
using step_of = sw::train_step<net, fit<D, T>, Plan, sw::mesh<dp<D>>, Optimizer, sw::pipeline<P...>, T, Backend>;

template <class T>
struct training {
  std::vector<T> losses;
  std::vector<std::vector<T>> first, last;  // parameters, and behind them both moments
};

template <class Executor>
auto everything(Executor& run) {
  std::vector<std::vector<typename Executor::element>> all;
  for (int i = 0; i < run.parameter_count(); ++i) {
    const auto name = run.parameter_name(i);
    all.push_back(run.full_parameter(name));
    CHECK(static_cast<std::int64_t>(all.back().size()) == numel(run.parameter_spec(i)));
    all.push_back(run.full_state(name, sw::moment::first));
    all.push_back(run.full_state(name, sw::moment::second));
  }
  return all;
}
template <class T, class Executor>
T step_on(Executor& run, int s) {
  run.set_input(0, numbers<T>(35, s));
  run.set_input(1, numbers<T>(21, s + 20));
  sw::step_env env = numbers_of(s);
  run.run(env);
  return run.loss();
}
template <class T, class Step, class Place>
training<T> trained_on() {
  training<T> r;
  Place::template launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> run(rank);
    run.initialise(5);
    training<T> own;
    own.first = everything(run);
    for (int s = 1; s <= 4; ++s) own.losses.push_back(step_on<T>(run, s));
    own.last = everything(run);
    CHECK(padding_is_zero(run));
    if (rank.index() == 0) r = own;
  });
  return r;
}
template <class T>
void check_close(const training<T>& a, const training<T>& b) {
  constexpr double bound = std::is_same_v<T, double> ? 1e-12 : 1e-5;  // of numbers of order 1
  CHECK(a.first == b.first);
  CHECK(apart(a.losses, b.losses) <= bound);
  REQUIRE(a.last.size() == b.last.size());
  for (std::size_t k = 0; k < a.last.size(); ++k) CHECK(apart(a.last[k], b.last[k]) <= bound);
  CHECK(a.losses.front() != a.losses.back());
}

template <class T, int D, template <int, class...> class Plan, class Optimizer, class... P>
void check_beside() {
  if (!on_devices::has(D)) return;
  const auto flat =
      trained_on<T, step_of<T, D, Plan<D, sw::flat_parameters>, Optimizer, sw::cuda_backend, P...>, on_devices>();
  check_close(flat, trained_on<T, step_of<T, D, Plan<D>, Optimizer, sw::cuda_backend, P...>, on_devices>());
  check_close(flat,
              trained_on<T, step_of<T, D, Plan<D, sw::flat_parameters>, Optimizer, sw::host_backend, P...>, on_threads>());
}
template <int D>
void check_all() {
  check_beside<double, D, one, sw::adam<>>();
  check_beside<float, D, three, sw::clip_norm<sw::adam<>>>();
  check_beside<float, D, some, sw::adam<>, sw::fused_optimizer>();
}
TEST_CASE("flat_parameters: one gpu") { check_all<1>(); }
TEST_CASE("flat_parameters: two gpus") { check_all<2>(); }

// Between programs with and without, and by name.
template <int D>
void check_moved() {
  if (!on_devices::has(D)) return;
  using flat = step_of<float, D, three<D, sw::flat_parameters>, sw::adam<>, sw::cuda_backend>;
  using plain = step_of<float, D, one<D>, sw::adam<>, sw::cuda_backend>;
  sw::launch_cuda<typename flat::mesh_type>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<flat, rank_type> a(rank), c(rank);
    sw::executor<plain, rank_type> b(rank);
    a.initialise(5);
    b.initialise(6);
    c.initialise(7);
    for (int s = 1; s <= 2; ++s) step_on<float>(a, s);
    b.copy_parameters(a);
    b.copy_state(a);
    c.copy_parameters(b);
    c.copy_state(b);
    CHECK(everything(b) == everything(a));
    CHECK(everything(c) == everything(a));
    CHECK(step_on<float>(c, 3) == step_on<float>(a, 3));
    const auto weight = numbers<float>(42, 3);
    a.set_parameter("up.weight", weight);
    CHECK(a.full_parameter("up.weight") == weight);
    const auto& l = a.parameter_layout(a.parameter_index("up.weight"));
    const auto block = a.get_parameter("up.weight");
    CHECK(static_cast<std::int64_t>(block.size()) == l.ext[0]);
    for (std::size_t i = 0; i < block.size(); ++i) CHECK(block[i] == weight[static_cast<std::size_t>(l.origin[0]) + i]);
  });
}
TEST_CASE("flat_parameters: copies on one gpu") { check_moved<1>(); }
TEST_CASE("flat_parameters: copies on two gpus") { check_moved<2>(); }

}  // namespace device_flat
