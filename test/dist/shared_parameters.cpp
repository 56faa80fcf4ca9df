// SPDX-License-Identifier: Apache-2.0
// Evaluation by the weights of a training executor where they lie: the bits of a program with copies, between any two steps, under every
// kind of plan; the memory that it takes less; buffers of modules; what is set, averaged and written.
#include <shardwise/shardwise.hpp>

#include <shardwise/runtime/executor/weight_average.hpp>
#include <shardwise/runtime/program/shared_parameters.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include <running_norm.hpp>
#include <thrown.hpp>

namespace {

namespace sw = shardwise;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};

template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<7, 10>, up), (sw::dropout_module<1, 2>, drop), (sw::linear<10, 7>, down),
                    (sw::parameter<sw::shape<6, 7>, sw::init::normal<1, 2>>, shift));
  constexpr auto forward(const auto& x) const {  // the last rows of a parameter, as a view
    return down(drop(sw::tanh(up(x)))) + sw::sum<0>(sw::narrow<0, 4, 2>(shift));
  }
};
// Of batches of Rows: those that are judged are of another size than those that are learned.
template <class T, int N, int Rows>
struct fit {
  using rows = sw::input_tensor<T, sw::shape<Rows, 7>, sw::on<dp<N>, sw::shard<0>>>;
  using inputs = sw::inputs<rows, rows>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& t) const {
    const auto apart = model(x) - t;
    return sw::mean(apart * apart);
  }
};
template <class T, class Mesh, int N, class Plan, class Pipeline = sw::pipeline<>>
struct programs {
  using step = sw::train_step<net, fit<T, N, 8>, Plan, Mesh, sw::adamw<>, Pipeline, T>;
  using judge = sw::forward_step<net, fit<T, N, 5>, Plan, Mesh, sw::pipeline<>, T>;
  using shared = sw::with_parameters_of<judge, step>;
};

template <class T>
std::vector<T> numbers(int count, int seed) {
  std::vector<T> v;
  for (int i = 0; i < count; ++i) v.push_back(static_cast<T>(std::sin(1.3 * i + seed)));
  return v;
}
template <class Executor>
void feed(Executor& run, int rows, int seed) {
  using T = typename Executor::element;
  run.set_input(0, numbers<T>(rows * 7, seed));
  run.set_input(1, numbers<T>(rows * 7, seed + 50));
}
sw::step_env env_at(int s) {
  sw::step_env env;
  env.seed = 2;
  env.step = s;
  env.lr = 0.02;
  return env;
}

template <class P>
void check_plan() {
  using step = typename P::step;
  using judge = typename P::judge;
  using shared = typename P::shared;
  // what is saved is exactly the blocks of the parameters
  constexpr std::int64_t parameters = [] {
    std::int64_t n = 0;
    for (int i = 0; i < judge::program.node_count; ++i)
      if (judge::program.nodes[i].op == sw::op_code::param) n += sw::passes::align_up(judge::memory::value.bytes[i]);
    return n;
  }();
  static_assert(parameters > 0);
  static_assert(judge::memory::value.persistent_end - shared::memory::value.persistent_end == parameters);
  static_assert(shared::peak_bytes < judge::peak_bytes && shared::peak_bytes >= judge::peak_bytes - parameters - 64);
  CAPTURE(step::mesh_type::size);
  sw::launch<typename step::mesh_type>([](auto& rank) {
    sw::executor<step> run(rank, sw::executor_checks::poison);
    run.initialise(4);
    sw::executor<shared> test(rank, run, sw::executor_checks::poison);
    sw::executor<judge> copied(rank);
    for (int s = 1; s <= 4; ++s) {
      feed(run, 8, s);
      run.run(env_at(s));
      copied.copy_parameters(run);
      for (int batch = 0; batch < 2; ++batch) {
        feed(test, 5, 90 + batch);
        test.run(env_at(1));
        feed(copied, 5, 90 + batch);
        copied.run(env_at(1));
        CHECK(test.loss() == copied.loss());
      }
    }
    for (int i = 0; i < run.parameter_count(); ++i) {
      const std::string name = run.parameter_name(i);
      CHECK(test.parameter(name).data() == run.parameter(name).data());
      CHECK(test.full_parameter(name) == run.full_parameter(name));
    }
  });
}

// Whether training that is judged on the way goes as training that is not.
template <class P>
std::vector<typename P::step::element> trained(bool judged) {
  using T = typename P::step::element;
  std::vector<T> end;
  sw::launch<typename P::step::mesh_type>([&](auto& rank) {
    sw::executor<typename P::step> run(rank);
    run.initialise(4);
    sw::executor<typename P::shared> test(rank, run);
    for (int s = 1; s <= 4; ++s) {
      feed(run, 8, s);
      run.run(env_at(s));
      if (!judged) continue;
      feed(test, 5, s);
      test.run(env_at(s));
    }
    const auto own = run.full_parameter("up.weight");
    const auto moment = run.full_state("up.weight", sw::moment::second);
    if (rank.index() == 0) {
      end = own;
      end.insert(end.end(), moment.begin(), moment.end());
    }
  });
  return end;
}

template <int N>
using data = programs<float, sw::mesh<dp<N>>, N, sw::plan<sw::data_parallel<dp<N>>>>;
template <int N, class... Options>
using sharded = programs<double, sw::mesh<dp<N>>, N, sw::plan<sw::fully_shard<dp<N>, Options...>>>;
template <int N, int K>
using tensors =
    programs<double, sw::mesh<dp<N>, tp<K>>, N,
             sw::plan<sw::fully_shard<dp<N>>, sw::at<"up", sw::colwise<tp<K>>>, sw::at<"down", sw::rowwise<tp<K>>>>>;

}  // namespace

TEST_CASE("shared parameters: the bits of copies between steps, on 1 to 4 ranks") {
  check_plan<data<1>>();
  check_plan<data<2>>();
  check_plan<data<3>>();
  check_plan<data<4>>();
  check_plan<sharded<3>>();
  check_plan<sharded<4>>();
  check_plan<sharded<3, sw::flat_parameters>>();
  check_plan<tensors<2, 2>>();
  check_plan<tensors<3, 2>>();
}

TEST_CASE("shared parameters: training goes on as if nobody had looked") {
  CHECK(trained<data<3>>(true) == trained<data<3>>(false));
  CHECK(trained<sharded<2>>(true) == trained<sharded<2>>(false));
}

TEST_CASE("shared parameters: what is set on one is set on both; an average is judged where it is exchanged") {
  using p = sharded<2>;
  sw::launch<p::step::mesh_type>([](auto& rank) {
    sw::executor<p::step> run(rank);
    run.initialise(1);
    sw::executor<p::shared> test(rank, run);
    const std::vector<double> bias(7, 0.5);
    test.set_parameter("down.bias", bias);
    CHECK(run.full_parameter("down.bias") == bias);
    feed(test, 5, 0);
    const auto loss = [&] {
      test.run({});
      return test.loss();
    };
    const double first = loss();
    sw::weight_average<sw::executor<p::step>> average(run);
    feed(run, 8, 1);
    run.run(env_at(1));
    const double second = loss();
    CHECK(first != second);
    average.exchange(run);
    CHECK(loss() == first);
    average.exchange(run);
    CHECK(loss() == second);
  });
}

TEST_CASE("shared parameters: an executor without values, and one of another rank") {
  using p = data<2>;
  sw::executor<p::step>* first = nullptr;
  sw::launch<p::step::mesh_type>([&](auto& rank) {
    sw::executor<p::step> run(rank);
    CHECK(test::mentions(test::thrown([&] { sw::executor<p::shared> test(rank, run); }),
                         "executor: parameter 'up.weight' has no value"));
    run.initialise(1);
    if (rank.index() == 0) first = &run;
    rank.barrier();
    if (rank.index() == 1)
      CHECK(test::mentions(test::thrown([&] { sw::executor<p::shared> test(rank, *first); }),
                           "parameters of an executor of rank 0 are to be used on rank 1"));
    rank.barrier();
  });
}

TEST_CASE("shared parameters: buffers of modules are read where training writes them") {
  namespace r = test::running;
  using step = r::training<2, 2, r::split_plan>;
  using judge = r::evaluation<2, 2, r::split_plan>;
  using shared = sw::with_parameters_of<judge, step>;
  static_assert(step::buffer_total == 2);
  static_assert(shared::memory_use::value.kind[static_cast<int>(sw::memory_kind::buffers)] == 0);
  sw::launch<step::mesh_type>([](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(5);
    sw::executor<shared> test(rank, run);
    sw::executor<judge> copied(rank);
    const auto x = r::numbers<double>(7 * 5, 3);
    test.set_input(0, x);
    copied.set_input(0, x);
    double before = 0;
    for (int s = 1; s <= 3; ++s) {
      run.set_input(0, r::numbers<double>(7 * 5, s));
      run.set_input(1, r::numbers<double>(7 * 3, s + 9));
      run.run(r::step_numbers(s));
      copied.copy_parameters(run);
      copied.run({});
      test.run({});
      CHECK(test.loss() == copied.loss());
      CHECK(test.loss() != before);
      before = test.loss();
      CHECK(test.full_buffer("norm.running_mean") == run.full_buffer("norm.running_mean"));
    }
  });
}
